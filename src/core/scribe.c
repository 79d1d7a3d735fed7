/* SPDX-License-Identifier: Apache-2.0 */
#include "core/scribe.h"

#include <pthread.h>
#include <stdbool.h>

struct task {
	struct task *next;
	void (*work)(void *arg);
	void *arg;
};

struct scribe {
	pthread_t thread;
	pthread_mutex_t lock; /* what follows */
	pthread_cond_t changed;
	struct task *first, **last;
	bool closing;
};

static struct task *take_next(struct scribe *scribe)
{
	struct task *task;

	pthread_mutex_lock(&scribe->lock);
	while (!scribe->first && !scribe->closing)
		pthread_cond_wait(&scribe->changed, &scribe->lock);
	task = scribe->first;
	if (task)
		scribe->first = task->next;
	if (!scribe->first)
		scribe->last = &scribe->first;
	pthread_mutex_unlock(&scribe->lock);
	return task;
}

static void *run(void *arg)
{
	struct scribe *scribe = arg;
	struct task *task;

	pthread_setname_np(pthread_self(), "scribe");
	while ((task = take_next(scribe))) {
		task->work(task->arg);
		free(task);
	}
	return NULL;
}

int scribe_open(struct scribe **ret_scribe, struct err *err)
{
	struct scribe *scribe = mem_new(sizeof(*scribe));
	int r;

	pthread_mutex_init(&scribe->lock, NULL);
	pthread_cond_init(&scribe->changed, NULL);
	scribe->last = &scribe->first;
	r = -pthread_create(&scribe->thread, NULL, run, scribe);
	if (r < 0) {
		free(scribe);
		return err_from(err, r, "start the scribe");
	}
	*ret_scribe = scribe;
	return 0;
}

void scribe_close(struct scribe *scribe)
{
	if (!scribe)
		return;
	pthread_mutex_lock(&scribe->lock);
	scribe->closing = true;
	pthread_cond_signal(&scribe->changed);
	pthread_mutex_unlock(&scribe->lock);
	pthread_join(scribe->thread, NULL);
	pthread_mutex_destroy(&scribe->lock);
	pthread_cond_destroy(&scribe->changed);
	free(scribe);
}

void scribe_put(struct scribe *scribe, void (*work)(void *arg), void *arg)
{
	struct task *task = mem_new(sizeof(*task));

	task->work = work;
	task->arg = arg;
	pthread_mutex_lock(&scribe->lock);
	*scribe->last = task;
	scribe->last = &task->next;
	pthread_cond_signal(&scribe->changed);
	pthread_mutex_unlock(&scribe->lock);
}
