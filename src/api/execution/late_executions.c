/* SPDX-License-Identifier: Apache-2.0 */
#include "api/execution/late_executions.h"

#include "base/mem.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct waiter {
	struct late_executions *late;
	struct waiter *next;
	struct late_execution execution;
	char job[ID_LEN + 1];
	struct job_follower *follower; /* NULL: there is no such job any more */
	bool is_over;		       /* its job is */
};

struct late_executions {
	struct jobs *jobs;
	/* What follows. Taken under locks of the jobs, which are then asked with job_follower_is_over() alone. */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct waiter *waiters;
	pthread_t thread;
	bool has_thread, is_leaving;
};

/* The lock is held: so the follower is there still. */
static void note_over(struct waiter *waiter)
{
	if (waiter->is_over || (waiter->follower && !job_follower_is_over(waiter->follower)))
		return;
	waiter->is_over = true;
	pthread_cond_signal(&waiter->late->changed);
}

static void look(void *arg)
{
	struct waiter *waiter = arg;

	pthread_mutex_lock(&waiter->late->lock);
	/* Before it is known that there is one, there is one who will look. */
	if (waiter->follower)
		note_over(waiter);
	pthread_mutex_unlock(&waiter->late->lock);
}

/* Puts it on the list. */
static void follow(struct waiter *waiter)
{
	struct late_executions *late = waiter->late;
	struct job_follower *follower = NULL;
	struct err ignored;

	waiter->is_over = false;
	waiter->follower = NULL;
	/* A job that is forgotten is over. */
	if (job_follow(late->jobs, NULL, waiter->job, look, waiter, &follower, &ignored) < 0)
		follower = NULL;
	pthread_mutex_lock(&late->lock);
	waiter->follower = follower;
	waiter->next = late->waiters;
	late->waiters = waiter;
	note_over(waiter);
	pthread_mutex_unlock(&late->lock);
}

/* Takes one off the list whose job is over, or all one after the other if the daemon ends; NULL when there is none and it
 * does. */
static struct waiter *take(struct late_executions *late, bool *ret_is_leaving)
{
	struct waiter **at, *found = NULL;

	pthread_mutex_lock(&late->lock);
	for (;;) {
		for (at = &late->waiters; *at && !(*at)->is_over && !late->is_leaving;)
			at = &(*at)->next;
		found = *at;
		if (found || late->is_leaving)
			break;
		pthread_cond_wait(&late->changed, &late->lock);
	}
	if (found)
		*at = found->next;
	*ret_is_leaving = late->is_leaving;
	pthread_mutex_unlock(&late->lock);
	return found;
}

/* Whether it waits again. */
static bool go_on(struct waiter *waiter)
{
	struct err err;
	int end = job_end(waiter->late->jobs, NULL, waiter->job, &err);

	/* Nothing is told of one whose daemon ends: the next one finds its row. */
	if (end < 0 && strcmp(err.code, "daemon_ending") == 0)
		return false;
	return waiter->execution.go_on(waiter->execution.arg, end, waiter->job, &err) == 1;
}

static void *run(void *arg)
{
	struct late_executions *late = arg;
	struct waiter *waiter;
	bool is_leaving;

	while ((waiter = take(late, &is_leaving))) {
		if (waiter->follower)
			job_unfollow(waiter->follower);
		if (!is_leaving && go_on(waiter)) {
			follow(waiter);
			continue;
		}
		waiter->execution.release(waiter->execution.arg);
		free(waiter);
	}
	return NULL;
}

struct late_executions *late_executions_new(struct jobs *jobs)
{
	struct late_executions *late = mem_new(sizeof(*late));

	late->jobs = jobs;
	pthread_mutex_init(&late->lock, NULL);
	pthread_cond_init(&late->changed, NULL);
	late->has_thread = pthread_create(&late->thread, NULL, run, late) == 0;
	return late;
}

int late_executions_await(
	struct late_executions *late, const struct late_execution *execution, struct err *err)
{
	struct waiter *waiter;

	if (!late->has_thread)
		return err_set(err, ERR_UNAVAILABLE,
			"the daemon has no thread for executions that wait: see its log");
	waiter = mem_new(sizeof(*waiter));
	*waiter = (struct waiter){.late = late, .execution = *execution};
	snprintf(waiter->job, sizeof(waiter->job), "%s", execution->job);
	follow(waiter);
	return 0;
}

void late_executions_leave(struct late_executions *late)
{
	if (!late)
		return;
	pthread_mutex_lock(&late->lock);
	late->is_leaving = true;
	pthread_cond_signal(&late->changed);
	pthread_mutex_unlock(&late->lock);
	if (late->has_thread)
		pthread_join(late->thread, NULL);
	pthread_cond_destroy(&late->changed);
	pthread_mutex_destroy(&late->lock);
	free(late);
}
