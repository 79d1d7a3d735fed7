/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/wakings.h"

#include "http/lanes.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define LANE_OF_ALL UINT64_C(0)

struct waking {
	struct waking *next;
	struct wakings *wakings;
	char key[64];
	struct passage *passages;
	struct job job;
	struct lane_pass pass;
};

struct wakings {
	const struct proxy_config *config;
	struct workers *workers;
	struct lanes *lanes;
	atomic_bool stopping;

	pthread_mutex_t lock;
	struct waking *first;
};

struct wakings *wakings_new(const struct proxy_config *config, struct workers *workers)
{
	struct wakings *wakings = mem_new(sizeof(*wakings));

	wakings->config = config;
	wakings->workers = workers;
	/* As many wait as there is to be woken: each has begun something. */
	wakings->lanes = lanes_new(workers, 0);
	pthread_mutex_init(&wakings->lock, NULL);
	return wakings;
}

void wakings_free(struct wakings *wakings)
{
	if (!wakings)
		return;
	lanes_free(wakings->lanes);
	pthread_mutex_destroy(&wakings->lock);
	free(wakings);
}

void wakings_stop(struct wakings *wakings)
{
	atomic_store(&wakings->stopping, true);
}

/* Nobody joins it any more; who has. */
static struct passage *close_waking(struct waking *waking)
{
	struct wakings *wakings = waking->wakings;
	struct waking **at = &wakings->first;

	pthread_mutex_lock(&wakings->lock);
	while (*at != waking)
		at = &(*at)->next;
	*at = waking->next;
	pthread_mutex_unlock(&wakings->lock);
	return waking->passages;
}

/* Wakes it, and has all who waited look again. */
static void run(struct job *job)
{
	struct waking *waking = (struct waking *)((char *)job - offsetof(struct waking, job));
	struct wakings *wakings = waking->wakings;
	const struct proxy_config *config = wakings->config;
	struct passage *passage;

	if (!atomic_load(&wakings->stopping))
		config->wake(config->context, waking->key);
	lanes_leave(wakings->lanes, &waking->pass);
	passage = close_waking(waking);
	free(waking);
	while (passage && !atomic_load(&wakings->stopping)) {
		struct passage *next = passage->next_waiting;

		workers_submit_always(wakings->workers, &passage->job);
		passage = next;
	}
}

static struct waking *open_waking(struct wakings *wakings, const struct proxy_way *way)
{
	struct waking *waking = mem_new(sizeof(*waking));
	unsigned workers = wakings->config->max_workers;

	waking->wakings = wakings;
	memcpy(waking->key, way->key, sizeof(waking->key));
	waking->job.run = run;
	waking->pass = (struct lane_pass){.job = &waking->job,
		.claims = {{way->wake_lane, (workers + 7) / 8}, {LANE_OF_ALL, (workers + 1) / 2}},
		.count = 2,
		.is_patient = true};
	waking->next = wakings->first;
	wakings->first = waking;
	return waking;
}

void wakings_join(struct wakings *wakings, const struct proxy_way *way, struct passage *passage)
{
	struct waking *waking;
	bool is_first;

	pthread_mutex_lock(&wakings->lock);
	for (waking = wakings->first; waking && strcmp(waking->key, way->key) != 0;)
		waking = waking->next;
	is_first = !waking;
	if (is_first)
		waking = open_waking(wakings, way);
	if (passage) {
		passage->next_waiting = waking->passages;
		waking->passages = passage;
	}
	pthread_mutex_unlock(&wakings->lock);
	if (is_first && lanes_enter(wakings->lanes, &waking->pass) == 1)
		workers_submit_always(wakings->workers, &waking->job);
}
