/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper's mount area: a tmpfs that the host does not see, where mounts are kept (rootfs.h says
 * why). A place is a directory on it; a place without a mount is about to be filled, or its process
 * was killed.
 *
 * The mounts of single sandboxes are in sections, which are file systems of their own. When a
 * process clones from a mount, the kernel looks at everything that is mounted on it; so the mount
 * area itself, from which each build clones a dozen files, has few mounts however many sandboxes
 * there are.
 */
#pragma once

#include "base/err.h"

/* Mounts the mount area over the directory place_fd, which is not looked up by name any more. */
int mount_area_make(int place_fd, int *ret_fd, struct err *err) must_check;

/* Makes a section of the mount area and opens it. */
int mount_area_open_section(int mount_area_fd, const char *name, int *ret_fd, struct err *err)
	must_check;

/* Opens the root of what is mounted at section/name; -ENOENT if nothing is, -errno if that cannot be told. */
int mount_area_open_mount(int section_fd, const char *name);

/* Attaches a mount at section/name, or moves it there. */
int mount_area_put_mount(int section_fd, const char *name, int mount_fd, struct err *err)
	must_check;

/* Unmounts what is at section/name. */
int mount_area_unmount(int section_fd, const char *name) must_check;

/* Removes a place that nothing is mounted at any more. */
void mount_area_drop_place(int section_fd, const char *name);
