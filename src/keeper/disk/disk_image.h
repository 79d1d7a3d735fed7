/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An image (ext4_image.h) as the disk of a sandbox: workspaces/<id>.img, or a name in spares/ while
 * it is in the disk pool. The root of its file system holds one directory, the home, which holds
 * all that a sandbox has.
 */
#pragma once

#include "base/err.h"
#include "keeper/disk/storage.h"

#include <stdbool.h>
#include <sys/types.h>

#define DISK_IMAGE_NAME_MAX (KEEPER_ID_LEN + 8)

/* The name of the image of a sandbox, below workspaces/. */
void disk_image_name(const char *id, char name[static DISK_IMAGE_NAME_MAX]);

/*
 * The group of the file of an image is the first gid of its sandbox's range, so that nobody has to
 * mount it to know whose it is. disk_image_mark sets that; disk_image_owner reads it: 1, 0 if it is
 * root's still, or -errno (-ENOENT: there is no image).
 */
void disk_image_mark(const struct storage *storage, const char *id, uint32_t base_gid);
int disk_image_owner(const struct storage *storage, const char *id, uint32_t *ret_gid) must_check;

/* Whether a sandbox has an image, mounted or not. */
bool disk_image_exists(const struct storage *storage, const char *id);

/*
 * disk_image_make makes a new image and mounts it, with a home but without a name; disk_image_link
 * names it.
 */
int disk_image_make(const struct storage *storage, int *ret_file_fd, int *ret_mount_fd,
	struct err *err) must_check;
int disk_image_link(int file_fd, int dirfd, const char *name, struct err *err) must_check;

/*
 * Mounts the image of a sandbox, detached, as ext4_image_mount. A copy of another sandbox's disk holds files of that
 * one's uid range: it is mounted so that they belong to the range that the image is marked with.
 */
int disk_image_mount(const struct storage *storage, const char *id, int *ret_mount_fd,
	struct err *err) must_check;

/* Makes the files of a mounted image belong to the range of a uid, if they belong to another. */
int disk_image_map_range(int mount_fd, uint32_t wanted, struct err *err) must_check;

/*
 * Lends the image of a sandbox to a user, as ext4_image_lend. 1 and its file, or 0. Slow: for
 * children only.
 */
int disk_image_lend(const struct storage *storage, const char *id, uid_t uid, int *ret_file_fd,
	struct err *err) must_check;

/* Whether files of any uid range can be made on the mounted disk, whose home is open: it maps none. */
bool disk_image_maps_no_range(int home_fd);

/* Opens the home of an image whose root is open. */
int disk_image_open_home(int root_fd, int *ret_home_fd, struct err *err) must_check;

/*
 * Gives free blocks of a sandbox's image back to the host, if they are many; fd is any directory on
 * it. As ext4_image_trim. For children only.
 */
void disk_image_give_back(const struct storage *storage, const char *id, int fd);
