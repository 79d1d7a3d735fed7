/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/dispatcher.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define EVENTS_MAX 64

/* A growing list of pointers. */
struct list {
	void **items;
	size_t count, cap;
};

struct dispatcher {
	pthread_t thread;
	pthread_mutex_t lock; /* what follows */
	void (*tick)(void *arg, uint64_t now_ms);
	void *arg;
	struct list queue;   /* sources to be called again */
	struct list called;  /* those of this round; NULL: removed meanwhile */
	struct list discard; /* memory to be freed after this round */
	unsigned waiting;    /* how many wait for time */
	uint64_t ticked_ms;
	bool stopping;
	char name[16];
	int epoll_fd;
	int wake_fd;
};

static void list_add(struct list *list, void *item)
{
	if (list->count == list->cap) {
		list->cap = list->cap ? list->cap * 2 : 32;
		list->items = realloc(list->items, list->cap * sizeof(void *));
		if (!list->items)
			abort();
	}
	list->items[list->count++] = item;
}

static void list_forget(struct list *list, const void *item)
{
	for (size_t i = 0; i < list->count; i++) {
		if (list->items[i] == item)
			list->items[i] = NULL;
	}
}

void dispatcher_lock(struct dispatcher *dispatcher)
{
	pthread_mutex_lock(&dispatcher->lock);
}

void dispatcher_unlock(struct dispatcher *dispatcher)
{
	pthread_mutex_unlock(&dispatcher->lock);
}

static void call(struct source *source)
{
	if (source->ready)
		source->ready(source->owner);
}

/* Those that ask again while they are called have their turn in the next round. */
static void call_queued(struct dispatcher *dispatcher)
{
	struct list empty = dispatcher->called;

	dispatcher->called = dispatcher->queue;
	dispatcher->queue = empty;
	for (size_t i = 0; i < dispatcher->called.count; i++) {
		struct source *source = dispatcher->called.items[i];

		if (!source)
			continue;
		source->is_queued = false;
		dispatcher->called.items[i] = NULL;
		call(source);
		/* Let those in who wait for the lock. */
		dispatcher_unlock(dispatcher);
		dispatcher_lock(dispatcher);
	}
	dispatcher->called.count = 0;
}

static void keep_time(struct dispatcher *dispatcher)
{
	uint64_t now = clock_steady_ms();

	if (dispatcher->waiting > 0 && now - dispatcher->ticked_ms >= DISPATCHER_TICK_MS) {
		dispatcher->ticked_ms = now;
		dispatcher->tick(dispatcher->arg, now);
	}
}

static void throw_away(struct dispatcher *dispatcher)
{
	for (size_t i = 0; i < dispatcher->discard.count; i++)
		free(dispatcher->discard.items[i]);
	dispatcher->discard.count = 0;
}

static int patience(const struct dispatcher *dispatcher)
{
	if (dispatcher->queue.count > 0)
		return 0;
	return dispatcher->waiting > 0 ? DISPATCHER_TICK_MS : -1;
}

static void *run(void *arg)
{
	struct dispatcher *dispatcher = arg;
	struct epoll_event events[EVENTS_MAX];

	pthread_setname_np(pthread_self(), dispatcher->name);
	dispatcher_lock(dispatcher);
	while (!dispatcher->stopping) {
		int wait_ms = patience(dispatcher), n;

		dispatcher_unlock(dispatcher);
		n = epoll_wait(dispatcher->epoll_fd, events, EVENTS_MAX, wait_ms);
		for (int i = 0; i < n; i++) {
			struct source *source = events[i].data.ptr;
			uint64_t wakes;

			dispatcher_lock(dispatcher);
			if (source)
				call(source);
			else
				(void)!read(dispatcher->wake_fd, &wakes, sizeof(wakes));
			dispatcher_unlock(dispatcher);
		}
		dispatcher_lock(dispatcher);
		call_queued(dispatcher);
		keep_time(dispatcher);
		throw_away(dispatcher);
	}
	dispatcher_unlock(dispatcher);
	return NULL;
}

