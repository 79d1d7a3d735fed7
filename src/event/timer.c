/* SPDX-License-Identifier: Apache-2.0 */
#include "event/timer.h"

#include "base/clock.h"
#include "base/mem.h"
#include "event/event_loop_private.h"

/* epoll_wait() does not count the time that the machine sleeps: a look at the clock now and then does. */
#define WAIT_MAX_MS 10000

struct timer {
	struct handle handle;
	void (*expired)(void *arg);
	uint64_t due_us; /* on clock_steady_us() */
	size_t place;	 /* in the heap plus one; 0: it is not set */
};

/* --- the heap --- */

static void put(struct timer_heap *heap, size_t at, struct timer *timer)
{
	heap->timers[at] = timer;
	timer->place = at + 1;
}

static void sift_up(struct timer_heap *heap, struct timer *timer, size_t at)
{
	while (at > 0 && timer->due_us < heap->timers[(at - 1) / 2]->due_us) {
		put(heap, at, heap->timers[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
	put(heap, at, timer);
}

static void sift_down(struct timer_heap *heap, struct timer *timer, size_t at)
{
	for (size_t child = 2 * at + 1; child < heap->count; child = 2 * at + 1) {
		if (child + 1 < heap->count &&
			heap->timers[child + 1]->due_us < heap->timers[child]->due_us)
			child++;
		if (timer->due_us <= heap->timers[child]->due_us)
			break;
		put(heap, at, heap->timers[child]);
		at = child;
	}
	put(heap, at, timer);
}

static void take_out(struct timer_heap *heap, struct timer *timer)
{
	size_t at = timer->place - 1;
	struct timer *last;

	if (timer->place == 0)
		return;
	timer->place = 0;
	last = heap->timers[--heap->count];
	if (last == timer)
		return;
	sift_down(heap, last, at);
	sift_up(heap, last, last->place - 1);
}

static void add(struct timer_heap *heap, struct timer *timer)
{
	if (heap->count == heap->cap) {
		heap->cap = heap->cap ? heap->cap * 2 : 16;
		heap->timers = realloc(heap->timers, heap->cap * sizeof(*heap->timers));
		if (!heap->timers)
			abort();
	}
	sift_up(heap, timer, heap->count++);
}

/* --- on the loop's thread --- */

/* The first timer that is due at now_us, no longer set; NULL if there is none. */
static struct timer *take_due(struct event_loop *loop, uint64_t now_us)
{
	struct timer_heap *heap = &loop->timers;
	struct timer *timer = NULL;

	pthread_mutex_lock(&loop->lock);
	loop->is_waiting = false;
	if (heap->count > 0 && heap->timers[0]->due_us <= now_us) {
		timer = heap->timers[0];
		take_out(heap, timer);
	}
	pthread_mutex_unlock(&loop->lock);
	return timer;
}

void timer_run_due(struct event_loop *loop)
{
	uint64_t now_us = clock_steady_us();
	struct timer *timer;

	/* One that is set again meanwhile is due later than now_us. */
	while ((timer = take_due(loop, now_us))) {
		event_loop_lock_guard(loop);
		if (!atomic_load(&timer->handle.is_closed))
			timer->expired(timer->handle.arg);
		event_loop_unlock_guard(loop);
	}
}

int timer_wait_ms(const struct event_loop *loop)
{
	uint64_t now_us, due_us;

	if (loop->timers.count == 0)
		return -1;
	now_us = clock_steady_us();
	due_us = loop->timers.timers[0]->due_us;
	if (due_us <= now_us)
		return 0;
	due_us = (due_us - now_us + 999) / 1000;
	return due_us < WAIT_MAX_MS ? (int)due_us : WAIT_MAX_MS;
}

/* --- on any thread --- */

struct timer *timer_open(
	struct event_loop *loop, void (*expired)(void *arg), void (*release)(void *arg), void *arg)
{
	struct timer *timer = mem_new(sizeof(*timer));

	timer->handle = (struct handle){.loop = loop, .release = release, .arg = arg};
	timer->expired = expired;
	return timer;
}

void timer_set(struct timer *timer, uint64_t ms)
{
	struct event_loop *loop = timer->handle.loop;
	uint64_t due_us = clock_steady_us() + ms * 1000 + 1;

	pthread_mutex_lock(&loop->lock);
	if (!atomic_load(&timer->handle.is_closed)) {
		take_out(&loop->timers, timer);
		timer->due_us = due_us;
		add(&loop->timers, timer);
		/* Only the first one changes how long the thread waits. */
		if (timer->place == 1)
			event_loop_wake_at(loop, due_us);
	}
	pthread_mutex_unlock(&loop->lock);
}

void timer_stop(struct timer *timer)
{
	struct event_loop *loop = timer->handle.loop;

	pthread_mutex_lock(&loop->lock);
	take_out(&loop->timers, timer);
	pthread_mutex_unlock(&loop->lock);
}

void timer_close(struct timer *timer)
{
	struct event_loop *loop;

	if (!timer)
		return;
	loop = timer->handle.loop;
	pthread_mutex_lock(&loop->lock);
	if (!atomic_load(&timer->handle.is_closed)) {
		take_out(&loop->timers, timer);
		event_loop_retire(loop, &timer->handle);
	}
	pthread_mutex_unlock(&loop->lock);
}
