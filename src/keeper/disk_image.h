/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An image (image.h) as the disk of a sandbox: workspaces/<id>.img, or a name among the spares while nobody
 * has it. The root of its file system holds one directory, its home, and that all that a sandbox has.
 */
#pragma once

#include "base/err.h"
#include "keeper/storage.h"

#include <stdbool.h>

#define DISK_IMAGE_NAME_MAX (KEEPER_ID_LEN + 8)

/* The name of the image of a sandbox, among the workspaces. */
void disk_image_name(const char *id, char name[static DISK_IMAGE_NAME_MAX]);

/* Whether a sandbox has one, mounted or not. */
bool disk_image_exists(const struct storage *storage, const char *id);

/* Makes a new one, mounted and furnished but nameless; and gives it a name. */
int disk_image_make(const struct storage *storage, int *ret_file_fd, int *ret_mount_fd,
	struct err *err) must_check;
int disk_image_link(int file_fd, int dirfd, const char *name, struct err *err) must_check;

/* Mounts that of a sandbox, detached, as image_mount. */
int disk_image_mount(const struct storage *storage, const char *id, int *ret_mount_fd,
	struct err *err) must_check;

/* Opens the home of one whose root is open. */
int disk_image_open_home(int root_fd, int *ret_home_fd, struct err *err) must_check;

/* Gives the host back what is free in that of a sandbox, of which fd is any directory. For children. */
void disk_image_give_back(const struct storage *storage, const char *id, int fd);
