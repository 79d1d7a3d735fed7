/* SPDX-License-Identifier: Apache-2.0 */
/* What a server counts of its answers, for whoever measures it. Any thread. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#define FIGURES_CLASSES 5 /* 1xx to 5xx */
#define FIGURES_BUCKETS 12

/* Upper ends of the buckets of times, in microseconds; the last has none. */
extern const uint64_t figures_bounds_us[FIGURES_BUCKETS - 1];

struct figures {
	atomic_uint_fast64_t answers[FIGURES_CLASSES];
	atomic_uint_fast64_t
		buckets[FIGURES_BUCKETS]; /* of times until an answer began to be sent */
	atomic_uint_fast64_t total_us;
};

void figures_count(struct figures *figures, int status, uint64_t took_us);
