/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper's shelf: a tmpfs that the host does not see, where mounts are kept (rootfs.h says why). A place is
 * a directory; one that nothing is mounted at is about to be filled, or was left by somebody who was killed.
 *
 * What each sandbox has there is in sections, which are file systems of their own. Whoever clones from a mount
 * makes the kernel look at everything that is mounted on it; so on the shelf itself, from which each build
 * clones a dozen files, there is little however many sandboxes there are.
 */
#pragma once

#include "base/err.h"

/* Mounts the shelf over the directory place_fd, which nobody looks for by name any more. */
int shelf_make(int place_fd, int *ret_fd, struct err *err) must_check;

/* Makes a section of the shelf and opens it. */
int shelf_open_section(int shelf_fd, const char *name, int *ret_fd, struct err *err) must_check;

/* Opens the root of what is mounted at section/name; -ENOENT if nothing is, -errno if that cannot be told. */
int shelf_open_mount(int section_fd, const char *name);

/* Attaches a mount at section/name, or moves it there. */
int shelf_put_mount(int section_fd, const char *name, int mount_fd, struct err *err) must_check;

/* Unmounts what is at section/name. */
int shelf_unmount(int section_fd, const char *name) must_check;

/* Removes a place that nothing is mounted at any more. */
void shelf_drop_place(int section_fd, const char *name);
