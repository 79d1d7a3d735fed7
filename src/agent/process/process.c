/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/process/process.h"

#include "agent/link/payload.h"
#include "agent/process/denied_syscall.h"
#include "agent/process/survivors.h"
#include "base/clock.h"
#include "wire/agent.h"
#include "wire/pack.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <unistd.h>

/* How often an operation that failed is tried again. */
#define TICK_MS 20

void process_table_init(struct process_table *table, int epoll_fd, const struct process_fds *fds,
	struct daemon_link *link, struct control *control)
{
	*table = (struct process_table){
		.epoll_fd = epoll_fd, .link = link, .control = control, .denials_fd = fds->denials};
	spawn_prepare(&table->base, fds->score, fds->work);
	process_cgroups_init(&table->groups, fds->group);
	limit_hits_open(&table->limit_hits);
}

static struct process **slot_of(struct process_table *table, uint32_t id)
{
	struct process **slot = &table->heads[id % PROCESS_HEADS];

	while (*slot && (*slot)->id != id)
		slot = &(*slot)->next;
	return slot;
}

/* The process after `process` (NULL: the first); NULL behind the last. */
static struct process *next_of(const struct process_table *table, const struct process *process)
{
	size_t head = process ? process->id % PROCESS_HEADS + 1 : 0;

	if (process && process->next)
		return process->next;
	while (head < PROCESS_HEADS && !table->heads[head])
		head++;
	return head < PROCESS_HEADS ? table->heads[head] : NULL;
}

/* Finds a command that the daemon has not forgotten; of a forgotten one only the cgroup is left. */
static struct process *find(struct process_table *table, uint32_t id)
{
	struct process *process = *slot_of(table, id);

	return process && !process->is_forgotten ? process : NULL;
}

/* Frees a command that has no processes left. */
static void process_free(struct process_table *table, struct process *process)
{
	process_streams_close(&process->streams);
	isolated_process_close(&process->isolated);
	survivors_close(table, process);
	free(process);
}

static void drop(struct process_table *table, struct process *process)
{
	*slot_of(table, process->id) = process->next;
	table->count--;
	process_free(table, process);
}

void process_try_again_later(struct process_table *table)
{
	if (table->tick_ms == 0)
		table->tick_ms = clock_steady_ms() + TICK_MS;
}

void process_prepare(struct process_table *table)
{
	if (table->count == 0)
		process_cgroup_prepare(&table->groups);
}

/* Output */

static void send_output(struct process_table *table, struct process *process)
{
	struct output_backlog_piece piece;

	while (output_backlog_next(&process->streams.backlog, AGENT_OUTPUT_CHUNK, &piece)) {
		if (!daemon_link_put_output(table->link, process->id, &piece))
			return;
		output_backlog_send(&process->streams.backlog, piece.len);
	}
}

/*
 * That a disk is full is no reason by itself: a command that failed for it has said so, or wrote to a mapped
 * file for which there was no block. Of a network that is not there only the command itself can tell. All of its
 * output must have been read.
 */
static void judge_words(struct process *process)
{
	int status = (int)process->end.wait_status;
	bool is_own = (WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS) ||
		      output_tail_tells_full_disk(&process->streams.tail);

	if ((process->end.flags & AGENT_EXITED_DISK_WAS_FULL) && is_own)
		process->end.flags ^= AGENT_EXITED_DISK_WAS_FULL | AGENT_EXITED_DISK_FULL;
	if (status != 0 && output_tail_tells_no_network(&process->streams.tail))
		process->end.flags |= AGENT_EXITED_NO_NETWORK;
}

static void send_end(struct process_table *table, struct process *process)
{
	if (!process->ended || process->end_sent || process->is_forgotten ||
		!process_streams_are_done(&process->streams))
		return;
	judge_words(process);
	if (!report_exited(table->link, process->id, process->streams.backlog.end, &process->end))
		return;
	process->end_sent = true;
	survivors_tell_none(table, process);
}

/* Reads and sends output as far as window and link allow; at most one window at a time. */
static void pump(struct process_table *table, struct process *process)
{
	while (process_streams_read(&process->streams))
		send_output(table, process);
	send_output(table, process);
	send_end(table, process);
}

/* Exec */

/* The end of the isolated command wakes the loop, and so do calls that are refused in it. */
static int watch_isolated(const struct process_table *table, const struct process *process)
{
	int r = watch_add(
		table->epoll_fd, process->isolated.sock, EPOLLIN, WATCH_ISOLATED, process->id);

	if (r == 0 && process->isolated.listener_fd >= 0)
		r = watch_add(table->epoll_fd, process->isolated.listener_fd, EPOLLIN,
			WATCH_DENIALS, process->id);
	return r;
}

