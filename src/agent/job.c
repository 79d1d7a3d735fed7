/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/job.h"

#include "agent/denial.h"
#include "agent/job_kin.h"
#include "agent/payload.h"
#include "base/clock.h"
#include "wire/agent.h"
#include "wire/pack.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <unistd.h>

/* How often what did not work at once is tried again. */
#define TICK_MS 20

void job_table_init(
	struct job_table *table, int epoll_fd, const struct job_fds *fds, struct uplink *link)
{
	*table = (struct job_table){.epoll_fd = epoll_fd, .link = link, .denials_fd = fds->denials};
	launch_prepare(&table->base, fds->score, fds->work);
	group_tree_init(&table->groups, fds->group);
	scarcity_open(&table->scarcity);
}

static struct job **slot_of(struct job_table *table, uint32_t id)
{
	struct job **slot = &table->heads[id % JOB_HEADS];

	while (*slot && (*slot)->id != id)
		slot = &(*slot)->next;
	return slot;
}

/* The one after `job`, which is NULL for the first; NULL behind the last. */
static struct job *next_of(const struct job_table *table, const struct job *job)
{
	size_t head = job ? job->id % JOB_HEADS + 1 : 0;

	if (job && job->next)
		return job->next;
	while (head < JOB_HEADS && !table->heads[head])
		head++;
	return head < JOB_HEADS ? table->heads[head] : NULL;
}

/* The one that the daemon still speaks of; of one that is forgotten only the group is left. */
static struct job *find(struct job_table *table, uint32_t id)
{
	struct job *job = *slot_of(table, id);

	return job && !job->is_forgotten ? job : NULL;
}

/* Of one that has nobody left. */
static void job_free(struct job_table *table, struct job *job)
{
	job_streams_close(&job->streams);
	cell_link_close(&job->cell);
	job_kin_close(table, job);
	free(job);
}

static void drop(struct job_table *table, struct job *job)
{
	*slot_of(table, job->id) = job->next;
	table->count--;
	job_free(table, job);
}

void job_try_again_later(struct job_table *table)
{
	if (table->tick_ms == 0)
		table->tick_ms = clock_steady_ms() + TICK_MS;
}

void job_prepare(struct job_table *table)
{
	if (table->count == 0)
		group_prepare(&table->groups);
}

/* Output */

static void send_output(struct job_table *table, struct job *job)
{
	struct backlog_piece piece;

	while (backlog_next(&job->streams.backlog, AGENT_OUTPUT_CHUNK, &piece)) {
		if (!uplink_put_output(table->link, job->id, &piece))
			return;
		backlog_send(&job->streams.backlog, piece.len);
	}
}

static void send_end(struct job_table *table, struct job *job)
{
	if (!job->ended || job->end_sent || job->is_forgotten ||
		!job_streams_are_done(&job->streams) ||
		!report_exited(table->link, job->id, job->streams.backlog.end, &job->end))
		return;
	job->end_sent = true;
	job_kin_tell_none(table, job);
}

/* Moves output along as far as window and link allow; at most one window's worth at a time. */
static void pump(struct job_table *table, struct job *job)
{
	while (job_streams_read(&job->streams))
		send_output(table, job);
	send_output(table, job);
	send_end(table, job);
}

/* Exec */

/* The cell's end wakes us, and so do calls that are refused there. */
static int watch_cell(const struct job_table *table, const struct job *job)
{
	int r = watch_add(table->epoll_fd, job->cell.sock, EPOLLIN, WATCH_CELL, job->id);

	if (r == 0 && job->cell.listener_fd >= 0)
		r = watch_add(
			table->epoll_fd, job->cell.listener_fd, EPOLLIN, WATCH_DENIALS, job->id);
	return r;
}

static int launch_in_cell(const struct job_table *table, const struct frame *frame, struct job *job,
	const struct launch_seat *seat, int *ret_stage)
{
	int pid = cell_link_launch(&job->cell, frame, seat, ret_stage);
	int r = pid < 0 ? pid : watch_cell(table, job);

	/* It has begun, and nobody would hear of its end. */
	if (pid >= 0 && r < 0)
		(void)cell_link_signal(&job->cell, SIGKILL);
	return r < 0 ? r : pid;
}

