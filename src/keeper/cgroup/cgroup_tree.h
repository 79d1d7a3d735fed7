/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the host has its cgroup controllers, and our directories there.
 *
 * The keeper looks for memory, cpu and pids each on the unified (v2) tree and then on a v1
 * hierarchy of their own. The unified tree, even one without controllers, gives every sandbox a
 * group that can be frozen and that its first process is cloned into. All groups of one keeper are
 * below one directory `sandlot-<tag>` in each hierarchy, so that two keepers on a machine do not
 * meet.
 *
 * The keeper of an ordinary user may use only what was delegated to that user
 * (cgroup_delegation.h). Without a delegation there are no groups: none is made, none is shown,
 * process_count.h counts the sandbox's processes, and what only a group can do is refused.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum cgroup_controller { CGROUP_MEMORY, CGROUP_CPU, CGROUP_PIDS, CGROUP_COUNT };

struct cgroup_tree {
	int unified_fd;		 /* our directory on v2; -1: there are no groups */
	int v1_fd[CGROUP_COUNT]; /* the same on a controller's v1 hierarchy; -1: it is on v2 */
	uint32_t missing;	 /* bits of controllers that the host has nowhere, or not for us */
	bool is_host;		 /* we are root of the host, not of what was delegated */
	char name[32];
};

/* "memory", say. */
const char *cgroup_tree_controller(enum cgroup_controller controller);

/* No groups at all. */
#define CGROUP_TREE_NONE                                                                           \
	((struct cgroup_tree){                                                                     \
		.unified_fd = -1, .v1_fd = {-1, -1, -1}, .missing = (1u << CGROUP_COUNT) - 1})

static inline bool cgroup_tree_is_real(const struct cgroup_tree *tree)
{
	return tree->unified_fd >= 0;
}

static inline bool cgroup_tree_has(
	const struct cgroup_tree *tree, enum cgroup_controller controller)
{
	return !(tree->missing & (1u << controller));
}

/*
 * Finds the hierarchies and makes our directory in each: at their roots, where everything must be there,
 * or, if we are root of less than the host, in what was delegated.
 */
int cgroup_tree_open(struct cgroup_tree *tree, const char *tag, bool is_host, struct err *err)
	must_check;

/* Removes our directories; those that are not empty stay. */
void cgroup_tree_close(struct cgroup_tree *tree);

/* A directory in one of them, made if it is missing; its descriptor. */
int cgroup_tree_open_dir(int parent, const char *name, struct err *err) must_check;
