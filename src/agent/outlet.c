/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/outlet.h"

#include "base/fd.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* More than the kernel keeps for a terminal: it cannot tell how much that is, as a pipe can. */
#define TERMINAL_HOLDS (72u * 1024)

void outlet_close(struct outlet *outlet)
{
	fd_close(outlet->fd);
	outlet->fd = -1;
	outlet->readable = false;
}

void outlet_wake(struct outlet *outlet, uint32_t events)
{
	if (outlet->fd < 0)
		return;
	/* Hung up without a byte to read: that is the end, and needs no buffer to find it in. */
	if (!outlet->is_terminal && (events & (EPOLLIN | EPOLLHUP)) == EPOLLHUP) {
		outlet_close(outlet);
		return;
	}
	outlet->readable = true;
	outlet->hung_up |= (events & (EPOLLHUP | EPOLLERR)) != 0;
}

/*
 * What a read says about the next one. A short read has emptied a pipe, and only the end of the
 * file brings no event, hence hung_up. A terminal is read in lines or pages, whatever it holds; and
 * one that nobody has open any more (EIO) may be opened again, for as long as the command lives.
 */
static void note_read(struct outlet *outlet, ssize_t n, size_t room)
{
	if (outlet->draining) {
		outlet->left -= n > 0 ? (size_t)n : 0;
		if (n <= 0 || outlet->left == 0)
			outlet_close(outlet);
	} else if (outlet->is_terminal) {
		outlet->readable = n > 0;
	} else if (n < 0 && errno == EAGAIN) {
		outlet->readable = false;
	} else if (n <= 0) {
		outlet_close(outlet);
	} else if ((size_t)n < room && !outlet->hung_up) {
		outlet->readable = false;
	}
}

void outlet_read(struct outlet *outlet, enum backlog_stream stream, struct backlog *backlog)
{
	uint8_t *at;
	size_t room;
	ssize_t n;

	if (!outlet->readable)
		return;
	room = backlog_space(backlog, &at);
	if (room == 0)
		return;
	if (outlet->draining && room > outlet->left)
		room = outlet->left;
	n = read(outlet->fd, at, room);
	if (n > 0)
		backlog_add(backlog, stream, (size_t)n);
	note_read(outlet, n, room);
}

void outlet_drain(struct outlet *outlet)
{
	int left = TERMINAL_HOLDS;

	if (outlet->fd < 0)
		return;
	if (!outlet->is_terminal && (ioctl(outlet->fd, FIONREAD, &left) < 0 || left == 0)) {
		outlet_close(outlet);
		return;
	}
	outlet->draining = outlet->readable = true;
	outlet->left = (size_t)left;
}
