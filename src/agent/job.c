/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/job.h"

#include "agent/lineage.h"
#include "base/clock.h"
#include "base/fd.h"
#include "wire/agent.h"
#include "wire/pack.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Descriptors that commands never get, so that links and file requests always find one. */
#define FDS_RESERVED 96

/* The read end of standard output or standard error. */
struct outlet {
	int fd;
	bool readable; /* since the last event no read came back short */
	bool hung_up;  /* read up to the end of the file */
	bool draining; /* the command ended: only what was there then is read */
	size_t left;   /* how much that is */
};

struct job {
	struct job *next;
	uint32_t id;
	pid_t pid;
	uint64_t started_us;
	struct inlet inlet;
	struct outlet outlets[2];
	struct backlog backlog;
	bool ended;
	bool end_sent;
	uint32_t wait_status;
	uint64_t cpu_us;
	uint64_t peak_bytes;
	uint64_t duration_us;
};

void job_table_init(struct job_table *table, int epoll_fd, struct uplink *link)
{
	*table = (struct job_table){.epoll_fd = epoll_fd, .link = link};
	launch_prepare(&table->base);
}

static struct job **slot_of(struct job_table *table, uint32_t id)
{
	struct job **slot = &table->heads[id % JOB_HEADS];

	while (*slot && (*slot)->id != id)
		slot = &(*slot)->next;
	return slot;
}

static struct job *find(struct job_table *table, uint32_t id)
{
	return *slot_of(table, id);
}

static void job_free(struct job *job)
{
	inlet_fini(&job->inlet);
	for (size_t i = 0; i < 2; i++)
		fd_close(job->outlets[i].fd);
	backlog_fini(&job->backlog);
	free(job);
}

/* Output */

static void outlet_close(struct outlet *outlet)
{
	fd_close(outlet->fd);
	outlet->fd = -1;
	outlet->readable = false;
}

/*
 * Reads once. A read that comes back short has emptied the pipe, and the next byte brings the next
 * event (the watch is edge-triggered); only the end of the file brings none, hence hung_up.
 */
static void outlet_read(struct outlet *outlet, enum backlog_stream stream, struct backlog *backlog)
{
	uint8_t *at;
	size_t room = backlog_space(backlog, &at);
	ssize_t n;

	if (room == 0)
		return;
	if (outlet->draining && room > outlet->left)
		room = outlet->left;
	n = read(outlet->fd, at, room);
	if (n < 0 && errno == EAGAIN && !outlet->draining) {
		outlet->readable = false;
		return;
	}
	if (n <= 0) {
		outlet_close(outlet);
		return;
	}
	backlog_add(backlog, stream, (size_t)n);
	if (outlet->draining) {
		outlet->left -= (size_t)n;
		if (outlet->left == 0)
			outlet_close(outlet);
	} else if ((size_t)n < room && !outlet->hung_up) {
		outlet->readable = false;
	}
}

/* Reads both pipes once; false when there is nothing to read, or no room. */
static bool read_output(struct job *job)
{
	uint64_t before = job->backlog.end;

	for (size_t i = 0; i < 2; i++) {
		struct outlet *outlet = &job->outlets[i];

		if (outlet->readable)
			outlet_read(outlet, i ? BACKLOG_STDERR : BACKLOG_STDOUT, &job->backlog);
	}
	return job->backlog.end != before;
}

static void send_output(struct job_table *table, struct job *job)
{
	struct backlog_piece piece;

	while (backlog_next(&job->backlog, AGENT_OUTPUT_CHUNK, &piece)) {
		if (!uplink_put_output(table->link, job->id, &piece))
			return;
		backlog_send(&job->backlog, piece.len);
	}
}

static void send_end(struct job_table *table, struct job *job)
{
	const struct backlog *backlog = &job->backlog;
	struct buf *out;

	if (!job->ended || job->end_sent || backlog->sent != backlog->end ||
		job->outlets[0].fd >= 0 || job->outlets[1].fd >= 0)
		return;
	out = uplink_begin(table->link, AGENT_EXITED, job->id, 4 + 4 * 8);
	if (!out)
		return;
	pack_u32(out, job->wait_status);
	pack_u64(out, backlog->end);
	pack_u64(out, job->cpu_us);
	pack_u64(out, job->peak_bytes);
	pack_u64(out, job->duration_us);
	job->end_sent = true;
}

/* Moves output along as far as window and link allow; at most one window's worth at a time. */
static void pump(struct job_table *table, struct job *job)
{
	while (read_output(job))
		send_output(table, job);
	send_output(table, job);
	send_end(table, job);
}

