/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/link/watch.h"

#include <errno.h>
#include <sys/epoll.h>

static int control(int epoll_fd, int op, int fd, uint32_t events, enum watch_role role, uint32_t id)
{
	struct epoll_event event = {
		.events = events,
		.data.u64 = (uint64_t)role << 32 | id,
	};

	return epoll_ctl(epoll_fd, op, fd, &event) < 0 ? -errno : 0;
}

int watch_add(int epoll_fd, int fd, uint32_t events, enum watch_role role, uint32_t id)
{
	return control(epoll_fd, EPOLL_CTL_ADD, fd, events, role, id);
}

int watch_change(int epoll_fd, int fd, uint32_t events, enum watch_role role, uint32_t id)
{
	return control(epoll_fd, EPOLL_CTL_MOD, fd, events, role, id);
}

enum watch_role watch_role(uint64_t data)
{
	return (enum watch_role)(data >> 32);
}

uint32_t watch_id(uint64_t data)
{
	return (uint32_t)data;
}
