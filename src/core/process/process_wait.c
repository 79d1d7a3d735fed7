/* SPDX-License-Identifier: Apache-2.0 */
#include "core/process/process_wait.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#define LOOK_MS 200 /* between two looks whether the job must stop */

/* Of the thread that waits, and of the watch. */
struct waiting {
	const struct process_wait *asked;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool has_ended; /* under the lock, as what follows */
	bool is_over;	/* the watch is: nothing of it is called any more */
	struct process_end end;
};

static void take_output(void *arg, int stream, const uint8_t *data, size_t len)
{
	struct waiting *waiting = arg;

	waiting->asked->output(waiting->asked->arg, stream, data, len);
}

static void take_end(void *arg, const struct process_end *end)
{
	struct waiting *waiting = arg;

	pthread_mutex_lock(&waiting->lock);
	waiting->end = *end;
	waiting->has_ended = true;
	pthread_mutex_unlock(&waiting->lock);
}

static void released(void *arg)
{
	struct waiting *waiting = arg;

	pthread_mutex_lock(&waiting->lock);
	waiting->is_over = true;
	pthread_cond_broadcast(&waiting->changed);
	pthread_mutex_unlock(&waiting->lock);
}

static const struct process_events events = {
	.output = take_output, .ended = take_end, .release = released};

static void wait_a_while(struct waiting *waiting)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += LOOK_MS * 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_cond_timedwait(&waiting->changed, &waiting->lock, &until);
}

/* Until the watch is over; whether the job was told to stop meanwhile. */
static bool wait_for_end(struct waiting *waiting, struct process *process)
{
	struct job *job = waiting->asked->job;
	bool is_stopped = false;

	pthread_mutex_lock(&waiting->lock);
	while (!waiting->is_over) {
		if (!is_stopped && job && job_must_stop(job)) {
			is_stopped = true;
			pthread_mutex_unlock(&waiting->lock);
			process_kill(process, true);
			pthread_mutex_lock(&waiting->lock);
			continue;
		}
		wait_a_while(waiting);
	}
	pthread_mutex_unlock(&waiting->lock);
	return is_stopped;
}

static int run(struct waiting *waiting, struct process *process, const struct process_spec *spec,
	struct err *err)
{
	int r;

	if (!process_watch(process, &events, waiting))
		return err_set(err, ERR_INTERNAL, "a new process has ended");
	r = process_run(process, spec, err);
	if (r < 0)
		return r;
	if (wait_for_end(waiting, process))
		return -ECANCELED;
	return waiting->has_ended ? 0 : err_set(err, ERR_UNAVAILABLE, "the sandbox was lost");
}

int process_wait_run(struct sandbox *sandbox, const struct process_spec *spec,
	const struct process_wait *wait, struct process_end *ret_end, struct err *err)
{
	struct waiting waiting = {.asked = wait};
	auto_(process_unrefp) struct process *process = NULL;
	int r = process_new(sandbox, &process, err);

	if (r < 0)
		return r;
	pthread_mutex_init(&waiting.lock, NULL);
	pthread_cond_init(&waiting.changed, NULL);
	r = run(&waiting, process, spec, err);
	if (r == 0)
		*ret_end = waiting.end;
	pthread_mutex_destroy(&waiting.lock);
	pthread_cond_destroy(&waiting.changed);
	return r;
}
