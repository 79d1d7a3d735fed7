/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts how often something comes from each source (http/address_key.h), with a token bucket. A
 * source that has emptied its bucket is told how long to wait. Any thread.
 *
 * The table has a fixed size: a new source replaces the one of a few that has been quiet for
 * longest.
 */
#pragma once

#include <stdint.h>

struct rate_limit;

/* Allows each source `burst` at once, and `per_second` in the long run. */
struct rate_limit *rate_limit_new(unsigned burst, unsigned per_second);
void rate_limit_free(struct rate_limit *rate_limit);

/* Counts one event. Returns in how many seconds the source may try again; 0: now. */
unsigned rate_limit_count(struct rate_limit *rate_limit, uint64_t source, uint64_t now_ms);
