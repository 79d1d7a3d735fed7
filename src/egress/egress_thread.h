/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An event loop that serves sockets, and the lock under which it does.
 *
 * The lock guards everything that belongs to an egress thread: it is the loop's guard
 * (event/event_loop.h), which the loop takes for each event. Other threads use egress_thread_lock()
 * and egress_thread_unlock(). A holder must not block.
 *
 * Sources are edge-triggered: a ready function goes on until the socket has no more, or asks to be
 * called again after the others.
 */
#pragma once

#include "event/event_loop.h"

#include <stdint.h>

struct egress_thread;

/* A socket; embedded in its owner. */
struct source {
	int fd; /* owned once it was added; -1: none */
	void (*ready)(void *owner);
	void *owner;
	struct watch *watch;
};

/* tick is called every EGRESS_THREAD_TICK_MS, under the lock, while something waits for time. */
#define EGRESS_THREAD_TICK_MS 20
int egress_thread_open(const char *name, void (*tick)(void *arg, uint64_t now_ms), void *arg,
	struct egress_thread **ret_thread, struct err *err) must_check;

/* Ends the thread; all sources must have been removed. */
void egress_thread_close(struct egress_thread *thread);

void egress_thread_lock(struct egress_thread *thread);
void egress_thread_unlock(struct egress_thread *thread);

/* The caller of what follows holds the lock. */

/* Watches source->fd for reading and writing; takes it over. On failure it is closed. */
int egress_thread_add(struct egress_thread *thread, struct source *source) must_check;

/* The same for one that is only read, or accepts: a new one is not ready at once, as what can be written is. */
int egress_thread_add_reader(struct egress_thread *thread, struct source *source) must_check;

/* Closes a source that was added; its function is not called again. */
void egress_thread_remove(struct egress_thread *thread, struct source *source);

/* Calls the source again after the others, on the egress thread. */
void egress_thread_requeue(struct egress_thread *thread, struct source *source);

/* Frees memory when the present call has returned: its caller may still look at it. */
void egress_thread_discard(struct egress_thread *thread, void *memory);

/* Counts one more, or one less, that needs ticks. */
void egress_thread_wait_for_time(struct egress_thread *thread, bool waits);
