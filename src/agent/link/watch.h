/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the event loop waits for.
 *
 * An event carries the role of the descriptor and, for the pipes of a command, the command's id;
 * never a pointer. So when an event comes in one batch with the end of its command, no command is
 * found, and no freed memory is read.
 */
#pragma once

#include "base/mem.h"

#include <stdint.h>

enum watch_role {
	WATCH_LIFELINE,
	WATCH_LINK,
	WATCH_CONTROL,
	WATCH_CHILDREN,
	WATCH_MACHINE,
	WATCH_DENIALS,
	WATCH_STDIN,
	WATCH_STDOUT,
	WATCH_STDERR,
	WATCH_RESULT,
	WATCH_TERMINAL,
	WATCH_GROUP,
	WATCH_ISOLATED,
	WATCH_LISTENER,
	WATCH_ARRIVAL,
	WATCH_FORWARD_DAEMON,
	WATCH_FORWARD_PORT,
};

/* events as for epoll_ctl. 0 or -errno. Closing the descriptor ends the watch. */
int watch_add(int epoll_fd, int fd, uint32_t events, enum watch_role role, uint32_t id) must_check;
int watch_change(int epoll_fd, int fd, uint32_t events, enum watch_role role, uint32_t id)
	must_check;

/* Extracts what was given to watch_add() from the data of an event. */
enum watch_role watch_role(uint64_t data);
uint32_t watch_id(uint64_t data);
