/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that waits for descriptors (watches), times (timer.h) and what other threads ask of it (posts).
 *
 * The loop calls one function at a time, on its own thread, and the function must not block. A round of
 * the loop calls the timers that are due, then at most 64 watches that are ready, then the posts that came
 * before. Last it releases what was closed. Who asks again within a round has a turn in the next one.
 *
 * Any thread may call all of these functions. After watch_close() on the loop's own thread the watch is not
 * called again. On another thread a call may be under way: what the call uses must live until `release`,
 * which runs on the loop's thread when no call can follow.
 *
 * A loop may have a guard: a lock that is held during all calls but `release`. To those who hold it,
 * watch_close() is as final as on the loop's thread. So the objects that a loop serves need no lock and no
 * reference count of their own, also where other threads use them.
 */
#pragma once

#include "base/err.h"

#include <pthread.h>
#include <stdint.h>

struct event_loop;
struct watch;

/*
 * Starts a thread of this name, with all signals blocked. The guard is borrowed; NULL: there is none.
 */
int event_loop_open(const char *name, pthread_mutex_t *guard, struct event_loop **ret_loop,
	struct err *err) must_check;

/* Ends the thread after this round, and returns at once. */
void event_loop_stop(struct event_loop *loop);

/* Waits until the thread has ended; not on that thread. */
void event_loop_join(struct event_loop *loop);

/*
 * Both of these; then releases what was closed. All watches and timers must have been closed. Posts that
 * were not called are forgotten. NULL is fine.
 */
void event_loop_close(struct event_loop *loop);

/*
 * Watches fd for epoll events. fd is borrowed until watch_close(); `release` may be NULL. *ret_watch is set
 * before the first call.
 */
int watch_open(struct event_loop *loop, int fd, uint32_t events,
	void (*ready)(void *arg, uint32_t events), void (*release)(void *arg), void *arg,
	struct watch **ret_watch, struct err *err) must_check;

/* Changes the events. An edge-triggered watch is told once more what it is ready for. */
void watch_set(struct watch *watch, uint32_t events);

/* Calls the watch once more after the others, with no events. */
void watch_call_again(struct watch *watch);

/* Before fd is closed: a copy of it in another process would keep the events coming. NULL is fine. */
void watch_close(struct watch *watch);

/* A call that another thread, or the loop itself, asks for; embedded in its owner. */
struct post {
	void (*run)(void *arg);
	void *arg;
	struct post *next; /* the loop's */
	bool is_pending;   /* the loop's */
};

/* Calls post->run once, however often it was posted before that. */
void event_loop_post(struct event_loop *loop, struct post *post);
