/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/process/streams/output_pipe.h"

#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* More than the kernel keeps for a terminal: it cannot tell how much that is, as a pipe can. */
#define TERMINAL_HOLDS (72u * 1024)

void output_pipe_close(struct output_pipe *output_pipe)
{
	fd_close(output_pipe->fd);
	output_pipe->fd = -1;
	output_pipe->readable = false;
}

void output_pipe_wake(struct output_pipe *output_pipe, uint32_t events)
{
	if (output_pipe->fd < 0)
		return;
	/* Hung up without a byte to read: that is the end, and needs no buffer to find it in. */
	if (!output_pipe->is_terminal && (events & (EPOLLIN | EPOLLHUP)) == EPOLLHUP) {
		output_pipe_close(output_pipe);
		return;
	}
	output_pipe->readable = true;
	output_pipe->hung_up |= (events & (EPOLLHUP | EPOLLERR)) != 0;
}

/*
 * Notes what a read says about the next one. A short read has emptied a pipe, and only the end of
 * the file brings no event, hence hung_up. A terminal is read in lines or pages, whatever it holds;
 * and a terminal that no process has open any more (EIO) may be opened again, as long as the
 * command lives.
 */
static void note_read(struct output_pipe *output_pipe, ssize_t n, size_t room)
{
	if (output_pipe->draining) {
		output_pipe->left -= n > 0 ? (size_t)n : 0;
		if (n <= 0 || output_pipe->left == 0)
			output_pipe_close(output_pipe);
	} else if (output_pipe->is_terminal) {
		output_pipe->readable = n > 0;
	} else if (n < 0 && errno == EAGAIN) {
		output_pipe->readable = false;
	} else if (n <= 0) {
		output_pipe_close(output_pipe);
	} else if ((size_t)n < room && !output_pipe->hung_up) {
		output_pipe->readable = false;
	}
}

void output_pipe_read(struct output_pipe *output_pipe, size_t max,
	enum output_backlog_stream stream, struct output_backlog *backlog, struct output_tail *tail)
{
	uint8_t *at;
	size_t room;
	ssize_t n;

	if (!output_pipe->readable)
		return;
	room = output_backlog_space(backlog, &at);
	if (room == 0)
		return;
	if (room > max)
		room = max;
	if (output_pipe->draining && room > output_pipe->left)
		room = output_pipe->left;
	n = read(output_pipe->fd, at, room);
	if (n > 0) {
		output_tail_add(tail, at, (size_t)n);
		output_backlog_add(backlog, stream, (size_t)n, (uint32_t)clock_steady_ms());
	}
	note_read(output_pipe, n, room);
}

void output_pipe_drain(struct output_pipe *output_pipe)
{
	int left = TERMINAL_HOLDS;

	if (output_pipe->fd < 0)
		return;
	if (!output_pipe->is_terminal &&
		(ioctl(output_pipe->fd, FIONREAD, &left) < 0 || left == 0)) {
		output_pipe_close(output_pipe);
		return;
	}
	output_pipe->draining = output_pipe->readable = true;
	output_pipe->left = (size_t)left;
}
