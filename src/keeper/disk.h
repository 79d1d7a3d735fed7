/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The disk of each sandbox: it holds its writable layer, /tmp and workspace together and so limits all
 * that it can write, in bytes and files.
 *
 * Where the file system of the data directory enforces project quotas, a disk is a directory with one
 * (project_quota.h), workspaces/<id>.home; else it is an image (stock.h). Either stays what it is as long
 * as the workspace lives. A workspace from before there were disks is a directory without a limit, and
 * stays one.
 */
#pragma once

#include "base/err.h"
#include "keeper/stock.h"
#include "keeper/storage.h"

#include <stdbool.h>
#include <sys/types.h>

enum disk_way { DISK_NONE, DISK_IMAGE, DISK_QUOTA };

struct disks {
	const struct storage *storage;
	enum disk_way way; /* what the disks of new sandboxes are */
	struct crew *crew;
	struct stock stock;
};

/* The disk of a sandbox, in the child that builds it. */
struct disk {
	int home_fd; /* what storage_prepare takes; -1: it has directories instead */
	int knob_fd; /* of an image; -1: it has a quota */
};

/* Sees which disks can be made here (way, and why not in the log), and starts the helpers. */
int disk_start(struct disks *disks, const struct storage *storage, int shelf_fd, struct crew *crew,
	struct err *err) must_check;

/* Says that spares will be wanted. */
void disk_stock(const struct disks *disks);

/* What the disk of a sandbox is, or will be: DISK_NONE if it has directories. */
enum disk_way disk_way_of(const struct disks *disks, const char *id);

/*
 * Before a build: keeps the disk of an old sandbox from leaving; takes a spare for a new one that wants a
 * limit, if there is a spare.
 */
void disk_claim(struct disks *disks, const char *id, bool wants_limit);

/* Whether a sandbox has neither a disk nor directories yet. */
bool disk_is_new(const struct disks *disks, const char *id);

/*
 * For a build ahead of its request: takes a spare under a name of the caller's, by which disk_open_root
 * finds it; then it becomes the disk of id, or goes.
 */
int disk_reserve(struct disks *disks, const char *name, struct err *err) must_check;
int disk_hand_over(struct disks *disks, const char *name, const char *id, struct err *err)
	must_check;
void disk_unreserve(struct disks *disks, const char *name);

/* The root of the disk of a sandbox, if it is a directory or mounted; else -1. */
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

/* Changes the limit of one that is in use; 0: it has none. */
int disk_set_limit(const struct disks *disks, const char *id, uint64_t limit_bytes, struct err *err)
	must_check;

/* Whether a sandbox has a disk, mounted or not. */
bool disk_exists(const struct disks *disks, const char *id);

/* What storage_clean_home takes, of one that is a directory or mounted; -1 if it is neither. */
int disk_open_mounted(const struct disks *disks, const char *id);

/* The same of an image that is not; mounted until the descriptor is closed. Slow: for children only. */
int disk_borrow(const struct disks *disks, const char *id, int *ret_home_fd, struct err *err)
	must_check;

/* Bytes and files in use on the disk whose home directory is open, and how many files there can be. */
int disk_usage(const struct disks *disks, const char *id, int home_fd, struct keeper_stats *stats,
	struct err *err) must_check;

/* Gives the host back what is free on a disk, of which fd is any directory. For children. */
void disk_give_back(const struct disks *disks, const char *id, int fd);

/* Has removed what was thrown away in a directory with a quota, by a child. On an image that comes when it leaves. */
void disk_clear_up(const struct disks *disks, const char *id);

/* Throws the disk away, with all that is on it. */
int disk_discard(struct disks *disks, const char *id, struct err *err) must_check;

/* The sandbox ended: its disk may leave soon. */
void disk_park(struct disks *disks, const char *id);

/* Unmounts those whose time has come, in children; in how many ms to call again, -1 for never. */
int disk_retire(struct disks *disks);

/* A child was reaped; whether it was one of those. */
bool disk_reaped(struct disks *disks, pid_t pid, int status);
