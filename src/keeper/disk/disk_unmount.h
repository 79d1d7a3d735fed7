/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unmounts disks that are images. An unmount takes several milliseconds, so no request waits for
 * one.
 *
 * The disk of a sandbox that ended stays mounted for a moment, for a reset, delete or start that
 * may follow, and until a child is free for it. Then it moves from disks/<id> of the mount area to
 * unmounting/<n>, where a child empties its trash and unmounts it. A discarded disk moves at once;
 * with few files on it, it goes back into the disk pool.
 *
 * Each disk has a child of its own, a few at a time, so that a slow one holds up no other. A child
 * may be killed anywhere: another one for the same disk then continues where that one was.
 */
#pragma once

#include "base/err.h"
#include "keeper/disk/disk_pool.h"

#include <stdbool.h>
#include <sys/types.h>

/* A disk that is to be unmounted. */
struct disk_unmount {
	char id[KEEPER_ID_LEN + 1];
	uint64_t due_us; /* not touched before this time */
	unsigned number; /* name of its place in unmounting/, once it was moved; so are these: */
	bool is_discarded;
	unsigned failures; /* how many children ended without unmounting it */
	pid_t pid;	   /* the child that unmounts it; 0: none yet */
	struct disk_unmount *next;
};

struct disk_unmounts {
	const struct storage *storage;
	const struct disk_pool *disk_pool;
	struct helpers *helpers;
	int mounted_fd, unmounting_fd; /* on the mount area */
	struct keeper_stats blank;     /* what is in use on a new disk */
	struct disk_unmount
		*waiting; /* disks of ended sandboxes; both lists have the oldest first */
	struct disk_unmount *unmounting;
	size_t child_count;
	unsigned moved_count; /* since the keeper started */
};

/* mounted_fd is the directory where the disks of sandboxes are mounted. */
int disk_unmount_open(struct disk_unmounts *unmounts, const struct disk_pool *disk_pool,
	int mount_area_fd, int mounted_fd, struct err *err) must_check;

/* Called when the sandbox ended: its disk may be unmounted soon. */
void disk_unmount_park(struct disk_unmounts *unmounts, const char *id);

/* Called when the disk is wanted again: it stays mounted. */
void disk_unmount_cancel(struct disk_unmounts *unmounts, const char *id);

/*
 * Discards the disk of id, whose image is dirfd/image, with all that is on it. On failure the image
 * stays.
 */
int disk_unmount_discard(struct disk_unmounts *unmounts, const char *id, int dirfd,
	const char *image, struct err *err) must_check;

/* Unmounts the disks that are due; returns in how many ms to call again, -1 for never. */
int disk_unmount_tend(struct disk_unmounts *unmounts);

/*
 * Notes that a child was reaped. If it was one of ours its disk is unmounted, or disk_unmount_tend
 * starts another child for it.
 */
bool disk_unmount_reaped(struct disk_unmounts *unmounts, pid_t pid, int status);
