/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The disk of each sandbox: an image (image.h) that holds its writable layer, /tmp and workspace together
 * and so limits all that it can write, in bytes and files.
 *
 *   workspaces/<id>.img          the image, as long as the workspace lives
 *   spares/<n>                   images that nobody has yet
 *   on the shelf (rootfs.h):     disks/<id>, spares/<n>: where they are mounted; leaving/<n>
 *
 * A mount takes a millisecond and an unmount several, so neither is ever waited for where it shows. A
 * child, the stocker, keeps a few spares mounted; a build takes one by a rename and a move of its mount.
 * The disk of one that ended stays mounted for a moment, for a reset, delete or start that may follow;
 * then a child clears it up and unmounts it, or, if it was thrown away with little on it, makes it a spare.
 *
 * Images are sparse and larger than their limits, so a third child, the trimmer, sees to it that none
 * takes more of the host than it holds.
 *
 * All mounts are in the keeper's namespace and in those of sandboxes, so however the keeper ends they go
 * with it. A workspace from before there were disks is a directory, and stays one.
 */
#pragma once

#include "base/err.h"
#include "keeper/crew.h"
#include "keeper/storage.h"

#include <stdbool.h>
#include <sys/types.h>

#define DISK_PARKED_MAX 32

struct disks {
	const struct storage *storage;
	int mounted_fd, ready_fd, leaving_fd; /* on the shelf: disks, spares, leaving */
	bool can_make;
	struct keeper_stats blank; /* what is in use on a new one */
	struct crew *crew;
	struct crew_member stocker, trimmer;
	struct disk_leaving {
		char id[KEEPER_ID_LEN + 1];
		unsigned number;
		bool is_discarded;
	} leaving[DISK_PARKED_MAX]; /* let go, but nobody unmounts them yet */
	size_t leaving_count;
	unsigned left; /* how many were let go, ever */
	struct disk_parked {
		char id[KEEPER_ID_LEN + 1];
		uint64_t until_us;
	} parked[DISK_PARKED_MAX]; /* disks of ended sandboxes, the oldest first */
	size_t parked_count;
};

/* The disk of a sandbox, in the child that builds it. */
struct disk {
	int home_fd; /* what storage_prepare takes; -1: it has directories instead */
	int knob_fd;
};

/* Sees whether disks can be made here (can_make, and why not in the log), and starts the helpers. */
int disk_start(struct disks *disks, const struct storage *storage, int shelf_fd, struct crew *crew,
	struct err *err) must_check;

/* Says that spares will be wanted. */
void disk_stock(const struct disks *disks);

/*
 * Before a build: keeps the disk of an old sandbox from leaving; takes a spare for a new one that wants a
 * limit, if there is a spare.
 */
void disk_claim(struct disks *disks, const char *id, bool wants_limit);

/* Whether a sandbox has neither a disk nor directories yet. */
bool disk_is_new(const struct disks *disks, const char *id);

/*
 * For a build ahead of its request: takes a spare under a name of the caller's, by which disk_open finds
 * it; then it becomes the disk of id, or goes.
 */
int disk_reserve(struct disks *disks, const char *name, struct err *err) must_check;
int disk_hand_over(struct disks *disks, const char *name, const char *id, struct err *err)
	must_check;
void disk_unreserve(struct disks *disks, const char *name);

/* The root of the disk of a sandbox, if it is mounted; else -1. */
int disk_open_root(const struct disks *disks, const char *id);

/*
 * In the child: mounts the disk of a sandbox, unless root_fd is its root; makes one if it has neither that nor
 * directories, and limit_bytes is not 0. The limit is not yet the final one: there is room for what the
 * keeper itself makes, also on a disk that is full.
 */
int disk_open(const struct disks *disks, const char *id, int root_fd, uint64_t limit_bytes,
	struct disk *ret_disk, struct err *err) must_check;

/* Sets the final limit, before anything of the sandbox runs. */
int disk_seal(const struct disk *disk, uint64_t limit_bytes, struct err *err) must_check;

/* Changes the limit of one that is mounted. */
int disk_set_limit(const struct disks *disks, const char *id, uint64_t limit_bytes, struct err *err)
	must_check;

/* Whether a sandbox has a disk, mounted or not. */
bool disk_exists(const struct disks *disks, const char *id);

/* What storage_clean takes, of one that is mounted; -1 if it is not. */
int disk_open_mounted(const struct disks *disks, const char *id);

/* The same of one that is not; mounted until the descriptor is closed. Slow: for children only. */
int disk_borrow(const struct disks *disks, const char *id, int *ret_home_fd, struct err *err)
	must_check;

/* Gives the host back what is free on a disk, of which fd is any directory. For children. */
void disk_give_back(const struct disks *disks, const char *id, int fd);

/* Throws the disk away, with all that is on it. */
int disk_discard(struct disks *disks, const char *id, struct err *err) must_check;

/* The sandbox ended: its disk may leave soon. */
void disk_park(struct disks *disks, const char *id);

/* Unmounts those whose time has come, in a child; in how many ms to call again, -1 for never. */
int disk_retire(struct disks *disks);
