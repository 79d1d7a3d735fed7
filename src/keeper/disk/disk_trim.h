/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The disk trimmer, a long-lived helper that looks after mounted disks. Images are sparse and
 * larger than their limits; the trimmer gives unused blocks back to the host, while the host has room
 * left for what ext4 writes meanwhile. It marks disks that failed because the host had none, and
 * removes such disks from the pool.
 */
#pragma once

#include "keeper/disk/disk_image.h"
#include "keeper/disk/disk_pool.h"
#include "keeper/process/helpers.h"

struct disk_trim {
	const struct storage *storage;
	const struct disk_pool *disk_pool;
	int mounted_fd; /* where disks are mounted, by the ids of their sandboxes */
	int failed_fd;	/* gets a directory for each disk that failed */
	struct helper helper;
};

/* Starts the trimmer; all fields but helper are set. */
void disk_trim_start(struct disk_trim *disk_trim, struct helpers *helpers);
