/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/inlet.h"

#include "agent/pty.h"
#include "agent/watch.h"
#include "base/fd.h"
#include "wire/agent.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

/* Ends of input that can wait in the queue; one more is not typed. */
#define ENDS_MAX 16

void inlet_init(struct inlet *inlet)
{
	*inlet = (struct inlet){.fd = -1, .queue = BUF_INIT(AGENT_STDIN_WINDOW + ENDS_MAX)};
}

void inlet_open_pipe(struct inlet *inlet, int fd)
{
	inlet->fd = fd;
}

void inlet_open_terminal(struct inlet *inlet, int master)
{
	inlet->fd = master;
	inlet->is_terminal = true;
}

void inlet_fini(struct inlet *inlet)
{
	if (!inlet->is_terminal)
		fd_close(inlet->fd);
	inlet->fd = -1;
	buf_fini(&inlet->queue);
}

static void throw_away(struct inlet *inlet)
{
	inlet->taken = inlet->received;
	buf_fini(&inlet->queue);
}

void inlet_discard(struct inlet *inlet)
{
	throw_away(inlet);
	inlet_fini(inlet);
}

int inlet_add(struct inlet *inlet, const uint8_t *data, size_t len)
{
	if (inlet->received - inlet->taken + len > AGENT_STDIN_WINDOW)
		return -EPROTO;
	inlet->received += len;
	if (inlet->fd < 0 || inlet->ends) {
		inlet->taken += len;
		return 0;
	}
	return buf_append(&inlet->queue, data, len) < 0 ? -EPROTO : 0;
}

void inlet_end(struct inlet *inlet)
{
	uint8_t eof;

	if (inlet->is_terminal && inlet->fd >= 0) {
		eof = pty_eof(inlet->fd);
		if (inlet->typed < ENDS_MAX && buf_append(&inlet->queue, &eof, 1) == 0)
			inlet->typed++;
		return;
	}
	inlet->ends = true;
	if (inlet->queue.len == 0)
		inlet_discard(inlet);
}

/*
 * What was typed here counts as not taken while it waits, so the number may lag a little behind the
 * truth. It never goes back.
 */
static void count_taken(struct inlet *inlet)
{
	uint64_t taken = inlet->received - inlet->queue.len;

	if (inlet->queue.len < inlet->received && taken > inlet->taken)
		inlet->taken = taken;
}

static void write_queue(struct inlet *inlet)
{
	while (inlet->queue.len > 0) {
		ssize_t n = write(inlet->fd, inlet->queue.data, inlet->queue.len);

		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0) { /* EPIPE; EIO of a terminal, which may be opened again */
			if (inlet->is_terminal)
				throw_away(inlet);
			else
				inlet_discard(inlet);
			return;
		}
		buf_consume(&inlet->queue, (size_t)n);
	}
	count_taken(inlet);
}

void inlet_write(struct inlet *inlet, int epoll_fd, uint32_t id)
{
	if (inlet->fd >= 0)
		write_queue(inlet);
	if (inlet->fd < 0)
		return;
	if (inlet->queue.len == 0) {
		buf_fini(&inlet->queue);
		inlet->typed = 0;
		if (inlet->ends)
			inlet_discard(inlet);
	} else if (!inlet->watched && !inlet->is_terminal) {
		/* Most commands never get here: their pipe takes all at once. */
		inlet->watched = true;
		if (watch_add(epoll_fd, inlet->fd, EPOLLOUT | EPOLLET, WATCH_STDIN, id) < 0)
			inlet_discard(inlet);
	}
}
