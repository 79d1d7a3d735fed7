/* SPDX-License-Identifier: Apache-2.0 */
#include "http/workers.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <time.h>

#define QUIET_SECONDS 5
#define KEEP_THREADS  2 /* stay for ever, so that a lone request does not wait for a clone */
#define STACK_BYTES   (1024u * 1024)

/* A thread that waits; on its own stack, linked while idle. */
struct idle {
	struct idle *next;
	pthread_cond_t cond;
	bool called;
};

struct workers {
	pthread_mutex_t lock;
	pthread_cond_t changed; /* a thread has left */
	struct work_item *first, **last;
	unsigned queued, max_queue;
	unsigned threads, max_threads;
	struct idle *idle; /* the latest first: its cache is warm, and the oldest times out */
	bool wake;	   /* a thread was called or made and has not looked yet */
	bool closing;
	pthread_t left; /* the last thread that ended; joined by the one that ends next */
	bool has_left;
};

static void *worker_main(void *arg);

static int spawn(struct workers *workers)
{
	pthread_attr_t attr;
	pthread_t thread;
	int r;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	r = -pthread_create(&thread, &attr, worker_main, workers);
	pthread_attr_destroy(&attr);
	if (r == 0)
		workers->threads++;
	return r;
}

/* Wakes or creates a thread for a waiting item, if possible. The lock is held. */
static void call_one(struct workers *workers)
{
	struct idle *idle = workers->idle;

	if (workers->wake || !workers->first)
		return;
	if (idle) {
		workers->idle = idle->next;
		idle->called = true;
		workers->wake = true;
		pthread_cond_signal(&idle->cond);
	} else if (workers->threads < workers->max_threads && spawn(workers) == 0) {
		workers->wake = true;
	}
}

static struct work_item *take_item(struct workers *workers)
{
	struct work_item *item = workers->first;

	if (!item)
		return NULL;
	workers->first = item->next;
	if (!workers->first)
		workers->last = &workers->first;
	workers->queued--;
	call_one(workers);
	return item;
}

static void unlink_idle(struct workers *workers, struct idle *self)
{
	struct idle **at = &workers->idle;

	while (*at && *at != self)
		at = &(*at)->next;
	if (*at)
		*at = self->next;
}

/* Waits to be called; false if that did not happen for a quiet while. */
static bool wait_for_call(struct workers *workers)
{
	struct idle self = {.next = workers->idle};
	pthread_condattr_t attr;
	struct timespec until;
	int r = 0;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&self.cond, &attr);
	pthread_condattr_destroy(&attr);
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += QUIET_SECONDS;
	workers->idle = &self;
	while (!self.called && !workers->closing && r != ETIMEDOUT)
		r = pthread_cond_timedwait(&self.cond, &workers->lock, &until);
	if (self.called)
		workers->wake = false;
	else
		unlink_idle(workers, &self);
	pthread_cond_destroy(&self.cond);
	return self.called || workers->first || workers->threads <= KEEP_THREADS;
}

static void *worker_main(void *arg)
{
	struct workers *workers = arg;
	pthread_t predecessor;
	bool has_predecessor;

	pthread_setname_np(pthread_self(), "http-worker");
	pthread_mutex_lock(&workers->lock);
	workers->wake = false;
	for (;;) {
		struct work_item *item = take_item(workers);

		if (item) {
			pthread_mutex_unlock(&workers->lock);
			item->run(item);
			pthread_mutex_lock(&workers->lock);
		} else if (workers->closing || !wait_for_call(workers)) {
			break;
		}
	}
	predecessor = workers->left;
	has_predecessor = workers->has_left;
	workers->left = pthread_self();
	workers->has_left = true;
	workers->threads--;
	pthread_cond_broadcast(&workers->changed);
	pthread_mutex_unlock(&workers->lock);
	if (has_predecessor)
		pthread_join(predecessor, NULL);
	return NULL;
}

int workers_open(
	unsigned max_threads, unsigned max_queue, struct workers **ret_workers, struct err *err)
{
	struct workers *workers = mem_new(sizeof(*workers));
	int r;

	pthread_mutex_init(&workers->lock, NULL);
	pthread_cond_init(&workers->changed, NULL);
	workers->last = &workers->first;
	workers->max_threads = max_threads;
	workers->max_queue = max_queue;
	pthread_mutex_lock(&workers->lock);
	/*
	 * Permanent threads are made at the start: if no other can ever be made, requests are still
	 * served.
	 */
	r = spawn(workers);
	workers->wake = r == 0;
	while (r == 0 && workers->threads < KEEP_THREADS && workers->threads < max_threads)
		if (spawn(workers) < 0)
			break; /* one will do */
	pthread_mutex_unlock(&workers->lock);
	if (r < 0) {
		workers_close(workers);
		return err_from(err, r, "start a worker thread");
	}
	*ret_workers = workers;
	return 0;
}

static int submit(struct workers *workers, struct work_item *item, bool always)
{
	int r = 0;

	pthread_mutex_lock(&workers->lock);
	if (!always && workers->queued >= workers->max_queue) {
		r = -EAGAIN;
	} else {
		item->next = NULL;
		*workers->last = item;
		workers->last = &item->next;
		workers->queued++;
		call_one(workers);
	}
	pthread_mutex_unlock(&workers->lock);
	return r;
}

int workers_submit(struct workers *workers, struct work_item *item)
{
	return submit(workers, item, false);
}

void workers_submit_always(struct workers *workers, struct work_item *item)
{
	submit(workers, item, true);
}

void workers_close(struct workers *workers)
{
	if (!workers)
		return;
	pthread_mutex_lock(&workers->lock);
	workers->closing = true;
	for (struct idle *idle = workers->idle; idle; idle = idle->next)
		pthread_cond_signal(&idle->cond);
	while (workers->threads > 0)
		pthread_cond_wait(&workers->changed, &workers->lock);
	pthread_mutex_unlock(&workers->lock);
	if (workers->has_left)
		pthread_join(workers->left, NULL);
	pthread_cond_destroy(&workers->changed);
	pthread_mutex_destroy(&workers->lock);
	free(workers);
}
