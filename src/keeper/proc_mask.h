/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What covers files of /proc in a sandbox: names that tell about the host are masked, with the null device or
 * an empty directory; and some files are the sandbox's own (view.h).
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

#define PROC_MASKS_MAX	32
#define PROC_COVERS_MAX (PROC_MASKS_MAX + 3)

/* The names that exist on this host and that all may read. */
struct proc_masks {
	const char *names[PROC_MASKS_MAX];
	bool is_dir[PROC_MASKS_MAX];
	size_t count;
};

void proc_mask_find(struct proc_masks *masks);

/* The mounts that mask them: clones of `blank` of the shelf and `null` of /dev; and putting them into place, in
 * the sandbox's root. */
int proc_mask_clone(const struct proc_masks *masks, int shelf_fd, int dev_fd,
	int ret_fds[static PROC_MASKS_MAX], struct err *err) must_check;
int proc_mask_place(const struct proc_masks *masks, const int fds[static PROC_MASKS_MAX],
	struct err *err) must_check;

/*
 * The same for another /proc of the same sandbox: all that covers the one it has, where nobody inside can have
 * changed it.
 */
int proc_mask_clone_covers(const struct proc_masks *masks, int ret_fds[static PROC_COVERS_MAX],
	struct err *err) must_check;
int proc_mask_place_covers(const struct proc_masks *masks, const int fds[static PROC_COVERS_MAX],
	struct err *err) must_check;
