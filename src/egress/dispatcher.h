/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that serves sockets, and the lock under which it does.
 *
 * Whatever belongs to a dispatcher is touched under its lock alone: by its own thread, which takes it for
 * each event, and by others between dispatcher_lock and dispatcher_unlock. So nothing that is served
 * here needs a lock or a count of its own. Nobody may block while holding it.
 *
 * Sources are watched at their edges: a function goes on until the socket has no more, or asks to be
 * called again when others had their turn.
 */
#pragma once

#include "base/err.h"

#include <stdint.h>

struct dispatcher;

/* A socket. Embedded in what it belongs to. */
struct source {
	int fd; /* owned once it was added; -1: none */
	void (*ready)(void *owner);
	void *owner;
	bool is_queued; /* will be called again without an event */
};

/* tick is called every DISPATCHER_TICK_MS, under the lock, as long as anybody waits for time. */
#define DISPATCHER_TICK_MS 20
int dispatcher_open(const char *name, void (*tick)(void *arg, uint64_t now_ms), void *arg,
	struct dispatcher **ret_dispatcher, struct err *err) must_check;

/* Ends the thread; all sources must have been removed. */
void dispatcher_close(struct dispatcher *dispatcher);

void dispatcher_lock(struct dispatcher *dispatcher);
void dispatcher_unlock(struct dispatcher *dispatcher);

/* What follows is called under the lock. */

/* Watches source->fd for reading and writing; takes it over. On failure it is closed. */
int dispatcher_add(struct dispatcher *dispatcher, struct source *source) must_check;

/* Closes it, if it was added; its function is not called again. */
void dispatcher_remove(struct dispatcher *dispatcher, struct source *source);

/* Has it called again after the others, on the dispatcher's thread. */
void dispatcher_requeue(struct dispatcher *dispatcher, struct source *source);

/* Frees memory with sources in it once no event can name them any more. */
void dispatcher_discard(struct dispatcher *dispatcher, void *memory);

/* Somebody begins or ends to wait for time. */
void dispatcher_wait_for_time(struct dispatcher *dispatcher, bool waits);