static void wake(struct dispatcher *dispatcher)
{
	(void)!write(dispatcher->wake_fd, &(uint64_t){1}, sizeof(uint64_t));
}

int dispatcher_open(const char *name, void (*tick)(void *arg, uint64_t now_ms), void *arg,
	struct dispatcher **ret_dispatcher, struct err *err)
{
	struct dispatcher *dispatcher = mem_new(sizeof(*dispatcher));
	struct epoll_event event = {.events = EPOLLIN};
	int r;

	dispatcher->tick = tick;
	dispatcher->arg = arg;
	strncpy(dispatcher->name, name, sizeof(dispatcher->name) - 1);
	pthread_mutex_init(&dispatcher->lock, NULL);
	dispatcher->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	dispatcher->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (dispatcher->epoll_fd < 0 || dispatcher->wake_fd < 0 ||
		epoll_ctl(dispatcher->epoll_fd, EPOLL_CTL_ADD, dispatcher->wake_fd, &event) < 0) {
		r = err_sys(err, "open the dispatcher");
	} else {
		r = -pthread_create(&dispatcher->thread, NULL, run, dispatcher);
		if (r < 0)
			err_from(err, r, "start the dispatcher");
	}
	if (r < 0) {
		fd_close(dispatcher->epoll_fd);
		fd_close(dispatcher->wake_fd);
		free(dispatcher);
		return r;
	}
	*ret_dispatcher = dispatcher;
	return 0;
}

void dispatcher_close(struct dispatcher *dispatcher)
{
	if (!dispatcher)
		return;
	dispatcher_lock(dispatcher);
	dispatcher->stopping = true;
	dispatcher_unlock(dispatcher);
	wake(dispatcher);
	pthread_join(dispatcher->thread, NULL);
	throw_away(dispatcher);
	free(dispatcher->queue.items);
	free(dispatcher->called.items);
	free(dispatcher->discard.items);
	close(dispatcher->epoll_fd);
	close(dispatcher->wake_fd);
	pthread_mutex_destroy(&dispatcher->lock);
	free(dispatcher);
}

int dispatcher_add(struct dispatcher *dispatcher, struct source *source)
{
	struct epoll_event event = {
		.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = source};

	if (epoll_ctl(dispatcher->epoll_fd, EPOLL_CTL_ADD, source->fd, &event) < 0) {
		int r = -errno;

		fd_close(take_fd(&source->fd));
		return r;
	}
	return 0;
}

void dispatcher_remove(struct dispatcher *dispatcher, struct source *source)
{
	if (source->fd < 0)
		return;
	/* A copy of a listening socket is the keeper's: closing ours alone would not unwatch it. */
	epoll_ctl(dispatcher->epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
	source->ready = NULL;
	if (source->is_queued) {
		list_forget(&dispatcher->queue, source);
		list_forget(&dispatcher->called, source);
	}
	close(take_fd(&source->fd));
}

void dispatcher_requeue(struct dispatcher *dispatcher, struct source *source)
{
	if (source->is_queued)
		return;
	source->is_queued = true;
	list_add(&dispatcher->queue, source);
	if (!pthread_equal(pthread_self(), dispatcher->thread))
		wake(dispatcher);
}

void dispatcher_discard(struct dispatcher *dispatcher, void *memory)
{
	list_add(&dispatcher->discard, memory);
}

void dispatcher_wait_for_time(struct dispatcher *dispatcher, bool waits)
{
	assert(waits || dispatcher->waiting > 0);
	if (waits)
		dispatcher->waiting++;
	else
		dispatcher->waiting--;
	if (waits && dispatcher->waiting == 1 && !pthread_equal(pthread_self(), dispatcher->thread))
		wake(dispatcher);
}
