/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cgroups of sandboxes that have ended. To remove them takes as long as to end the processes that were in them, so
 * nobody who waits for the end of a sandbox waits for that too: they are removed a moment later, one in each turn of
 * the loop, more if many wait, or before a sandbox of the same name begins.
 */
#pragma once

#include "keeper/cgroup/cgroup.h"

struct cgroup_removal;

struct cgroup_removals {
	const struct cgroup_tree *tree;
	struct cgroup_removal *first; /* the oldest first */
};

/* The groups are empty (cgroup_has_processes). Those that wait already wait on. */
void cgroup_removals_add(struct cgroup_removals *removals, const char *id);

/*
 * Removes the groups of this name now, if they wait for it, before a sandbox of that name begins. What cannot be removed is
 * its own from then on, and goes when that one has ended.
 */
void cgroup_removals_hurry(struct cgroup_removals *removals, const char *id);

/* Removes what is due; returns in how many ms to call again, -1 for never. */
int cgroup_removals_tend(struct cgroup_removals *removals);

/* Removes all, at the end of the keeper. */
void cgroup_removals_finish(struct cgroup_removals *removals);
