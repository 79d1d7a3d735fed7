/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/job_streams.h"

#include "agent/pty.h"
#include "agent/watch.h"
#include "base/fd.h"
#include "wire/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

/* Descriptors that commands never get, so that links and file requests always find one. */
#define FDS_RESERVED 96

#define PIPE_BYTES (256 * 1024)

void job_streams_init(struct job_streams *streams)
{
	streams->outlets[0] = streams->outlets[1] = OUTLET_INIT;
	inlet_init(&streams->inlet);
	backlog_init(&streams->backlog);
}

/*
 * One pipe: *ours is the agent's end, nonblocking, *theirs the command's. The user may open
 * /dev/stdout by name only if the pipe is the user's.
 */
static int open_pipe(const struct launch_base *base, const struct payload_exec *exec, bool is_input,
	int *ours, int *theirs)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	*ours = ends[is_input ? 1 : 0];
	*theirs = ends[is_input ? 0 : 1];
	if ((rlim_t)ends[1] + FDS_RESERVED > base->files.rlim_max)
		return -EMFILE;
	/* Fewer and larger reads of a command that writes much. If it is refused, so be it. */
	if (!is_input)
		(void)fcntl(*ours, F_SETPIPE_SZ, PIPE_BYTES);
	if (exec->uid != base->uid && fchown(*theirs, exec->uid, exec->gid) < 0)
		return -errno;
	return fcntl(*ours, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

static int open_pipes(struct job_streams *streams, const struct launch_base *base,
	const struct payload_exec *exec, int epoll_fd, uint32_t id, struct launch_seat *seat)
{
	int r = 0;

	if (exec->flags & AGENT_EXEC_STDIN) {
		int ours = -1;

		r = open_pipe(base, exec, true, &ours, &seat->fds[0]);
		inlet_open_pipe(&streams->inlet, ours);
	}
	for (size_t i = 0; i < 2 && r == 0; i++) {
		struct outlet *outlet = &streams->outlets[i];

		r = open_pipe(base, exec, false, &outlet->fd, &seat->fds[1 + i]);
		if (r == 0)
			r = watch_add(epoll_fd, outlet->fd, EPOLLIN | EPOLLET,
				i ? WATCH_STDERR : WATCH_STDOUT, id);
	}
	return r;
}

/* One descriptor for both directions, so one watch for both. */
static int open_terminal(struct job_streams *streams, const struct launch_base *base,
	const struct payload_exec *exec, int epoll_fd, uint32_t id, struct launch_seat *seat)
{
	struct outlet *outlet = &streams->outlets[0];
	int r = pty_open(exec, base->uid, &outlet->fd, &seat->fds[0]);

	if (r < 0)
		return r;
	outlet->is_terminal = seat->is_terminal = true;
	inlet_open_terminal(&streams->inlet, outlet->fd);
	if ((rlim_t)seat->fds[0] + FDS_RESERVED > base->files.rlim_max)
		return -EMFILE;
	seat->fds[1] = seat->fds[2] = seat->fds[0];
	return watch_add(epoll_fd, outlet->fd, EPOLLIN | EPOLLOUT | EPOLLET, WATCH_TERMINAL, id);
}

int job_streams_open(struct job_streams *streams, const struct launch_base *base,
	const struct payload_exec *exec, int epoll_fd, uint32_t id, struct launch_seat *seat)
{
	if (exec->flags & AGENT_EXEC_PTY)
		return open_terminal(streams, base, exec, epoll_fd, id, seat);
	return open_pipes(streams, base, exec, epoll_fd, id, seat);
}

void job_streams_close_seat(struct launch_seat *seat)
{
	fd_close(seat->fds[0]);
	for (size_t i = 1; i < 3 && !seat->is_terminal; i++)
		fd_close(seat->fds[i]);
}

void job_streams_close(struct job_streams *streams)
{
	inlet_discard(&streams->inlet);
	for (size_t i = 0; i < 2; i++)
		outlet_close(&streams->outlets[i]);
	backlog_fini(&streams->backlog);
}

bool job_streams_read(struct job_streams *streams)
{
	uint64_t before = streams->backlog.end;

	outlet_read(&streams->outlets[0], BACKLOG_STDOUT, &streams->backlog);
	outlet_read(&streams->outlets[1], BACKLOG_STDERR, &streams->backlog);
	return streams->backlog.end != before;
}

void job_streams_drain(struct job_streams *streams)
{
	inlet_discard(&streams->inlet);
	outlet_drain(&streams->outlets[0]);
	outlet_drain(&streams->outlets[1]);
}

bool job_streams_are_done(const struct job_streams *streams)
{
	return streams->backlog.sent == streams->backlog.end && streams->outlets[0].fd < 0 &&
	       streams->outlets[1].fd < 0;
}

void job_streams_resize(struct job_streams *streams, uint16_t columns, uint16_t rows)
{
	const struct outlet *outlet = &streams->outlets[0];

	if (outlet->is_terminal && outlet->fd >= 0)
		pty_resize(outlet->fd, columns, rows);
}
