/* SPDX-License-Identifier: Apache-2.0 */
#include "http/rate_limit.h"

#include "base/mem.h"

#include <pthread.h>
#include <sys/random.h>

#define SETS 512
#define WAYS 8
#define COST 1000 /* of one, in thousandths, so that a millisecond can refill a part of it */

struct bucket {
	uint64_t source; /* 0: free, as no source is */
	uint64_t seen_ms;
	uint64_t level; /* what is left */
};

struct rate_limit {
	uint64_t full, refill_per_ms;
	pthread_mutex_t lock;
	uint64_t seed; /* so that nobody can choose addresses that share a set */
	struct bucket buckets[SETS][WAYS];
};

struct rate_limit *rate_limit_new(unsigned burst, unsigned per_second)
{
	struct rate_limit *rate_limit = mem_new(sizeof(*rate_limit));

	rate_limit->full = (uint64_t)burst * COST;
	rate_limit->refill_per_ms = (uint64_t)per_second * COST / 1000;
	pthread_mutex_init(&rate_limit->lock, NULL);
	if (getrandom(&rate_limit->seed, sizeof(rate_limit->seed), 0) < 0)
		rate_limit->seed = (uint64_t)(uintptr_t)rate_limit;
	return rate_limit;
}

void rate_limit_free(struct rate_limit *rate_limit)
{
	if (!rate_limit)
		return;
	pthread_mutex_destroy(&rate_limit->lock);
	free(rate_limit);
}

static struct bucket *find(struct rate_limit *rate_limit, uint64_t key, uint64_t now_ms)
{
	uint64_t mixed = (key ^ rate_limit->seed) * UINT64_C(0x9e3779b97f4a7c15);
	struct bucket *set = rate_limit->buckets[(mixed >> 32) % SETS];
	struct bucket *oldest = &set[0];

	for (int i = 0; i < WAYS; i++) {
		if (set[i].source == key)
			return &set[i];
		if (set[i].seen_ms < oldest->seen_ms)
			oldest = &set[i];
	}
	*oldest = (struct bucket){.source = key, .seen_ms = now_ms, .level = rate_limit->full};
	return oldest;
}

unsigned rate_limit_count(struct rate_limit *rate_limit, uint64_t source, uint64_t now_ms)
{
	struct bucket *bucket;
	unsigned wait_s = 0;

	pthread_mutex_lock(&rate_limit->lock);
	bucket = find(rate_limit, source, now_ms);
	if (now_ms > bucket->seen_ms) {
		bucket->level += (now_ms - bucket->seen_ms) * rate_limit->refill_per_ms;
		bucket->seen_ms = now_ms;
	}
	if (bucket->level > rate_limit->full)
		bucket->level = rate_limit->full;
	if (bucket->level >= COST)
		bucket->level -= COST;
	else
		wait_s = 1 + (unsigned)((COST - bucket->level) / rate_limit->refill_per_ms / 1000);
	pthread_mutex_unlock(&rate_limit->lock);
	return wait_s;
}