static int start_isolated(const struct process_table *table, const struct frame *frame,
	struct process *process, const struct spawn_target *target, int *ret_stage)
{
	int pid = isolated_process_start(&process->isolated, frame, target, ret_stage);
	int r = pid < 0 ? pid : watch_isolated(table, process);

	/* It has started, but the agent could not learn of its end. */
	if (pid >= 0 && r < 0)
		(void)isolated_process_signal(&process->isolated, SIGKILL);
	return r < 0 ? r : pid;
}

/* Returns the pid, or -errno with its stage. */
static int start(struct process_table *table, const struct frame *frame,
	const struct payload_exec *exec, struct process *process, int *ret_stage)
{
	struct spawn_target target = {.fds = {-1, -1, -1, -1}};
	int r;

	*ret_stage = AGENT_STAGE_SETUP;
	if (exec->flags &
		~(AGENT_EXEC_STDIN | AGENT_EXEC_PTY | AGENT_EXEC_ISOLATED | AGENT_EXEC_RESULT))
		return -EINVAL;
	if ((exec->flags & AGENT_EXEC_RESULT) &&
		(exec->flags & (AGENT_EXEC_PTY | AGENT_EXEC_ISOLATED)))
		return -EINVAL;
	if (table->closed)
		return -ESHUTDOWN;
	if (table->count == AGENT_PROCESSES_MAX)
		return -EAGAIN;
	r = process_streams_open(
		&process->streams, &table->base, exec, table->epoll_fd, process->id, &target);
	if (r == 0)
		r = process_cgroup_open(&table->groups, &process->group);
	target.group_fd = process->group.threads_fd;
	process->before = limit_hits_read(&table->limit_hits);
	process->started_us = clock_steady_us();
	if (r == 0 && (exec->flags & AGENT_EXEC_ISOLATED))
		r = start_isolated(table, frame, process, &target, ret_stage);
	else if (r == 0)
		r = spawn_run(&table->base, exec, &target, ret_stage);
	process_streams_close_target(&target);
	return r;
}

static struct process *process_new(uint32_t id)
{
	struct process *process = mem_new(sizeof(*process));

	process->id = id;
	process_streams_init(&process->streams);
	process->group = PROCESS_CGROUP_NONE;
	process->isolated = ISOLATED_PROCESS_NONE;
	return process;
}

int process_exec(struct process_table *table, const struct frame *frame)
{
	struct payload_exec exec;
	struct process *process;
	int stage;
	int r;

	if (*slot_of(table, frame->id))
		return -EPROTO;
	r = payload_exec_parse(frame, &exec);
	if (r < 0)
		return r;
	process = process_new(frame->id);
	if (exec.flags & AGENT_EXEC_ISOLATED)
		process->isolated.sock = control_take(table->control, frame->id);
	if ((exec.flags & AGENT_EXEC_ISOLATED) && process->isolated.sock < 0) {
		payload_exec_fini(&exec);
		process_free(table, process);
		return -EPROTO;
	}
	r = start(table, frame, &exec, process, &stage);
	payload_exec_fini(&exec);
	if (r < 0) {
		process_free(table, process);
		report_failed(table->link, frame->id, stage, -r);
		return 0;
	}
	process->pid = r;
	*slot_of(table, process->id) = process;
	table->count++;
	report_started(table->link, process->id, process->pid);
	return 0;
}

/* Input */

static void feed(struct process_table *table, struct process *process, uint64_t taken_before)
{
	stdin_pipe_write(&process->streams.stdin_pipe, table->epoll_fd, process->id);
	if (process->streams.stdin_pipe.taken != taken_before)
		report_input(table->link, process->id, process->streams.stdin_pipe.taken,
			process->streams.stdin_pipe.received);
}

int process_stdin(struct process_table *table, const struct frame *frame)
{
	struct process *process = find(table, frame->id);
	uint64_t before;
	int r;

	if (!process)
		return 0;
	before = process->streams.stdin_pipe.taken;
	r = stdin_pipe_add(&process->streams.stdin_pipe, frame->payload, frame->len);
	if (r < 0)
		return r;
	feed(table, process, before);
	return 0;
}

int process_stdin_close(struct process_table *table, const struct frame *frame)
{
	struct process *process = find(table, frame->id);
	int r = payload_empty_parse(frame);

	if (r < 0 || !process)
		return r;
	stdin_pipe_end(&process->streams.stdin_pipe);
	feed(table, process, process->streams.stdin_pipe.taken);
	return 0;
}

