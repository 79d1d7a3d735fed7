/* SPDX-License-Identifier: Apache-2.0 */
#include "http/rates.h"

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

struct rates {
	uint64_t full, refill_per_ms;
	pthread_mutex_t lock;
	uint64_t seed; /* so that nobody can choose addresses that share a set */
	struct bucket buckets[SETS][WAYS];
};

struct rates *rates_new(unsigned burst, unsigned per_second)
{
	struct rates *rates = mem_new(sizeof(*rates));

	rates->full = (uint64_t)burst * COST;
	rates->refill_per_ms = (uint64_t)per_second * COST / 1000;
	pthread_mutex_init(&rates->lock, NULL);
	if (getrandom(&rates->seed, sizeof(rates->seed), 0) < 0)
		rates->seed = (uint64_t)(uintptr_t)rates;
	return rates;
}

void rates_free(struct rates *rates)
{
	if (!rates)
		return;
	pthread_mutex_destroy(&rates->lock);
	free(rates);
}

static struct bucket *find(struct rates *rates, uint64_t key, uint64_t now_ms)
{
	uint64_t mixed = (key ^ rates->seed) * UINT64_C(0x9e3779b97f4a7c15);
	struct bucket *set = rates->buckets[(mixed >> 32) % SETS];
	struct bucket *oldest = &set[0];

	for (int i = 0; i < WAYS; i++) {
		if (set[i].source == key)
			return &set[i];
		if (set[i].seen_ms < oldest->seen_ms)
			oldest = &set[i];
	}
	*oldest = (struct bucket){.source = key, .seen_ms = now_ms, .level = rates->full};
	return oldest;
}

unsigned rates_count(struct rates *rates, uint64_t source, uint64_t now_ms)
{
	struct bucket *bucket;
	unsigned wait_s = 0;

	pthread_mutex_lock(&rates->lock);
	bucket = find(rates, source, now_ms);
	if (now_ms > bucket->seen_ms) {
		bucket->level += (now_ms - bucket->seen_ms) * rates->refill_per_ms;
		bucket->seen_ms = now_ms;
	}
	if (bucket->level > rates->full)
		bucket->level = rates->full;
	if (bucket->level >= COST)
		bucket->level -= COST;
	else
		wait_s = 1 + (unsigned)((COST - bucket->level) / rates->refill_per_ms / 1000);
	pthread_mutex_unlock(&rates->lock);
	return wait_s;
}
