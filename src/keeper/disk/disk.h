/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The disk of a sandbox holds its writable layer, /tmp and workspace together and so limits all
 * that it can write, in bytes and files.
 *
 * Where the file system of the data directory enforces project quotas, a disk is a directory with
 * one (project_quota.h), workspaces/<id>.home; else it is an image (disk_mount.h). It stays what it
 * is as long as the workspace exists. A workspace from before there were disks is a directory
 * without a limit, and stays one.
 */
#pragma once

#include "base/err.h"
#include "keeper/disk/disk_mount.h"
#include "keeper/disk/storage.h"

#include <stdbool.h>
#include <sys/types.h>

enum disk_way { DISK_NONE, DISK_IMAGE, DISK_QUOTA };

struct disks {
	const struct storage *storage;
	enum disk_way way; /* the kind of disk that new sandboxes get */
	struct helpers *helpers;
	struct disk_mount disk_mount;
};

/* The disk of a sandbox, in the child that builds it. */
struct disk {
	/* what storage_prepare takes; -1: the sandbox has directories instead */
	int home_fd;
	int limit_fd; /* sets the limit of an image; -1: the disk has a quota */
};

/* Finds out which kind of disk works here (way; the log says why not), and starts the helpers. */
int disk_start(struct disks *disks, const struct storage *storage, int mount_area_fd,
	struct helpers *helpers, struct err *err) must_check;

/* Sets how many disks without an owner are kept ready, where they take long to make. */
void disk_keep_spares(struct disks *disks, unsigned count);

/* Has the disk pool filled for creates to come. */
void disk_fill_pool(const struct disks *disks);

/* The kind of disk that a sandbox has, or will have: DISK_NONE if it has directories. */
enum disk_way disk_way_of(const struct disks *disks, const char *id);

/*
 * Called before a build: keeps the disk of an old sandbox mounted; takes a disk from the pool for a
 * new sandbox that wants a limit, if the pool has one.
 */
void disk_claim(struct disks *disks, const char *id, bool wants_limit);

/* Whether a sandbox has neither a disk nor directories yet. */
bool disk_is_new(const struct disks *disks, const char *id);

/*
 * For a sandbox that is built ahead: disk_reserve takes a disk from the pool under a name that the
 * caller chooses, by which disk_open_root finds it; then disk_hand_over makes it the disk of id, or
 * disk_unreserve removes it.
 */
int disk_reserve(struct disks *disks, const char *name, struct err *err) must_check;
int disk_hand_over(struct disks *disks, const char *name, const char *id, struct err *err)
	must_check;
void disk_unreserve(struct disks *disks, const char *name);

/*
 * Marks the disk of a sandbox, if it is an image, with the first uid of its range. (The files of
 * other disks can be looked at without a mount.)
 */
void disk_mark_range(const struct disks *disks, const char *id, uint32_t base_uid);

/* Opens the root of the disk of a sandbox, if it is a directory or mounted; else -1. */
int disk_open_root(const struct disks *disks, const char *id);

/*
 * In the child: mounts the disk of a sandbox, unless root_fd is its root; makes a disk if the
 * sandbox has neither a disk nor directories, and limit_bytes is not 0. The limit is not the final
 * one yet: it leaves room for what the keeper itself makes, also on a full disk.
 */
int disk_open(const struct disks *disks, const char *id, int root_fd, uint64_t limit_bytes,
	struct disk *ret_disk, struct err *err) must_check;

/* Sets the final limit, before a program of the sandbox runs. */
int disk_seal(const struct disk *disk, uint64_t limit_bytes, struct err *err) must_check;

/*
 * Changes the limit of a disk that is in use; 0: no limit. If growth_bytes is not 0, an image gets
 * at most that much beyond what is in use: its file must not grow when the host is short of room.
 * What a directory writes the host refuses by itself.
 */
int disk_set_limit(const struct disks *disks, const char *id, uint64_t limit_bytes,
	uint64_t growth_bytes, struct err *err) must_check;

/* Lists sandboxes whose disk failed; returns how many. */
uint32_t disk_list_failed(const struct disks *disks, char ids[][KEEPER_ID_LEN + 1], uint32_t max);

/* Whether a sandbox has a disk, mounted or not. */
bool disk_exists(const struct disks *disks, const char *id);

/*
 * Opens the home of a disk that is a directory or mounted, for storage_clean_home; -1 if it is
 * neither.
 */
int disk_open_mounted(const struct disks *disks, const char *id);

/* Mounts an image that is not mounted, until the descriptor is closed. Slow: for children only. */
int disk_borrow(const struct disks *disks, const char *id, int *ret_home_fd, struct err *err)
	must_check;

/*
 * In a child: opens a directory of a sandbox (STORAGE_SYSTEM, STORAGE_WORKSPACE) where its mount can
 * be cloned. A disk that is not mounted is mounted for that (*ret_is_mounted), until
 * disk_unmount_tree, once the directory was cloned.
 */
int disk_open_tree(const struct disks *disks, const char *id, const char *name,
	bool *ret_is_mounted, int *ret_fd, struct err *err) must_check;
void disk_unmount_tree(const struct disks *disks, const char *id);

/*
 * Counts bytes and files in use on the disk whose home directory is open, and how many files it can
 * hold.
 */
int disk_usage(const struct disks *disks, const char *id, int home_fd, struct keeper_stats *stats,
	struct err *err) must_check;

/*
 * Lends an image that has to be checked, as disk_image_lend; 0 if the disk is no image. For
 * children only.
 */
int disk_lend(const struct disks *disks, const char *id, uid_t uid, int *ret_file_fd,
	struct err *err) must_check;

/* Gives free blocks of a disk back to the host; fd is any directory on it. For children only. */
void disk_give_back(const struct disks *disks, const char *id, int fd);

/*
 * Has a child empty the trash of a directory with a quota. That of an image is emptied when it is
 * unmounted.
 */
void disk_clear_up(const struct disks *disks, const char *id);

/* Discards the disk, with all that is on it. */
int disk_discard(struct disks *disks, const char *id, struct err *err) must_check;

/* Called when the sandbox ended: its disk may be unmounted soon. */
void disk_park(struct disks *disks, const char *id);

/*
 * Unmounts the disks that are due, in children; returns in how many ms to call again, -1 for never.
 */
int disk_retire(struct disks *disks);

/* Notes that a child was reaped; whether it was one of those. */
bool disk_reaped(struct disks *disks, pid_t pid, int status);