/* Exec */

static int report_failure(struct job_table *table, uint32_t id, int stage, int errnum)
{
	struct buf *out = uplink_begin(table->link, AGENT_FAILED, id, 1 + 4);

	if (out) {
		pack_u8(out, (uint8_t)stage);
		pack_u32(out, (uint32_t)errnum);
	}
	return 0;
}

/*
 * One pipe: *ours is the agent's end, nonblocking, *theirs the command's. The user may open
 * /dev/stdout by name only if the pipe is the user's.
 */
static int open_pipe(const struct job_table *table, const struct payload_exec *exec, bool is_input,
	int *ours, int *theirs)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	*ours = ends[is_input ? 1 : 0];
	*theirs = ends[is_input ? 0 : 1];
	if ((rlim_t)ends[1] + FDS_RESERVED > table->base.files.rlim_max)
		return -EMFILE;
	if (exec->uid != table->base.uid && fchown(*theirs, exec->uid, exec->gid) < 0)
		return -errno;
	return fcntl(*ours, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

static int open_pipes(
	struct job_table *table, const struct payload_exec *exec, struct job *job, int fds[3])
{
	int r = 0;

	if (exec->flags & AGENT_EXEC_STDIN)
		r = open_pipe(table, exec, true, &job->inlet.fd, &fds[0]);
	for (size_t i = 0; i < 2 && r == 0; i++) {
		struct outlet *outlet = &job->outlets[i];

		r = open_pipe(table, exec, false, &outlet->fd, &fds[1 + i]);
		if (r == 0)
			r = watch_add(table->epoll_fd, outlet->fd, EPOLLIN | EPOLLET,
				i ? WATCH_STDERR : WATCH_STDOUT, job->id);
	}
	return r;
}

/* The pid, or -errno with its stage. */
static int start(
	struct job_table *table, const struct payload_exec *exec, struct job *job, int *ret_stage)
{
	int fds[3] = {-1, -1, -1};
	int r;

	*ret_stage = AGENT_STAGE_SETUP;
	if (exec->flags & ~AGENT_EXEC_STDIN)
		return -EINVAL;
	if (table->closed)
		return -ESHUTDOWN;
	if (table->count == AGENT_PROCESSES_MAX)
		return -EAGAIN;
	r = open_pipes(table, exec, job, fds);
	job->started_us = clock_steady_us();
	if (r == 0)
		r = launch_run(&table->base, exec, fds, ret_stage);
	for (size_t i = 0; i < 3; i++)
		fd_close(fds[i]);
	return r;
}

int job_exec(struct job_table *table, const struct frame *frame)
{
	struct payload_exec exec;
	struct job *job;
	struct buf *out;
	int stage;
	int r;

	if (find(table, frame->id))
		return -EPROTO;
	r = payload_exec_parse(frame, &exec);
	if (r < 0)
		return r;
	job = mem_new(sizeof(*job));
	job->id = frame->id;
	job->outlets[0].fd = job->outlets[1].fd = -1;
	inlet_init(&job->inlet, -1);
	backlog_init(&job->backlog);
	r = start(table, &exec, job, &stage);
	payload_exec_fini(&exec);
	if (r < 0) {
		job_free(job);
		return report_failure(table, frame->id, stage, -r);
	}
	job->pid = r;
	*slot_of(table, job->id) = job;
	table->count++;
	out = uplink_begin(table->link, AGENT_STARTED, job->id, 4);
	if (out)
		pack_u32(out, (uint32_t)job->pid);
	return 0;
}

/* Input */

static void acknowledge_input(struct job_table *table, const struct job *job)
{
	struct buf *out = uplink_begin(table->link, AGENT_STDIN_ACK, job->id, 8);

	if (out)
		pack_u64(out, job->inlet.taken);
}

static void feed(struct job_table *table, struct job *job, uint64_t taken_before)
{
	inlet_write(&job->inlet, table->epoll_fd, job->id);
	if (job->inlet.taken != taken_before)
		acknowledge_input(table, job);
}

int job_stdin(struct job_table *table, const struct frame *frame)
{
	struct job *job = find(table, frame->id);
	uint64_t before;
	int r;

	if (!job)
		return 0;
	before = job->inlet.taken;
	r = inlet_add(&job->inlet, frame->payload, frame->len);
	if (r < 0)
		return r;
	feed(table, job, before);
	return 0;
}

int job_stdin_close(struct job_table *table, const struct frame *frame)
{
	struct job *job = find(table, frame->id);
	int r = payload_empty_parse(frame);

	if (r == 0 && job)
		inlet_end(&job->inlet);
	return r;
}

/* The rest of a command's life */

/*
 * The number of a process that was reaped is only given out again when nobody is left in its
 * session. So as long as no process has it, that session can still be reached.
 */
static bool is_number_ours(const struct job *job)
{
	return !job->ended || (kill(job->pid, 0) < 0 && errno == ESRCH);
}

int job_signal(struct job_table *table, const struct frame *frame)
{
	struct job *job = find(table, frame->id);
	struct payload_signal request;
	int r = payload_signal_parse(frame, &request);

	if (r < 0)
		return r;
	if (!job || !is_number_ours(job))
		return 0;
	if (request.whole_tree)
		lineage_signal(job->pid, request.signal);
	else if (!job->ended)
		kill(job->pid, request.signal);
	return 0;
}

int job_ack(struct job_table *table, const struct frame *frame)
{
	struct job *job = find(table, frame->id);
	uint64_t offset;
	int r = payload_u64_parse(frame, &offset);

	if (r < 0 || !job)
		return r;
	r = backlog_ack(&job->backlog, offset);
	if (r < 0)
		return r;
	pump(table, job);
	return 0;
}

int job_forget(struct job_table *table, const struct frame *frame)
{
	struct job **slot = slot_of(table, frame->id);
	struct job *job = *slot;
	int r = payload_empty_parse(frame);

	if (r < 0 || !job)
		return r;
	*slot = job->next;
	table->count--;
	job_free(job);
	return 0;
}

bool job_end(struct job_table *table, pid_t pid, int wait_status, const struct rusage *usage)
{
	struct job *job = NULL;

	for (size_t i = 0; i < JOB_HEADS && !job; i++) {
		job = table->heads[i];
		while (job && (job->ended || job->pid != pid))
			job = job->next;
	}
	if (!job)
		return false;
	job->ended = true;
	job->wait_status = (uint32_t)wait_status;
	job->duration_us = clock_steady_us() - job->started_us;
	job->cpu_us = (uint64_t)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1000000 +
		      (uint64_t)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec);
	job->peak_bytes = (uint64_t)usage->ru_maxrss * 1024;
	inlet_discard(&job->inlet);
	/* A child that keeps the pipes may go on writing: what it adds is not waited for. */
	for (size_t i = 0; i < 2; i++) {
		struct outlet *outlet = &job->outlets[i];
		int left = 0;

		if (outlet->fd < 0)
			continue;
		if (ioctl(outlet->fd, FIONREAD, &left) < 0 || left == 0) {
			outlet_close(outlet);
			continue;
		}
		outlet->draining = outlet->readable = true;
		outlet->left = (size_t)left;
	}
	pump(table, job);
	return true;
}