int process_resize(struct process_table *table, const struct frame *frame)
{
	struct process *process = find(table, frame->id);
	struct payload_resize size;
	int r = payload_resize_parse(frame, &size);

	if (r < 0)
		return r;
	if (process)
		process_streams_resize(&process->streams, size.columns, size.rows);
	return 0;
}

/* Signals */

int process_signal(struct process_table *table, const struct frame *frame)
{
	struct process *process = *slot_of(table, frame->id);
	struct payload_signal request;
	int r = payload_signal_parse(frame, &request);

	if (r < 0)
		return r;
	if (process && request.whole_tree)
		survivors_signal(table, process, request.signal);
	else if (process && !process->ended && process->isolated.sock >= 0)
		(void)isolated_process_signal(&process->isolated, request.signal);
	else if (process && !process->ended)
		kill(process->pid, request.signal);
	return 0;
}

int process_patience_ms(const struct process_table *table)
{
	uint64_t now;

	if (table->tick_ms == 0)
		return -1;
	now = clock_steady_ms();
	return now < table->tick_ms ? (int)(table->tick_ms - now) : 0;
}

void process_tick(struct process_table *table)
{
	if (table->tick_ms == 0 || clock_steady_ms() < table->tick_ms)
		return;
	table->tick_ms = 0;
	if (process_cgroup_clean(&table->groups))
		process_try_again_later(table);
	for (struct process *p = next_of(table, NULL), *next; p; p = next) {
		next = next_of(table, p);
		if (!survivors_try_again(table, p))
			drop(table, p);
	}
}

/* The rest of a command's life */

int process_ack(struct process_table *table, const struct frame *frame)
{
	struct process *process = find(table, frame->id);
	uint64_t offset;
	int r = payload_u64_parse(frame, &offset);

	if (r < 0 || !process)
		return r;
	r = output_backlog_ack(&process->streams.backlog, offset);
	if (r < 0)
		return r;
	pump(table, process);
	return 0;
}

int process_forget(struct process_table *table, const struct frame *frame)
{
	struct process *process = find(table, frame->id);
	int r = payload_empty_parse(frame);

	if (r < 0 || !process)
		return r;
	process->is_forgotten = true;
	if (process_cgroup_is_real(&process->group))
		process_streams_close(&process->streams);
	else
		drop(table, process);
	return 0;
}

int process_tell_usage(struct process_table *table, const struct frame *frame)
{
	const struct process *process = find(table, frame->id);
	int r = payload_empty_parse(frame);

	if (r < 0 || !process)
		return r;
	report_used(table->link, frame->id,
		process_cgroup_is_real(&process->group) ? process_cgroup_cpu_us(&process->group)
							: 0);
	return 0;
}

static struct process *find_running(const struct process_table *table, pid_t pid)
{
	for (struct process *p = next_of(table, NULL); p; p = next_of(table, p)) {
		if (!p->ended && p->pid == pid && p->isolated.sock < 0)
			return p;
	}
	return NULL;
}

/*
 * The command that a thread descends from, which may have ended before it; NULL for the agent's own
 * threads.
 */
static struct process *find_of_thread(const struct process_table *table, pid_t thread)
{
	bool has_groups = table->groups.dir_fd >= 0;
	struct process *ended = NULL;
	uint32_t number = 0;

	if (has_groups && !process_cgroup_of_thread(thread, &number))
		return NULL;
	for (struct process *p = next_of(table, NULL); p; p = next_of(table, p)) {
		bool is_its =
			has_groups ? process_cgroup_is_real(&p->group) && p->group.number == number
				   : getsid(thread) == p->pid;

		if (is_its && !p->ended)
			return p;
		if (is_its)
			ended = p;
	}
	return ended;
}

uint32_t process_of_process(const struct process_table *table, pid_t pid)
{
	const struct process *process = find_of_thread(table, pid);

	return process ? process->id : 0;
}

/* Finds the command while its thread waits, and counts the call once it is answered. */
void process_deny(struct process_table *table, uint32_t id)
{
	struct process *process = id ? *slot_of(table, id) : NULL;
	int listener_fd = process ? process->isolated.listener_fd : table->denials_fd;
	struct denied_syscall denied_syscall;

	/* An event of an isolated command that was closed meanwhile must not be read from
	 * another listener. */
	if ((id && !process) || listener_fd < 0 ||
		!denied_syscall_receive(listener_fd, &denied_syscall))
		return;
	process = find_of_thread(table, denied_syscall.thread);
	if (denied_syscall_answer(listener_fd, &denied_syscall) && process && !process->ended)
		denied_syscall_note(&process->end.denied, denied_syscall.number);
}

