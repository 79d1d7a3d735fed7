/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/process/streams/process_streams.h"

#include "agent/link/watch.h"
#include "agent/process/streams/pty.h"
#include "base/fd.h"
#include "wire/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Descriptors that commands never get, so that links and file requests always find one. */
#define FDS_RESERVED 96

#define PIPE_BYTES (256 * 1024)

void process_streams_init(struct process_streams *streams)
{
	for (size_t i = 0; i < array_len(streams->output_pipes); i++)
		streams->output_pipes[i] = OUTPUT_PIPE_INIT;
	stdin_pipe_init(&streams->stdin_pipe);
	output_backlog_init(&streams->backlog);
}

/*
 * One pipe: *ours is the agent's end, nonblocking, *theirs the command's. The user may open
 * /dev/stdout by name only if the pipe is the user's.
 */
static int open_pipe(const struct spawn_base *base, const struct payload_exec *exec, bool is_input,
	int *ours, int *theirs)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	*ours = ends[is_input ? 1 : 0];
	*theirs = ends[is_input ? 0 : 1];
	if ((rlim_t)ends[1] + FDS_RESERVED > base->files.rlim_max)
		return -EMFILE;
	/* Makes for fewer and larger reads of a command that writes much. The kernel may refuse
	 * it. */
	if (!is_input)
		(void)fcntl(*ours, F_SETPIPE_SZ, PIPE_BYTES);
	if (exec->uid != base->uid && fchown(*theirs, exec->uid, exec->gid) < 0)
		return -errno;
	return fcntl(*ours, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

static int open_pipes(struct process_streams *streams, const struct spawn_base *base,
	const struct payload_exec *exec, int epoll_fd, uint32_t id, struct spawn_target *target)
{
	static const enum watch_role roles[] = {WATCH_STDOUT, WATCH_STDERR, WATCH_RESULT};
	size_t count = exec->flags & AGENT_EXEC_RESULT ? 3 : 2;
	int r = 0;

	if (exec->flags & AGENT_EXEC_STDIN) {
		int ours = -1;

		r = open_pipe(base, exec, true, &ours, &target->fds[0]);
		stdin_pipe_open_pipe(&streams->stdin_pipe, ours);
	}
	for (size_t i = 0; i < count && r == 0; i++) {
		struct output_pipe *output_pipe = &streams->output_pipes[i];

		r = open_pipe(base, exec, false, &output_pipe->fd, &target->fds[1 + i]);
		if (r == 0)
			r = watch_add(epoll_fd, output_pipe->fd, EPOLLIN | EPOLLET, roles[i], id);
	}
	return r;
}

/* One descriptor for both directions, so one watch for both. */
static int open_terminal(struct process_streams *streams, const struct spawn_base *base,
	const struct payload_exec *exec, int epoll_fd, uint32_t id, struct spawn_target *target)
{
	struct output_pipe *output_pipe = &streams->output_pipes[0];
	int r = pty_open(exec, base->uid, &output_pipe->fd, &target->fds[0]);

	if (r < 0)
		return r;
	output_pipe->is_terminal = target->is_terminal = true;
	stdin_pipe_open_terminal(&streams->stdin_pipe, output_pipe->fd);
	if ((rlim_t)target->fds[0] + FDS_RESERVED > base->files.rlim_max)
		return -EMFILE;
	target->fds[1] = target->fds[2] = target->fds[0];
	return watch_add(
		epoll_fd, output_pipe->fd, EPOLLIN | EPOLLOUT | EPOLLET, WATCH_TERMINAL, id);
}

int process_streams_open(struct process_streams *streams, const struct spawn_base *base,
	const struct payload_exec *exec, int epoll_fd, uint32_t id, struct spawn_target *target)
{
	if (exec->flags & AGENT_EXEC_PTY)
		return open_terminal(streams, base, exec, epoll_fd, id, target);
	return open_pipes(streams, base, exec, epoll_fd, id, target);
}

void process_streams_close_target(struct spawn_target *target)
{
	fd_close(target->fds[0]);
	for (size_t i = 1; i < 4 && !target->is_terminal; i++)
		fd_close(target->fds[i]);
}

void process_streams_close(struct process_streams *streams)
{
	stdin_pipe_discard(&streams->stdin_pipe);
	for (size_t i = 0; i < array_len(streams->output_pipes); i++)
		output_pipe_close(&streams->output_pipes[i]);
	output_backlog_fini(&streams->backlog);
}

/*
 * Reads the result pipe: only when the other two are empty, and only what it held before they were read. So
 * output that the command wrote before a result is never behind it.
 */
static void read_result(struct process_streams *streams, int held)
{
	const struct output_pipe *pipes = streams->output_pipes;

	if (held > 0 && !pipes[0].readable && !pipes[1].readable)
		output_pipe_read(&streams->output_pipes[2], (size_t)held, OUTPUT_BACKLOG_RESULT,
			&streams->backlog, &streams->tail);
}

/* How much the result pipe holds; at its end that is nothing, and the pipe is closed. */
static int look_at_result(struct process_streams *streams)
{
	struct output_pipe *result = &streams->output_pipes[2];
	int held = 0;

	if (!result->readable)
		return 0;
	if (ioctl(result->fd, FIONREAD, &held) < 0 || held == 0) {
		result->readable = false;
		if (result->hung_up || result->draining)
			output_pipe_close(result);
		return 0;
	}
	/* The event of what came before may still be on its way. */
	for (size_t i = 0; i < 2; i++)
		streams->output_pipes[i].readable = streams->output_pipes[i].fd >= 0;
	return held;
}

bool process_streams_read(struct process_streams *streams)
{
	uint64_t before = streams->backlog.end;
	int held = look_at_result(streams);

	output_pipe_read(&streams->output_pipes[0], SIZE_MAX, OUTPUT_BACKLOG_STDOUT,
		&streams->backlog, &streams->tail);
	output_pipe_read(&streams->output_pipes[1], SIZE_MAX, OUTPUT_BACKLOG_STDERR,
		&streams->backlog, &streams->tail);
	read_result(streams, held);
	return streams->backlog.end != before;
}

void process_streams_drain(struct process_streams *streams)
{
	stdin_pipe_discard(&streams->stdin_pipe);
	for (size_t i = 0; i < array_len(streams->output_pipes); i++)
		output_pipe_drain(&streams->output_pipes[i]);
}

bool process_streams_are_done(const struct process_streams *streams)
{
	for (size_t i = 0; i < array_len(streams->output_pipes); i++) {
		if (streams->output_pipes[i].fd >= 0)
			return false;
	}
	return streams->backlog.sent == streams->backlog.end;
}

void process_streams_resize(struct process_streams *streams, uint16_t columns, uint16_t rows)
{
	const struct output_pipe *output_pipe = &streams->output_pipes[0];

	if (output_pipe->is_terminal && output_pipe->fd >= 0)
		pty_resize(output_pipe->fd, columns, rows);
}