/* The pid, or -errno with its stage. */
static int start(struct job_table *table, const struct frame *frame,
	const struct payload_exec *exec, struct job *job, int *ret_stage)
{
	struct launch_seat seat = {.fds = {-1, -1, -1}};
	int r;

	*ret_stage = AGENT_STAGE_SETUP;
	if (exec->flags & ~(AGENT_EXEC_STDIN | AGENT_EXEC_PTY | AGENT_EXEC_CELL))
		return -EINVAL;
	if (table->closed)
		return -ESHUTDOWN;
	if (table->count == AGENT_PROCESSES_MAX)
		return -EAGAIN;
	r = job_streams_open(&job->streams, &table->base, exec, table->epoll_fd, job->id, &seat);
	if (r == 0)
		r = group_open(&table->groups, &job->group);
	seat.group_fd = job->group.threads_fd;
	job->before = scarcity_read(&table->scarcity);
	job->started_us = clock_steady_us();
	if (r == 0 && (exec->flags & AGENT_EXEC_CELL))
		r = launch_in_cell(table, frame, job, &seat, ret_stage);
	else if (r == 0)
		r = launch_run(&table->base, exec, &seat, ret_stage);
	job_streams_close_seat(&seat);
	return r;
}

static struct job *job_new(uint32_t id)
{
	struct job *job = mem_new(sizeof(*job));

	job->id = id;
	job_streams_init(&job->streams);
	job->group = GROUP_NONE;
	job->cell = CELL_LINK_NONE;
	return job;
}

int job_exec(struct job_table *table, const struct frame *frame)
{
	struct payload_exec exec;
	struct job *job;
	int stage;
	int r;

	if (*slot_of(table, frame->id))
		return -EPROTO;
	r = payload_exec_parse(frame, &exec);
	if (r < 0)
		return r;
	job = job_new(frame->id);
	if (exec.flags & AGENT_EXEC_CELL)
		job->cell.sock = uplink_take_fd(table->link);
	if ((exec.flags & AGENT_EXEC_CELL) && job->cell.sock < 0) {
		payload_exec_fini(&exec);
		job_free(table, job);
		return -EPROTO;
	}
	r = start(table, frame, &exec, job, &stage);
	payload_exec_fini(&exec);
	if (r < 0) {
		job_free(table, job);
		report_failed(table->link, frame->id, stage, -r);
		return 0;
	}
	job->pid = r;
	*slot_of(table, job->id) = job;
	table->count++;
	report_started(table->link, job->id, job->pid);
	return 0;
}

/* Input */

static void feed(struct job_table *table, struct job *job, uint64_t taken_before)
{
	inlet_write(&job->streams.inlet, table->epoll_fd, job->id);
	if (job->streams.inlet.taken != taken_before)
		report_input(table->link, job->id, job->streams.inlet.taken,
			job->streams.inlet.received);
}

int job_stdin(struct job_table *table, const struct frame *frame)
{
	struct job *job = find(table, frame->id);
	uint64_t before;
	int r;

	if (!job)
		return 0;
	before = job->streams.inlet.taken;
	r = inlet_add(&job->streams.inlet, frame->payload, frame->len);
	if (r < 0)
		return r;
	feed(table, job, before);
	return 0;
}

int job_stdin_close(struct job_table *table, const struct frame *frame)
{
	struct job *job = find(table, frame->id);
	int r = payload_empty_parse(frame);

	if (r < 0 || !job)
		return r;
	inlet_end(&job->streams.inlet);
	feed(table, job, job->streams.inlet.taken);
	return 0;
}

int job_resize(struct job_table *table, const struct frame *frame)
{
	struct job *job = find(table, frame->id);
	struct payload_resize size;
	int r = payload_resize_parse(frame, &size);

	if (r < 0)
		return r;
	if (job)
		job_streams_resize(&job->streams, size.columns, size.rows);
	return 0;
}

/* Signals */