static uint64_t microseconds(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * 1000000 + (uint64_t)time->tv_usec;
}

static void record_end(const struct process_table *table, struct process *process, int wait_status,
	const struct rusage *usage)
{
	struct limit_hits_counts now = limit_hits_read(&table->limit_hits);

	process->ended = true;
	process->end.wait_status = (uint32_t)wait_status;
	process->end.duration_us = clock_steady_us() - process->started_us;
	process->end.cpu_us =
		process_cgroup_is_real(&process->group)
			? process_cgroup_cpu_us(&process->group)
			: microseconds(&usage->ru_utime) + microseconds(&usage->ru_stime);
	process->end.peak_bytes = (uint64_t)usage->ru_maxrss * 1024;
	process->end.during.oom_kills = now.oom_kills - process->before.oom_kills;
	process->end.during.refused_forks = now.refused_forks - process->before.refused_forks;
	if (wait_status != 0 && limit_hits_is_disk_full())
		process->end.flags |= AGENT_EXITED_DISK_WAS_FULL;
}

static void conclude(struct process_table *table, struct process *process, int wait_status,
	const struct rusage *usage)
{
	record_end(table, process, wait_status, usage);
	process_streams_drain(&process->streams);
	if (survivors_look(table, process))
		pump(table, process);
	else
		drop(table, process);
}

bool process_end(
	struct process_table *table, pid_t pid, int wait_status, const struct rusage *usage)
{
	struct process *process = find_running(table, pid);

	if (process)
		conclude(table, process, wait_status, usage);
	return process != NULL;
}

static void isolated_ready(struct process_table *table, struct process *process)
{
	struct rusage usage = {0};
	uint64_t peak_bytes;
	int wait_status;

	if (process->isolated.sock < 0)
		return;
	isolated_process_read_end(&process->isolated, &wait_status, &peak_bytes);
	usage.ru_maxrss = (long)(peak_bytes / 1024);
	isolated_process_close(&process->isolated);
	conclude(table, process, wait_status, &usage);
}

bool process_has_isolated(const struct process_table *table)
{
	for (struct process *p = next_of(table, NULL); p; p = next_of(table, p)) {
		if (p->isolated.sock >= 0)
			return true;
	}
	return false;
}

static void terminal_ready(struct process_table *table, struct process *process, uint32_t events)
{
	if ((events & EPOLLOUT) && process->streams.stdin_pipe.queue.len > 0)
		feed(table, process, process->streams.stdin_pipe.taken);
	output_pipe_wake(&process->streams.output_pipes[0], events);
	pump(table, process);
}

void process_ready(struct process_table *table, enum watch_role role, uint32_t id, uint32_t events)
{
	struct process *process = *slot_of(table, id);

	if (!process)
		return;
	switch (role) {
	case WATCH_GROUP:
		process_cgroup_heard(&process->group);
		if (process->ended && !survivors_look(table, process))
			drop(table, process);
		return;
	case WATCH_ISOLATED:
		isolated_ready(table, process);
		return;
	case WATCH_STDIN:
		feed(table, process, process->streams.stdin_pipe.taken);
		return;
	case WATCH_TERMINAL:
		terminal_ready(table, process, events);
		return;
	default:
		output_pipe_wake(&process->streams.output_pipes[role - WATCH_STDOUT], events);
		pump(table, process);
	}
}

void process_send_all(struct process_table *table)
{
	for (struct process *p = next_of(table, NULL); p; p = next_of(table, p))
		pump(table, p);
}

/* Repeats what the last link may not have delivered. */
static void resume(struct process_table *table, struct process *process)
{
	uint32_t count = process->ended ? process_cgroup_count(&process->group) : 0;

	process->end_sent = process->none_sent = false;
	report_started(table->link, process->id, process->pid);
	if (count > 0)
		survivors_tell(table, process, count);
	if (process->is_forgotten)
		return;
	output_backlog_rewind(&process->streams.backlog);
	report_input(table->link, process->id, process->streams.stdin_pipe.taken,
		process->streams.stdin_pipe.received);
	pump(table, process);
}

void process_resume_all(struct process_table *table)
{
	struct buf *out = daemon_link_begin(
		table->link, AGENT_HELLO, 0, (uint32_t)(4 + 4 + 4 * table->count));

	assert(out);
	pack_u32(out, AGENT_VERSION);
	pack_u32(out, table->count);
	for (struct process *p = next_of(table, NULL); p; p = next_of(table, p))
		pack_u32(out, p->id);
	for (struct process *p = next_of(table, NULL); p; p = next_of(table, p))
		resume(table, p);
}
