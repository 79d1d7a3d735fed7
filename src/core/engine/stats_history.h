/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a sandbox has used lately, so that charts have a past: an hour in steps of ten seconds, and a day in steps of five
 * minutes, each the mean of its samples. In memory alone: it grows to about 16 KiB in a day. No locks: whoever has it
 * guards it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STATS_FINE_S   10
#define STATS_COARSE_S 300
#define STATS_FINE     360 /* an hour */
#define STATS_COARSE   288 /* a day */

/* What was used at a time; of processors and network, since the sample before. */
struct stats_point {
	uint32_t at_s;	    /* of the wall clock; the end of its step */
	float cpu;	    /* processors in use: 1 is one of them, all the time */
	float memory, disk; /* bytes */
	float rx, tx;	    /* bytes a second */
};

struct stats_history;

struct stats_history *stats_history_new(void);
void stats_history_free(struct stats_history *history);

void stats_history_add(struct stats_history *history, const struct stats_point *point);

/* Copies those since a time, the oldest first, coarse or fine: how many. */
size_t stats_history_read(const struct stats_history *history, bool is_coarse, uint32_t since_s,
	struct stats_point *points, size_t max);
