/* SPDX-License-Identifier: Apache-2.0 */
/* What event_loop.c and timer.c share. */
#pragma once

#include "event/event_loop.h"

#include <stdatomic.h>

/* The beginning of a watch and of a timer. */
struct handle {
	struct event_loop *loop;
	void (*release)(void *arg);
	void *arg;
	atomic_bool is_closed; /* changes under the loop's lock */
	struct handle *next;   /* of those that were closed */
};

/* The timers of a loop that are set: a binary heap, the first due at its root. */
struct timer_heap {
	struct timer **timers;
	size_t count, cap;
};

struct event_loop {
	pthread_t thread;
	bool has_thread;
	pthread_mutex_t *guard;
	char name[16];
	int epoll_fd;
	int wake_fd;  /* an eventfd */
	int alarm_fd; /* a timerfd */

	pthread_mutex_t lock; /* what follows */
	bool is_stopping;
	bool is_waiting; /* for the kernel: it has to be woken */
	uint64_t
		alarm_us; /* when alarm_fd does that, on clock_steady_us(); 0: it is not set for this wait */
	struct post *posts, **last_post;
	size_t post_count;
	struct handle *closed;
	struct timer_heap timers;
};

/* Wakes the thread if it waits. The lock is held. */
void event_loop_wake(struct event_loop *loop);

/*
 * Wakes the thread at that time if it still waits then. The lock is held. To wake it at once would have it take the
 * processor from the caller, who is on the way to an answer.
 */
void event_loop_wake_at(struct event_loop *loop, uint64_t due_us);

/* Marks a watch or a timer as closed, to be released after this round. The lock is held. */
void event_loop_retire(struct event_loop *loop, struct handle *handle);

/* Takes the guard, and gives it back. */
void event_loop_lock_guard(struct event_loop *loop);
void event_loop_unlock_guard(struct event_loop *loop);

/* Calls the timers that are due. */
void timer_run_due(struct event_loop *loop);

/* For how long nothing is due, in milliseconds; -1: for ever. The lock is held. */
int timer_wait_ms(const struct event_loop *loop);
