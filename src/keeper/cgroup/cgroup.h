/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cgroups of a sandbox: limits, freezing, statistics. There is one on the unified tree, and one
 * on each v1 hierarchy that has a controller (cgroup_tree.h).
 *
 * Joining: a process written into cgroup.procs waits for an RCU grace period (11 ms measured). A
 * process that is cloned into a v2 group, or a thread that writes "0" into a v1 `tasks` file
 * itself, does not wait.
 */
#pragma once

#include "base/err.h"
#include "keeper/cgroup/cgroup_tree.h"
#include "wire/keeper.h"

#include <sched.h>

/*
 * Makes the v2 group of a sandbox with the limits that live there; its directory descriptor, or -1 if
 * there are no groups. It is delegated to uid, the sandbox's root, who may make groups for commands one
 * level below it.
 */
int cgroup_make(const struct cgroup_tree *tree, const char *id, const struct keeper_limits *limits,
	uint32_t uid, int *ret_fd, struct err *err) must_check;

/*
 * Opens the same directory as the root of a mount of its own, for the agent: from the other one
 * ".." would lead out of the sandbox, all the way up the host's tree. For -1 it returns -1.
 */
int cgroup_detach(int fd, int *ret_fd, struct err *err) must_check;

/* In the child: makes the v1 groups with their limits and moves the calling thread into them. */
int cgroup_join_v1(const struct cgroup_tree *tree, const char *id,
	const struct keeper_limits *limits, struct err *err) must_check;

/*
 * Gives a sandbox that runs other limits, and binds its threads to these processors (NULL: to any). Without
 * groups nothing is limited, and this does nothing. `before` are the limits that it has: only what differs is written,
 * and a limit of 0 there is not known. On a failure some limits may be the new ones. ERR_CONFLICT "memory_in_use" if the
 * sandbox holds more memory than that: then none is.
 */
int cgroup_change(const struct cgroup_tree *tree, const char *id,
	const struct keeper_limits *before, const struct keeper_limits *limits, struct err *err)
	must_check;
/* Where processors are short, those in the background get a small part of what the others get. */
int cgroup_set_weight(const struct cgroup_tree *tree, const char *id, bool is_background,
	struct err *err) must_check;
void cgroup_bind(const struct cgroup_tree *tree, const char *id, const cpu_set_t *set);

/* Joins v1 groups that exist already. */
int cgroup_enter_v1(const struct cgroup_tree *tree, const char *id, struct err *err) must_check;

/*
 * In the child, right before it becomes the agent: where memory is on v1, moves it into a group of
 * its own beside the sandbox's, with a limit of its own. So when the sandbox's memory is used up,
 * even by memory that belongs to no process, the kernel kills only commands. They join their group
 * by writing 0 into *ret_work_fd. On v2, and on a delegated v1 (where the kernel lets only root
 * move processes of another uid), *ret_work_fd is -1 and the agent stays: a process that moves
 * between such groups there waits 11 ms.
 */
int cgroup_part_agent(const struct cgroup_tree *tree, const char *id,
	const struct keeper_limits *limits, int *ret_work_fd, struct err *err) must_check;

/*
 * Writes the sandbox's id to the v2 group, for an operator who starts from a process or a group:
 * the group of a sandbox that was built ahead keeps its first name, since a v2 group cannot be
 * renamed. It is an extended attribute that only the host's root can change; a keeper that is not
 * root of the host sets one that its user can change.
 */
#define CGROUP_OWNER_ROOT "trusted.sandlot.sandbox"
#define CGROUP_OWNER_USER "user.sandlot.sandbox"
void cgroup_name_owner(const struct cgroup_tree *tree, const char *group, const char *id);

/* Whether a process is in the groups of a sandbox, if only one that is still dying. */
bool cgroup_has_processes(const struct cgroup_tree *tree, const char *id);

/*
 * Removes all cgroups of a sandbox and its commands. -EBUSY while a process in them is still dying.
 */
int cgroup_remove(const struct cgroup_tree *tree, const char *id) must_check;

/* Begins to freeze or to thaw; cgroup_is_frozen returns 1, 0, or -errno. */
int cgroup_freeze(const struct cgroup_tree *tree, const char *id, bool freeze, struct err *err)
	must_check;
int cgroup_is_frozen(const struct cgroup_tree *tree, const char *id, struct err *err) must_check;

/* For a tree in which no controller is missing. */
int cgroup_stats(const struct cgroup_tree *tree, const char *id, struct keeper_stats *ret_stats,
	struct err *err) must_check;

/* Kills and removes the cgroups that an earlier keeper left. */
void cgroup_sweep(const struct cgroup_tree *tree);
