/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The disk pool: a mount takes a millisecond, so a few disks without an owner are mounted ahead.
 *
 * A pool disk is an image in spares/ of the data directory, mounted under the same name in spares/
 * of the mount area. A long-lived helper makes them; the children that unmount disks
 * (disk_unmount.h) also put small discarded ones here. The process that takes a pool disk moves
 * both.
 */
#pragma once

#include "base/err.h"
#include "keeper/disk/disk_image.h"
#include "keeper/process/helpers.h"

#include <stdbool.h>

#define DISK_POOL_USED "used-" /* how the names of images begin that had an owner */

struct disk_pool {
	const struct storage *storage;
	int ready_fd;	  /* where they are mounted */
	unsigned *wanted; /* how many are kept; shared with the helper */
	struct helpers *helpers;
	struct helper helper;
};

/* Also removes the pool disks of an earlier keeper. */
int disk_pool_open(struct disk_pool *disk_pool, const struct storage *storage, int mount_area_fd,
	struct helpers *helpers, struct err *err) must_check;

/* Starts the helper that fills the pool. */
void disk_pool_start(struct disk_pool *disk_pool);

/* Sets how many are kept. */
void disk_pool_keep(struct disk_pool *disk_pool, unsigned count);

/* Wakes the helper: creates will need disks. */
void disk_pool_fill_up(const struct disk_pool *disk_pool);

/* Finds the name of a mounted pool disk; false if there is none. */
bool disk_pool_find(const struct disk_pool *disk_pool, char name[static DISK_IMAGE_NAME_MAX]);

/* Whether the pool is full. */
bool disk_pool_are_enough(const struct disk_pool *disk_pool);

/*
 * Mounts a disk in the pool, under the name that its image has; ERR_CONFLICT if the pool is full.
 */
int disk_pool_put(const struct disk_pool *disk_pool, int mount_fd, const char *name,
	struct err *err) must_check;
