/* SPDX-License-Identifier: Apache-2.0 */
#include "http/lanes.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>

#define BUCKETS 1024

struct lane {
	struct lane *next; /* in its bucket */
	uint64_t key;
	unsigned inside, waiting;
	struct lane_pass *first, **last; /* of those who wait */
};

struct lanes {
	struct workers *workers;
	unsigned max_waiting;
	pthread_mutex_t lock;
	struct lane *buckets[BUCKETS];
};

struct lanes *lanes_new(struct workers *workers, unsigned max_waiting)
{
	struct lanes *lanes = mem_new(sizeof(*lanes));

	lanes->workers = workers;
	lanes->max_waiting = max_waiting;
	pthread_mutex_init(&lanes->lock, NULL);
	return lanes;
}

void lanes_free(struct lanes *lanes)
{
	if (!lanes)
		return;
	for (unsigned i = 0; i < BUCKETS; i++)
		assert(!lanes->buckets[i]);
	pthread_mutex_destroy(&lanes->lock);
	free(lanes);
}

/* Where the lane is, or would be put; the lock is held, here and below. */
static struct lane **find(struct lanes *lanes, uint64_t key)
{
	struct lane **at = &lanes->buckets[key % BUCKETS];

	while (*at && (*at)->key != key)
		at = &(*at)->next;
	return at;
}

static struct lane *open_lane(struct lanes *lanes, uint64_t key)
{
	struct lane **at = find(lanes, key);

	if (!*at) {
		*at = mem_new(sizeof(**at));
		(*at)->key = key;
		(*at)->last = &(*at)->first;
	}
	return *at;
}

static void queue(struct lane *lane, struct lane_pass *pass)
{
	pass->next = NULL;
	*lane->last = pass;
	lane->last = &pass->next;
	lane->waiting++;
}

/* Goes on through the lanes that are left; as lanes_enter(). */
static int advance(struct lanes *lanes, struct lane_pass *pass)
{
	while (pass->held < pass->count) {
		const struct lane_claim *claim = &pass->claims[pass->held];
		struct lane *lane = open_lane(lanes, claim->key);

		pass->lanes[pass->held] = lane;
		if (lane->inside < claim->max) {
			lane->inside++;
			pass->held++;
		} else if (lane->waiting < lanes->max_waiting || pass->is_patient) {
			queue(lane, pass);
			return 0;
		} else {
			return -EAGAIN;
		}
	}
	return 1;
}

/* The place of one who left goes to the first who waits. */
static void let_in(struct lanes *lanes, struct lane *lane)
{
	struct lane_pass *pass = lane->first;
	int r;

	lane->first = pass->next;
	if (!lane->first)
		lane->last = &lane->first;
	lane->waiting--;
	pass->held++;
	/* It has waited, so it is not sent away at the next lane. */
	pass->is_patient = true;
	r = advance(lanes, pass);
	assert(r >= 0);
	if (r == 1)
		workers_submit_always(lanes->workers, pass->job);
}

static void leave(struct lanes *lanes, struct lane_pass *pass)
{
	while (pass->held > 0) {
		struct lane *lane = pass->lanes[--pass->held];

		if (lane->first) {
			let_in(lanes, lane);
		} else if (--lane->inside == 0) {
			*find(lanes, lane->key) = lane->next;
			free(lane);
		}
	}
}

int lanes_enter(struct lanes *lanes, struct lane_pass *pass)
{
	int r;

	pass->held = 0;
	pthread_mutex_lock(&lanes->lock);
	r = advance(lanes, pass);
	if (r < 0)
		leave(lanes, pass);
	pthread_mutex_unlock(&lanes->lock);
	return r;
}

void lanes_leave(struct lanes *lanes, struct lane_pass *pass)
{
	pthread_mutex_lock(&lanes->lock);
	leave(lanes, pass);
	pthread_mutex_unlock(&lanes->lock);
}
