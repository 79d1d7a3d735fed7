/* SPDX-License-Identifier: Apache-2.0 */
#include "http/failures.h"

#include "base/mem.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/random.h>

#define SETS	      512
#define WAYS	      8
#define COST	      1000 /* of one, in thousandths, so that a millisecond can refill a part of it */
#define FULL	      (FAILURES_BURST * COST)
#define REFILL_PER_MS (FAILURES_PER_SEC * COST / 1000)

struct bucket {
	uint64_t source; /* 0: free */
	uint64_t seen_ms;
	uint64_t level; /* what is left */
};

struct failures {
	pthread_mutex_t lock;
	uint64_t seed; /* so that nobody can choose addresses that share a set */
	struct bucket buckets[SETS][WAYS];
};

struct failures *failures_new(void)
{
	struct failures *failures = mem_new(sizeof(*failures));

	pthread_mutex_init(&failures->lock, NULL);
	if (getrandom(&failures->seed, sizeof(failures->seed), 0) < 0)
		failures->seed = (uint64_t)(uintptr_t)failures;
	return failures;
}

void failures_free(struct failures *failures)
{
	if (!failures)
		return;
	pthread_mutex_destroy(&failures->lock);
	free(failures);
}

static uint64_t source_key(const struct sockaddr_storage *source)
{
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)source;
	uint64_t key = 0;
	uint32_t v4;

	if (source->ss_family == AF_INET6 && !IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
		memcpy(&key, &v6->sin6_addr, sizeof(key));
		return key ? key : 1; /* ::1 has nothing in its first half */
	}
	if (source->ss_family == AF_INET6)
		memcpy(&v4, (const char *)&v6->sin6_addr + 12, sizeof(v4));
	else
		v4 = ((const struct sockaddr_in *)source)->sin_addr.s_addr;
	return UINT64_C(1) << 32 | v4;
}

static struct bucket *find(struct failures *failures, uint64_t key, uint64_t now_ms)
{
	uint64_t mixed = (key ^ failures->seed) * UINT64_C(0x9e3779b97f4a7c15);
	struct bucket *set = failures->buckets[(mixed >> 32) % SETS];
	struct bucket *oldest = &set[0];

	for (int i = 0; i < WAYS; i++) {
		if (set[i].source == key)
			return &set[i];
		if (set[i].seen_ms < oldest->seen_ms)
			oldest = &set[i];
	}
	*oldest = (struct bucket){.source = key, .seen_ms = now_ms, .level = FULL};
	return oldest;
}

unsigned failures_count(
	struct failures *failures, const struct sockaddr_storage *source, uint64_t now_ms)
{
	struct bucket *bucket;
	unsigned wait_s = 0;

	pthread_mutex_lock(&failures->lock);
	bucket = find(failures, source_key(source), now_ms);
	if (now_ms > bucket->seen_ms) {
		bucket->level += (now_ms - bucket->seen_ms) * REFILL_PER_MS;
		bucket->seen_ms = now_ms;
	}
	if (bucket->level > FULL)
		bucket->level = FULL;
	if (bucket->level >= COST)
		bucket->level -= COST;
	else
		wait_s = 1 + (unsigned)((COST - bucket->level) / REFILL_PER_MS / 1000);
	pthread_mutex_unlock(&failures->lock);
	return wait_s;
}