int job_signal(struct job_table *table, const struct frame *frame)
{
	struct job *job = *slot_of(table, frame->id);
	struct payload_signal request;
	int r = payload_signal_parse(frame, &request);

	if (r < 0)
		return r;
	if (job && request.whole_tree)
		job_kin_signal(table, job, request.signal);
	else if (job && !job->ended && job->cell.sock >= 0)
		(void)cell_link_signal(&job->cell, request.signal);
	else if (job && !job->ended)
		kill(job->pid, request.signal);
	return 0;
}

int job_patience_ms(const struct job_table *table)
{
	uint64_t now;

	if (table->tick_ms == 0)
		return -1;
	now = clock_steady_ms();
	return now < table->tick_ms ? (int)(table->tick_ms - now) : 0;
}

void job_tick(struct job_table *table)
{
	if (table->tick_ms == 0 || clock_steady_ms() < table->tick_ms)
		return;
	table->tick_ms = 0;
	if (group_clean(&table->groups))
		job_try_again_later(table);
	for (struct job *p = next_of(table, NULL), *next; p; p = next) {
		next = next_of(table, p);
		if (!job_kin_try_again(table, p))
			drop(table, p);
	}
}

/* The rest of a command's life */

int job_ack(struct job_table *table, const struct frame *frame)
{
	struct job *job = find(table, frame->id);
	uint64_t offset;
	int r = payload_u64_parse(frame, &offset);

	if (r < 0 || !job)
		return r;
	r = backlog_ack(&job->streams.backlog, offset);
	if (r < 0)
		return r;
	pump(table, job);
	return 0;
}

int job_forget(struct job_table *table, const struct frame *frame)
{
	struct job *job = find(table, frame->id);
	int r = payload_empty_parse(frame);

	if (r < 0 || !job)
		return r;
	job->is_forgotten = true;
	if (group_is_real(&job->group))
		job_streams_close(&job->streams);
	else
		drop(table, job);
	return 0;
}

static struct job *find_running(const struct job_table *table, pid_t pid)
{
	for (struct job *p = next_of(table, NULL); p; p = next_of(table, p)) {
		if (!p->ended && p->pid == pid && p->cell.sock < 0)
			return p;
	}
	return NULL;
}

/* The command that a thread came of, which may have ended before it; NULL for the agent's own. */
static struct job *find_of_thread(const struct job_table *table, pid_t thread)
{
	bool has_groups = table->groups.dir_fd >= 0;
	struct job *ended = NULL;
	uint32_t number = 0;

	if (has_groups && !group_of_thread(thread, &number))
		return NULL;
	for (struct job *p = next_of(table, NULL); p; p = next_of(table, p)) {
		bool is_its = has_groups ? group_is_real(&p->group) && p->group.number == number
					 : getsid(thread) == p->pid;

		if (is_its && !p->ended)
			return p;
		if (is_its)
			ended = p;
	}
	return ended;
}

uint32_t job_of_process(const struct job_table *table, pid_t pid)
{
	const struct job *job = find_of_thread(table, pid);

	return job ? job->id : 0;
}

/* Whose it was is asked while it waits, and counted once it has its answer. */
void job_deny(struct job_table *table, uint32_t id)
{
	struct job *job = id ? *slot_of(table, id) : NULL;
	int listener_fd = job ? job->cell.listener_fd : table->denials_fd;
	struct denial denial;

	/* An event of a cell that was closed meanwhile must not be looked for at another listener. */
	if ((id && !job) || listener_fd < 0 || !denial_receive(listener_fd, &denial))
		return;
	job = find_of_thread(table, denial.thread);
	if (denial_answer(listener_fd, &denial) && job && !job->ended)
		denial_note(&job->end.denied, denial.number);
}

static uint64_t microseconds(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * 1000000 + (uint64_t)time->tv_usec;
}

