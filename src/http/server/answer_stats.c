/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server/answer_stats.h"

#include "base/mem.h"

const uint64_t answer_stats_bounds_us[ANSWER_STATS_BUCKETS - 1] = {
	1000, 2500, 5000, 10000, 25000, 50000, 100000, 250000, 1000000, 5000000, 30000000};

void answer_stats_count(struct answer_stats *stats, int status, uint64_t took_us)
{
	unsigned class = status >= 100 && status < 600 ? (unsigned)status / 100 - 1 : 4, bucket = 0;

	while (bucket < array_len(answer_stats_bounds_us) &&
		took_us > answer_stats_bounds_us[bucket])
		bucket++;
	atomic_fetch_add_explicit(&stats->answers[class], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&stats->buckets[bucket], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&stats->total_us, took_us, memory_order_relaxed);
}
