/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shares of the worker threads: whoever makes many slow requests keeps no others from being served.
 *
 * A lane is whatever requests have in common: their owner, or an object of that owner. It exists while
 * somebody is in it or waits, and lets in as many at a time as its share of the threads is. Who waits
 * holds no thread: its job is handed to the workers again when another leaves. In order of arrival.
 *
 * A pass may lead through two lanes, always entered in their order: the narrower one first, so that
 * those who wait for it take no place in the wider one. Any thread.
 */
#pragma once

#include "base/mem.h"
#include "http/workers.h"

#include <stdbool.h>
#include <stdint.h>

#define LANES_OF_A_PASS 2

struct lane;
struct lanes;

/* Embedded in what a job works on. Set by its owner: job, claims, count, is_patient. */
struct lane_pass {
	struct job *job; /* runs again when it is let in after a wait */
	struct lane_claim {
		uint64_t key;
		unsigned
			max; /* how many may be in that lane at a time; the same for all of a key */
	} claims[LANES_OF_A_PASS];
	unsigned count;
	bool is_patient; /* it ends something begun, so it is never refused */

	struct lane *lanes[LANES_OF_A_PASS];
	unsigned held; /* of them, entered */
	struct lane_pass *next;
};

/* max_waiting: for each lane. The workers must outlive all passes. */
struct lanes *lanes_new(struct workers *workers, unsigned max_waiting);
void lanes_free(struct lanes *lanes);

/*
 * 1: it is in, and must leave. 0: it waits; whoever called must not touch it any more, its job runs
 * when it is in. -EAGAIN: too many wait there; it is in no lane.
 */
int lanes_enter(struct lanes *lanes, struct lane_pass *pass) must_check;
void lanes_leave(struct lanes *lanes, struct lane_pass *pass);
