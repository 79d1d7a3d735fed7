/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares the upper layer of an overlay with what is below it, while a walk goes over the layer.
 *
 * An upper layer says by an attribute that a directory hides all that is below it ("opaque"). Who
 * is confined in a user namespace cannot read that attribute on every host; so it is told by its
 * effect: a name that is below, but neither in the upper layer nor in both together, is hidden.
 */
#pragma once

#include "base/mem.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#define TREE_COMPARE_NAMES_MAX 262144 /* hidden names that are held at a time */

/* The names that a directory hides, sorted. */
struct tree_compare_level {
	char *path; /* of the directory */
	char **names;
	size_t count, next;
};

/* All descriptors are the caller's. */
struct tree_compare {
	int upper, below, merged;
	struct tree_compare_level *levels; /* each is in the directory of the one before */
	size_t depth;
	size_t held;
};

void tree_compare_fini(struct tree_compare *compare);

/* Whether there is something of this path below: 1 with what it is, 0, or -errno. */
int tree_compare_find(const struct tree_compare *compare, const char *path, struct stat *ret_stat)
	must_check;

/* Notes what a directory of the upper layer hides, that is a directory below too. -E2BIG. */
int tree_compare_enter(struct tree_compare *compare, const char *path) must_check;

/* Gives the next hidden path that comes before another one (NULL: before none); false: no more. */
bool tree_compare_next(
	struct tree_compare *compare, const char *before, char *ret_path, size_t size);