void job_ready(struct job_table *table, enum watch_role role, uint32_t id, uint32_t events)
{
	struct job *job = find(table, id);
	struct outlet *outlet;

	if (!job)
		return;
	if (role == WATCH_STDIN) {
		feed(table, job, job->inlet.taken);
		return;
	}
	outlet = &job->outlets[role == WATCH_STDERR];
	if (outlet->fd < 0)
		return;
	/* Hung up without a byte to read: that is the end, and needs no buffer to find it in. */
	if ((events & (EPOLLIN | EPOLLHUP)) == EPOLLHUP)
		outlet_close(outlet);
	outlet->readable = outlet->fd >= 0;
	outlet->hung_up |= (events & (EPOLLHUP | EPOLLERR)) != 0;
	pump(table, job);
}

void job_send_all(struct job_table *table)
{
	for (size_t i = 0; i < JOB_HEADS; i++) {
		for (struct job *p = table->heads[i]; p; p = p->next)
			pump(table, p);
	}
}

void job_resume_all(struct job_table *table)
{
	struct buf *out =
		uplink_begin(table->link, AGENT_HELLO, 0, (uint32_t)(4 + 4 + 4 * table->count));

	assert(out);
	pack_u32(out, AGENT_VERSION);
	pack_u32(out, table->count);
	for (size_t i = 0; i < JOB_HEADS; i++) {
		for (struct job *p = table->heads[i]; p; p = p->next)
			pack_u32(out, p->id);
	}
	for (size_t i = 0; i < JOB_HEADS; i++) {
		for (struct job *p = table->heads[i]; p; p = p->next) {
			backlog_rewind(&p->backlog);
			p->end_sent = false;
			/* An acknowledgement may have been lost with the last link. */
			if (p->inlet.taken > 0)
				acknowledge_input(table, p);
			pump(table, p);
		}
	}
}
