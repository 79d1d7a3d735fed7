/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The groups of a sandbox: its limits, freezing, figures. One on the unified tree, and one on each v1 hierarchy
 * that has a controller (cgroup_tree.h).
 *
 * Joining: a process written into cgroup.procs waits for an RCU grace period (11 ms measured). A
 * process born into a v2 group, or a thread that writes "0" into a v1 `tasks` file itself, does not.
 */
#pragma once

#include "base/err.h"
#include "keeper/cgroup_tree.h"
#include "wire/keeper.h"

/*
 * Makes the v2 group of a sandbox with the limits that live there; its directory descriptor, or -1 if
 * there are no groups. It is delegated to uid, the sandbox's root, who may make groups for commands one
 * level below it.
 */
int cgroup_make(const struct cgroup_tree *tree, const char *id, const struct keeper_limits *limits,
	uint32_t uid, int *ret_fd, struct err *err) must_check;

/*
 * The same directory as the root of a mount of its own, for the agent: from the other one ".." would
 * lead out of the sandbox, all the way up the host's tree. Of none (-1) it is none.
 */
int cgroup_detach(int fd, int *ret_fd, struct err *err) must_check;

/* In the child: makes the v1 groups with their limits and moves the calling thread into them. */
int cgroup_join_v1(const struct cgroup_tree *tree, const char *id,
	const struct keeper_limits *limits, struct err *err) must_check;

/* The same where they are there already. */
int cgroup_enter_v1(const struct cgroup_tree *tree, const char *id, struct err *err) must_check;

/*
 * In the child, when it has all but become the agent: where memory is on v1, moves it into a group of its
 * own beside the sandbox's, with a limit of its own. So when the sandbox's memory is used up, and be it by
 * what belongs to no process, the kernel looks for somebody to kill among the commands only. They join
 * by writing 0 into *ret_work_fd. On v2, and on v1 where it is only delegated to us (the kernel lets nobody
 * but root move what another uid runs), it is -1 and the agent stays: a process that changes between such
 * groups there waits 11 ms.
 */
int cgroup_part_agent(const struct cgroup_tree *tree, const char *id,
	const struct keeper_limits *limits, int *ret_work_fd, struct err *err) must_check;

/* Removes all groups of a sandbox and its commands. -EBUSY while something in them still dies. */
int cgroup_remove(const struct cgroup_tree *tree, const char *id) must_check;

/* Begins to freeze or to thaw; whether it is frozen by now: 1, 0, or -errno. */
int cgroup_freeze(const struct cgroup_tree *tree, const char *id, bool freeze, struct err *err)
	must_check;
int cgroup_is_frozen(const struct cgroup_tree *tree, const char *id, struct err *err) must_check;

/* For a tree in which no controller is missing. */
int cgroup_stats(const struct cgroup_tree *tree, const char *id, struct keeper_stats *ret_stats,
	struct err *err) must_check;

/* Kills and removes whatever groups a keeper before us left behind. */
void cgroup_sweep(const struct cgroup_tree *tree);
