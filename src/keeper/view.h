/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a sandbox sees of its machine: /sys, its own cgroups, and the files of /proc that count
 * processors and memory. It is a view, so that programs size themselves to what they have; no wall
 * depends on it.
 *
 *   /sys                 a directory on the shelf, one for each number of processors
 *   /sys/fs/cgroup       the sandbox's own groups, read-only: on v2 the group itself, else a directory
 *                        with `unified` and one for each v1 controller
 *   /proc/cpuinfo        beside that /sys on the shelf
 *   /proc/meminfo, stat  a file each, made for the sandbox. The agent writes them (agent/machine.h);
 *                        inside, their mounts are read-only. They keep their names on the shelf while it
 *                        runs: without one a file cannot be mounted again, in a cell (cell.h).
 *
 * sysfs itself is never mounted: it tells of the host, and has more knobs than anybody can list.
 */
#pragma once

#include "base/err.h"
#include "keeper/cgroup.h"

#include <stdint.h>

#define VIEW_SHEETS 2 /* the files that the agent writes */

/* Mounts that were cloned and not attached yet, and descriptors to write with. */
struct view {
	int sys, cpuinfo;
	int unified;	      /* -1: there are no groups */
	int v1[CGROUP_COUNT]; /* -1: not on v1 */
	int sheets[VIEW_SHEETS];
	int sheet_fds[VIEW_SHEETS]; /* meminfo, stat */
	const char *group;
	uint32_t base_uid;
};

/* Makes what sandboxes with that many processors share, unless it is there. */
int view_prepare(int shelf_fd, const struct cgroup_tree *cgroups, unsigned cpu_count,
	struct err *err) must_check;

/* In the child, once it is in its groups and before it leaves the keeper's mount namespace. */
int view_clone(struct view *view, int shelf_fd, const struct cgroup_tree *cgroups,
	const char *group, unsigned cpu_count, uint32_t base_uid, struct err *err) must_check;

/* In the child, in its new root, once /proc is there. */
int view_attach(const struct view *view, struct err *err) must_check;

/* In the keeper, when the sandbox of that group has ended. */
void view_discard(int shelf_fd, const char *group);
