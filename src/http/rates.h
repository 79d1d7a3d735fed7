/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often something comes from each source (http/sources.h), counted with a bucket that refills. Whoever has
 * emptied its bucket is told how long to wait. Any thread.
 *
 * Of a fixed size: a source that is not there takes the place of one that has been quiet for longest, among few.
 */
#pragma once

#include <stdint.h>

struct rates;

/* So many at once, and so many a second for good, of each source. */
struct rates *rates_new(unsigned burst, unsigned per_second);
void rates_free(struct rates *rates);

/* Counts one. In how many seconds the source may try again; 0 if it may at once. */
unsigned rates_count(struct rates *rates, uint64_t source, uint64_t now_ms);