static void record_end(
	const struct job_table *table, struct job *job, int wait_status, const struct rusage *usage)
{
	struct scarcity_counts now = scarcity_read(&table->scarcity);

	job->ended = true;
	job->end.wait_status = (uint32_t)wait_status;
	job->end.duration_us = clock_steady_us() - job->started_us;
	job->end.cpu_us = group_is_real(&job->group)
				  ? group_cpu_us(&job->group)
				  : microseconds(&usage->ru_utime) + microseconds(&usage->ru_stime);
	job->end.peak_bytes = (uint64_t)usage->ru_maxrss * 1024;
	job->end.during.oom_kills = now.oom_kills - job->before.oom_kills;
	job->end.during.refused_forks = now.refused_forks - job->before.refused_forks;
	if (wait_status != 0 && scarcity_is_disk_full())
		job->end.flags |= AGENT_EXITED_DISK_FULL;
}

static void conclude(
	struct job_table *table, struct job *job, int wait_status, const struct rusage *usage)
{
	record_end(table, job, wait_status, usage);
	job_streams_drain(&job->streams);
	if (job_kin_look(table, job))
		pump(table, job);
	else
		drop(table, job);
}

bool job_end(struct job_table *table, pid_t pid, int wait_status, const struct rusage *usage)
{
	struct job *job = find_running(table, pid);

	if (job)
		conclude(table, job, wait_status, usage);
	return job != NULL;
}

static void cell_ready(struct job_table *table, struct job *job)
{
	struct rusage usage = {0};
	uint64_t peak_bytes;
	int wait_status;

	if (job->cell.sock < 0)
		return;
	cell_link_read_end(&job->cell, &wait_status, &peak_bytes);
	usage.ru_maxrss = (long)(peak_bytes / 1024);
	cell_link_close(&job->cell);
	conclude(table, job, wait_status, &usage);
}

bool job_has_cells(const struct job_table *table)
{
	for (struct job *p = next_of(table, NULL); p; p = next_of(table, p)) {
		if (p->cell.sock >= 0)
			return true;
	}
	return false;
}

static void terminal_ready(struct job_table *table, struct job *job, uint32_t events)
{
	if ((events & EPOLLOUT) && job->streams.inlet.queue.len > 0)
		feed(table, job, job->streams.inlet.taken);
	outlet_wake(&job->streams.outlets[0], events);
	pump(table, job);
}

void job_ready(struct job_table *table, enum watch_role role, uint32_t id, uint32_t events)
{
	struct job *job = *slot_of(table, id);

	if (!job)
		return;
	switch (role) {
	case WATCH_GROUP:
		group_heard(&job->group);
		if (job->ended && !job_kin_look(table, job))
			drop(table, job);
		return;
	case WATCH_CELL:
		cell_ready(table, job);
		return;
	case WATCH_STDIN:
		feed(table, job, job->streams.inlet.taken);
		return;
	case WATCH_TERMINAL:
		terminal_ready(table, job, events);
		return;
	default:
		outlet_wake(&job->streams.outlets[role == WATCH_STDERR], events);
		pump(table, job);
	}
}

void job_send_all(struct job_table *table)
{
	for (struct job *p = next_of(table, NULL); p; p = next_of(table, p))
		pump(table, p);
}

/* Whatever the last link may not have brought to its end. */
static void resume(struct job_table *table, struct job *job)
{
	uint32_t count = job->ended ? group_count(&job->group) : 0;

	job->end_sent = job->none_sent = false;
	report_started(table->link, job->id, job->pid);
	if (count > 0)
		job_kin_tell(table, job, count);
	if (job->is_forgotten)
		return;
	backlog_rewind(&job->streams.backlog);
	report_input(table->link, job->id, job->streams.inlet.taken, job->streams.inlet.received);
	pump(table, job);
}

void job_resume_all(struct job_table *table)
{
	struct buf *out =
		uplink_begin(table->link, AGENT_HELLO, 0, (uint32_t)(4 + 4 + 4 * table->count));

	assert(out);
	pack_u32(out, AGENT_VERSION);
	pack_u32(out, table->count);
	for (struct job *p = next_of(table, NULL); p; p = next_of(table, p))
		pack_u32(out, p->id);
	for (struct job *p = next_of(table, NULL); p; p = next_of(table, p))
		resume(table, p);
}
