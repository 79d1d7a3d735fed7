/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What covers files of /proc in a sandbox: names that tell about the host or about other sandboxes are masked,
 * with an empty file, an empty directory, or a copy without the numbers where programs need the names in it;
 * and some files are the sandbox's own (virtual_sys.h).
 */
#pragma once

#include "base/err.h"

#include <stddef.h>
#include <stdio.h>

#define PROC_MASKS_MAX	48
#define PROC_COVERS_MAX (PROC_MASKS_MAX + 3)

/* The names that exist on this host and that all may read. */
struct proc_masks {
	const char *names[PROC_MASKS_MAX];
	enum proc_cover { COVER_FILE, COVER_DIR, COVER_COPY } covers[PROC_MASKS_MAX];
	size_t count;
	int source_fd; /* the mount area, by a mount with the attributes that masks have */
};

/* Finds them, and puts the empty file and the copies on the mount area. */
int proc_mask_find(struct proc_masks *masks, int mount_area_fd, struct err *err) must_check;

/* Writes a copy of /proc/cgroups or /proc/vmstat whose counts are 0. */
int proc_mask_copy(const char *name, FILE *in, FILE *out) must_check;

/* The mounts that mask them, read-only clones of what lies on the mount area; and putting them into place, in the
 * sandbox's root. Their descriptors stay open until the child executes the agent. */
int proc_mask_clone(const struct proc_masks *masks, int ret_fds[static PROC_MASKS_MAX],
	struct err *err) must_check;
int proc_mask_place(const struct proc_masks *masks, const int fds[static PROC_MASKS_MAX],
	struct err *err) must_check;

/*
 * Clones all mounts that cover the sandbox's /proc, which no process inside can have changed, for
 * another /proc of the same sandbox.
 */
int proc_mask_clone_covers(const struct proc_masks *masks, int ret_fds[static PROC_COVERS_MAX],
	struct err *err) must_check;
int proc_mask_place_covers(const struct proc_masks *masks, const int fds[static PROC_COVERS_MAX],
	struct err *err) must_check;
