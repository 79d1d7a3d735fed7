/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/inlet.h"

#include "agent/watch.h"
#include "base/fd.h"
#include "wire/agent.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

void inlet_init(struct inlet *inlet, int fd)
{
	*inlet = (struct inlet){.fd = fd, .queue = BUF_INIT(AGENT_STDIN_WINDOW)};
}

void inlet_fini(struct inlet *inlet)
{
	fd_close(inlet->fd);
	inlet->fd = -1;
	buf_fini(&inlet->queue);
}

void inlet_discard(struct inlet *inlet)
{
	inlet->taken += inlet->queue.len;
	inlet_fini(inlet);
}

int inlet_add(struct inlet *inlet, const uint8_t *data, size_t len)
{
	if (inlet->fd < 0 || inlet->ends) {
		inlet->taken += len;
		return 0;
	}
	return buf_append(&inlet->queue, data, len) < 0 ? -EPROTO : 0;
}

void inlet_end(struct inlet *inlet)
{
	inlet->ends = true;
	if (inlet->queue.len == 0)
		inlet_discard(inlet);
}

void inlet_write(struct inlet *inlet, int epoll_fd, uint32_t id)
{
	while (inlet->fd >= 0 && inlet->queue.len > 0) {
		ssize_t n = write(inlet->fd, inlet->queue.data, inlet->queue.len);

		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0) { /* EPIPE */
			inlet_discard(inlet);
			return;
		}
		inlet->taken += (uint64_t)n;
		buf_consume(&inlet->queue, (size_t)n);
	}
	if (inlet->fd < 0)
		return;
	if (inlet->queue.len == 0) {
		buf_fini(&inlet->queue);
		if (inlet->ends)
			inlet_discard(inlet);
	} else if (!inlet->watched) {
		/* Most commands never get here: their pipe takes all at once. */
		inlet->watched = true;
		if (watch_add(epoll_fd, inlet->fd, EPOLLOUT | EPOLLET, WATCH_STDIN, id) < 0)
			inlet_discard(inlet);
	}
}
