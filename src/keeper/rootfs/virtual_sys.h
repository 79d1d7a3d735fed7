/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a sandbox sees of its machine: /sys, its own cgroups, and the files of /proc that count
 * processors and memory. Programs size themselves by it; no wall depends on it.
 *
 *   /sys                 a directory on the mount area, one for each number of processors
 *   /sys/fs/cgroup       the sandbox's own groups, read-only: on v2 the group itself, else a directory
 *                        with `unified` and one for each v1 controller
 *   /proc/cpuinfo        beside that /sys on the mount area
 *   /proc/meminfo, stat  a file each, made for the sandbox. The agent writes them (agent/machine/virtual_proc.h);
 *                        inside, their mounts are read-only. They keep their names on the mount area while it
 *                        runs: a file without a name cannot be mounted again, in an isolated command
 *                        (isolated_exec.h).
 *
 * sysfs itself is never mounted: it shows the host, and has more files that change it than a list could name.
 */
#pragma once

#include "base/err.h"
#include "keeper/cgroup/cgroup.h"

#include <stdint.h>

#define VIRTUAL_SYS_PROC_FILES 2 /* the files that the agent writes */

/* Mounts that were cloned and not attached yet, and descriptors to write with. */
struct virtual_sys {
	int sys, cpuinfo;
	int unified;	      /* -1: there are no groups */
	int v1[CGROUP_COUNT]; /* -1: not on v1 */
	int proc_files[VIRTUAL_SYS_PROC_FILES];
	int proc_file_fds[VIRTUAL_SYS_PROC_FILES]; /* meminfo, stat */
	const char *group;
	uint32_t base_uid;
};

/* Makes what sandboxes with that many processors share, unless it is there. */
int virtual_sys_prepare(int mount_area_fd, const struct cgroup_tree *cgroups, unsigned cpu_count,
	struct err *err) must_check;

/* In the child, once it is in its groups and before it leaves the keeper's mount namespace. */
int virtual_sys_clone(struct virtual_sys *view, int mount_area_fd,
	const struct cgroup_tree *cgroups, const char *group, unsigned cpu_count, uint32_t base_uid,
	struct err *err) must_check;

/* In the child, in its new root, once /proc is there. */
int virtual_sys_attach(const struct virtual_sys *view, struct err *err) must_check;

/* In the keeper, when the sandbox of that group has ended. */
void virtual_sys_discard(int mount_area_fd, const char *group);
