/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread that waits for many descriptors: the links to all agents, and the timers of commands.
 *
 * A watch calls its function on the reactor's thread only. Closing a watch from any thread is safe:
 * after watch_close() the function is not called again, and `release` runs on the reactor's thread once
 * no call can be under way. Functions must not block.
 */
#pragma once

#include "base/err.h"

#include <stdint.h>

struct reactor;
struct watch;

int reactor_open(struct reactor **ret_reactor, struct err *err) must_check;

/* Stops the thread; all watches must have been closed. */
void reactor_close(struct reactor *reactor);

/* Watches fd, which is borrowed until release, for epoll events. */
int watch_open(struct reactor *reactor, int fd, uint32_t events,
	void (*ready)(void *arg, uint32_t events), void (*release)(void *arg), void *arg,
	struct watch **ret_watch, struct err *err) must_check;
void watch_set(struct watch *watch, uint32_t events);
void watch_close(struct watch *watch);
