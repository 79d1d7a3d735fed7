/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/process/streams/stdin_pipe.h"

#include "agent/link/watch.h"
#include "agent/process/streams/pty.h"
#include "base/fd.h"
#include "wire/agent.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

/* Ends of input that can wait in the queue; one more is not typed. */
#define ENDS_MAX 16

void stdin_pipe_init(struct stdin_pipe *stdin_pipe)
{
	*stdin_pipe =
		(struct stdin_pipe){.fd = -1, .queue = BUF_INIT(AGENT_STDIN_WINDOW + ENDS_MAX)};
}

void stdin_pipe_open_pipe(struct stdin_pipe *stdin_pipe, int fd)
{
	stdin_pipe->fd = fd;
}

void stdin_pipe_open_terminal(struct stdin_pipe *stdin_pipe, int master)
{
	stdin_pipe->fd = master;
	stdin_pipe->is_terminal = true;
}

void stdin_pipe_fini(struct stdin_pipe *stdin_pipe)
{
	if (!stdin_pipe->is_terminal)
		fd_close(stdin_pipe->fd);
	stdin_pipe->fd = -1;
	buf_fini(&stdin_pipe->queue);
}

static void throw_away(struct stdin_pipe *stdin_pipe)
{
	stdin_pipe->taken = stdin_pipe->received;
	buf_fini(&stdin_pipe->queue);
}

void stdin_pipe_discard(struct stdin_pipe *stdin_pipe)
{
	throw_away(stdin_pipe);
	stdin_pipe_fini(stdin_pipe);
}

int stdin_pipe_add(struct stdin_pipe *stdin_pipe, const uint8_t *data, size_t len)
{
	if (stdin_pipe->received - stdin_pipe->taken + len > AGENT_STDIN_WINDOW)
		return -EPROTO;
	stdin_pipe->received += len;
	if (stdin_pipe->fd < 0 || stdin_pipe->ends) {
		stdin_pipe->taken += len;
		return 0;
	}
	return buf_append(&stdin_pipe->queue, data, len) < 0 ? -EPROTO : 0;
}

void stdin_pipe_end(struct stdin_pipe *stdin_pipe)
{
	uint8_t eof;

	if (stdin_pipe->is_terminal && stdin_pipe->fd >= 0) {
		eof = pty_eof(stdin_pipe->fd);
		if (stdin_pipe->typed < ENDS_MAX && buf_append(&stdin_pipe->queue, &eof, 1) == 0)
			stdin_pipe->typed++;
		return;
	}
	stdin_pipe->ends = true;
	if (stdin_pipe->queue.len == 0)
		stdin_pipe_discard(stdin_pipe);
}

/*
 * Bytes typed here count as not taken while they wait, so the number may lag a little. It never
 * goes back.
 */
static void count_taken(struct stdin_pipe *stdin_pipe)
{
	uint64_t taken = stdin_pipe->received - stdin_pipe->queue.len;

	if (stdin_pipe->queue.len < stdin_pipe->received && taken > stdin_pipe->taken)
		stdin_pipe->taken = taken;
}

static void write_queue(struct stdin_pipe *stdin_pipe)
{
	while (stdin_pipe->queue.len > 0) {
		ssize_t n = write(stdin_pipe->fd, stdin_pipe->queue.data, stdin_pipe->queue.len);

		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0) { /* EPIPE; EIO of a terminal, which may be opened again */
			if (stdin_pipe->is_terminal)
				throw_away(stdin_pipe);
			else
				stdin_pipe_discard(stdin_pipe);
			return;
		}
		buf_consume(&stdin_pipe->queue, (size_t)n);
	}
	count_taken(stdin_pipe);
}

void stdin_pipe_write(struct stdin_pipe *stdin_pipe, int epoll_fd, uint32_t id)
{
	if (stdin_pipe->fd >= 0)
		write_queue(stdin_pipe);
	if (stdin_pipe->fd < 0)
		return;
	if (stdin_pipe->queue.len == 0) {
		buf_fini(&stdin_pipe->queue);
		stdin_pipe->typed = 0;
		if (stdin_pipe->ends)
			stdin_pipe_discard(stdin_pipe);
	} else if (!stdin_pipe->watched && !stdin_pipe->is_terminal) {
		/* Most commands never get here: their pipe takes all at once. */
		stdin_pipe->watched = true;
		if (watch_add(epoll_fd, stdin_pipe->fd, EPOLLOUT | EPOLLET, WATCH_STDIN, id) < 0)
			stdin_pipe_discard(stdin_pipe);
	}
}
