/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes what a file request wrote to the host before it is acknowledged.
 *
 * The disk of a sandbox may be a sparse image: then the kernel takes what is written into memory,
 * and whether the host has room for it shows when it is written there. Where the disk is a
 * directory of the host, a write fails at once if there is no room, and these functions do nothing.
 *
 * The root is a volatile overlay, on which fsync() does nothing; its files are on the same disk as
 * /workspace, which is synced as a whole for them.
 */
#pragma once

struct disk_sync {
	int fd; /* a directory on the disk, open since before the first write; -1: nothing has to be done */
};

void disk_sync_begin(struct disk_sync *sync);
void disk_sync_end(struct disk_sync *sync);

/*
 * Writes out the content of a file that has no name yet: 0, or -errno. The file that it will
 * replace is still whole then.
 */
int disk_sync_content(const struct disk_sync *sync, int file);

/* Writes out a file and its name. */
int disk_sync_file(const struct disk_sync *sync, int file);

/* Writes out everything. */
int disk_sync_all(const struct disk_sync *sync);

/*
 * The errno to answer with. Ext4 says EROFS of an image that failed, as of what is mounted read-only; but of that a
 * stop and a start are the cure, so it becomes EIO, which the failure itself is reported as.
 */
int disk_sync_describe(int errnum);
