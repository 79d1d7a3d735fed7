/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The disks that are images: mounts those of sandboxes where a build finds them.
 *
 *   workspaces/<id>.img    the image, as long as the workspace exists (disk_image.h)
 *   spares/<n>             images of the disk pool (disk_pool.h)
 *
 *   on the mount area (mount_area.h):
 *   disks/<id>             where the image of a sandbox is mounted
 *   spares/<n>             where images of the disk pool are mounted
 *   unmounting/<n>         images that are being unmounted (disk_unmount.h)
 *
 * A mount takes a millisecond and an unmount several, so no request waits for one: a build takes a disk from
 * the pool by a rename and a move of its mount, and children unmount the disks of ended sandboxes later.
 *
 * All mounts are in the keeper's namespace and in those of sandboxes, so however the keeper ends they go
 * with it.
 */
#pragma once

#include "base/err.h"
#include "keeper/disk/disk_pool.h"
#include "keeper/disk/disk_trim.h"
#include "keeper/disk/disk_unmount.h"
#include "keeper/disk/storage.h"
#include "keeper/process/helpers.h"

#include <stdbool.h>

struct disk_mount {
	const struct storage *storage;
	int mounted_fd; /* on the mount area: disks */
	struct disk_pool disk_pool;
	struct disk_unmounts unmounts;
	struct disk_trim disk_trim;
	/* on the mount area: names of disks that the disk trimmer found to have failed */
	int failed_fd;
};

/* Also removes the pool disks of an earlier keeper. */
int disk_mount_open(struct disk_mount *disk_mount, const struct storage *storage, int mount_area_fd,
	struct helpers *helpers, struct err *err) must_check;

/* Makes an image and sets its limit: then all that an image needs is known to work. */
int disk_mount_try(struct disk_mount *disk_mount, struct err *err) must_check;

/* Starts the helpers; with fills_pool also that of the disk pool. */
void disk_mount_start(struct disk_mount *disk_mount, bool fills_pool);

/* Makes a pool disk the disk of a new sandbox, if the pool has one. */
int disk_mount_take(struct disk_mount *disk_mount, const char *id, struct err *err) must_check;

/* As the functions of disk.h with these names. */
int disk_mount_reserve(struct disk_mount *disk_mount, const char *name, struct err *err) must_check;
int disk_mount_hand_over(struct disk_mount *disk_mount, const char *name, const char *id,
	struct err *err) must_check;
void disk_mount_unreserve(struct disk_mount *disk_mount, const char *name);

/* Opens the root of the disk of a sandbox, as mount_area_open_mount. */
int disk_mount_open_root(const struct disk_mount *disk_mount, const char *id);

/*
 * In a child: opens the home of a sandbox. Unless root_fd is its root, mounts the image, and makes
 * it if there is none.
 */
int disk_mount_open_home(const struct disk_mount *disk_mount, const char *id, int root_fd,
	int *ret_home_fd, struct err *err) must_check;

/* Opens the home of a mounted disk; -1 if it is not mounted. */
int disk_mount_open_mounted(const struct disk_mount *disk_mount, const char *id);

/*
 * Lists sandboxes whose disk is mounted and has failed, as far as the disk trimmer has seen;
 * returns how many.
 */
uint32_t disk_mount_list_failed(
	const struct disk_mount *disk_mount, char ids[][KEEPER_ID_LEN + 1], uint32_t max);

/* Mounts an image that is not mounted, until the descriptor is closed. Slow: for children only. */
int disk_mount_borrow(const struct disk_mount *disk_mount, const char *id, int *ret_home_fd,
	struct err *err) must_check;

/* Discards an image, with all that is on it. */
int disk_mount_discard(struct disk_mount *disk_mount, const char *id, struct err *err) must_check;
