/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names in watched directories that are remembered for a while: at most a fixed number of them,
 * each with a time, in the order in which they were put in.
 */
#pragma once

#include "base/mem.h"

#include <stdbool.h>
#include <stdint.h>

#define NAME_SET_BUCKETS 4096

struct name_entry {
	struct name_entry *next_in_bucket;
	struct name_entry *older, *newer;
	uint64_t due_ms;
	int wd; /* of the directory */
	char name[];
};

struct name_set {
	struct name_entry *buckets[NAME_SET_BUCKETS];
	struct name_entry *oldest, *newest;
	size_t count;
	size_t max;
};

void name_set_fini(struct name_set *set); /* which is then empty, not unusable */

/* False if it is full; a name that is there already keeps its time and place. */
bool name_set_put(struct name_set *set, int wd, const char *name, uint64_t due_ms);

/* Takes it out; whether it was there. */
bool name_set_take(struct name_set *set, int wd, const char *name);

/* The oldest, which the set still owns; NULL if there is none. */
const struct name_entry *name_set_oldest(const struct name_set *set);
