/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/egress_thread.h"

#include "base/clock.h"
#include "base/fd.h"
#include "event/timer.h"

#include <assert.h>
#include <sys/epoll.h>
#include <unistd.h>

struct egress_thread {
	pthread_mutex_t lock; /* the loop's guard, and of what follows */
	struct event_loop *loop;
	void (*tick)(void *arg, uint64_t now_ms);
	void *arg;
	struct timer *ticks;
	unsigned waiting; /* how many wait for time */
	struct post cleanup;
	void **discarded; /* memory for the clean-up to free */
	size_t discarded_count, discarded_cap;
};

void egress_thread_lock(struct egress_thread *thread)
{
	pthread_mutex_lock(&thread->lock);
}

void egress_thread_unlock(struct egress_thread *thread)
{
	pthread_mutex_unlock(&thread->lock);
}

static void tick(void *arg)
{
	struct egress_thread *thread = arg;

	if (thread->waiting > 0)
		thread->tick(thread->arg, clock_steady_ms());
	if (thread->waiting > 0)
		timer_set(thread->ticks, EGRESS_THREAD_TICK_MS);
}

static void free_discarded(void *arg)
{
	struct egress_thread *thread = arg;

	while (thread->discarded_count > 0)
		free(thread->discarded[--thread->discarded_count]);
}

int egress_thread_open(const char *name, void (*tick_all)(void *arg, uint64_t now_ms), void *arg,
	struct egress_thread **ret_thread, struct err *err)
{
	struct egress_thread *thread = mem_new(sizeof(*thread));
	int r;

	thread->tick = tick_all;
	thread->arg = arg;
	thread->cleanup = (struct post){.run = free_discarded, .arg = thread};
	pthread_mutex_init(&thread->lock, NULL);
	r = event_loop_open(name, &thread->lock, &thread->loop, err);
	if (r < 0) {
		egress_thread_close(thread);
		return r;
	}
	thread->ticks = timer_open(thread->loop, tick, NULL, thread);
	*ret_thread = thread;
	return 0;
}

void egress_thread_close(struct egress_thread *thread)
{
	if (!thread)
		return;
	timer_close(thread->ticks);
	event_loop_close(thread->loop);
	free_discarded(thread);
	free(thread->discarded);
	pthread_mutex_destroy(&thread->lock);
	free(thread);
}

static void source_ready(void *arg, uint32_t events)
{
	struct source *source = arg;

	(void)events;
	source->ready(source->owner);
}

static int add(struct egress_thread *thread, struct source *source, uint32_t events)
{
	int r = watch_open(thread->loop, source->fd, events | EPOLLET, source_ready, NULL, source,
		&source->watch, NULL);

	if (r < 0)
		fd_close(take_fd(&source->fd));
	return r;
}

int egress_thread_add(struct egress_thread *thread, struct source *source)
{
	return add(thread, source, EPOLLIN | EPOLLOUT | EPOLLRDHUP);
}

int egress_thread_add_reader(struct egress_thread *thread, struct source *source)
{
	return add(thread, source, EPOLLIN);
}

void egress_thread_remove(struct egress_thread *thread, struct source *source)
{
	(void)thread;
	if (source->fd < 0)
		return;
	watch_close(take_ptr(&source->watch));
	close(take_fd(&source->fd));
}

void egress_thread_requeue(struct egress_thread *thread, struct source *source)
{
	(void)thread;
	watch_call_again(source->watch);
}

void egress_thread_discard(struct egress_thread *thread, void *memory)
{
	if (thread->discarded_count == thread->discarded_cap) {
		thread->discarded_cap = thread->discarded_cap ? thread->discarded_cap * 2 : 32;
		thread->discarded =
			realloc(thread->discarded, thread->discarded_cap * sizeof(void *));
		if (!thread->discarded)
			abort();
	}
	thread->discarded[thread->discarded_count++] = memory;
	event_loop_post(thread->loop, &thread->cleanup);
}

void egress_thread_wait_for_time(struct egress_thread *thread, bool waits)
{
	assert(waits || thread->waiting > 0);
	if (!waits)
		thread->waiting--;
	else if (thread->waiting++ == 0)
		timer_set(thread->ticks, EGRESS_THREAD_TICK_MS);
}
