/* SPDX-License-Identifier: Apache-2.0 */
/* What a server counts of its answers, for whoever measures it. Any thread. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#define ANSWER_STATS_CLASSES 5 /* 1xx to 5xx */
#define ANSWER_STATS_BUCKETS 12

/* Upper ends of the buckets of times, in microseconds; the last has none. */
extern const uint64_t answer_stats_bounds_us[ANSWER_STATS_BUCKETS - 1];

struct answer_stats {
	atomic_uint_fast64_t answers[ANSWER_STATS_CLASSES];
	atomic_uint_fast64_t
		buckets[ANSWER_STATS_BUCKETS]; /* of times until an answer began to be sent */
	atomic_uint_fast64_t total_us;
};

void answer_stats_count(struct answer_stats *stats, int status, uint64_t took_us);
