/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directories of sandboxes on disk, all below the data directory and all reached by descriptor:
 *
 *   sandboxes/<shard>/<id>/{upper,work}                          the writable system layer
 *   sandboxes/<shard>/<id>/members/<n>/{upper,work}              those of its members
 *   sandboxes/<shard>/<id>/volumes/<n>                           what is durable; 0: its own
 *   workspaces/<id>/{project_files,agent_workspace,outputs}      what outlives it
 *   workspaces/<id>.img                                          both in one, with a limit: disk.h
 *   snapshots/                                                   copies of disks: snapshot_store.h
 *   spares/                                                      the disk pool: disk_pool.h
 *   templates/host                                               what sandboxes start from
 *   layers/                                                      the same, of images: layer_store.h
 *   trash/                                                       what is to be removed: trash.h
 *   shredder/                                                    what is being removed
 *
 * They belong to root with mode 0700, so only the keeper enters them.
 *
 * A shard is one of 256, by a hash of the id. ext4 spreads the shards over the disk, because `sandboxes`
 * is marked as a directory of unrelated things; so making a dozen inodes for a sandbox does not have
 * to step over all those that were just freed for others (measured: 12 us each instead of 45 to 500).
 *
 * A sandbox with a disk of its own has upper, work, members, volumes and workspace in the disk's home directory, and there
 * trash and shredder too: a rename does not lead from one file system into another.
 */
#pragma once

#include "base/err.h"
#include "keeper/disk/trash.h"
#include "wire/keeper.h"

#define STORAGE_SHARDS 256

struct storage {
	int data_fd; /* the data directory, for what the daemon has in it */
	int sandboxes_fd;
	int workspaces_fd;
	int snapshots_fd;
	int pool_fd;
	int templates_fd;
	int layers_fd;
	struct trash trash;
};

/* The directories of one sandbox, opened. */
struct storage_dirs {
	int upper_fd;
	int work_fd;
	int workspace_fd;
	int volumes_fd; /* -1: it has none */
};

int storage_open(struct storage *storage, const char *data_dir, struct err *err) must_check;

/* Opens a shard, by its number (-1 with errno) or as that of an id. */
int storage_open_shard(const struct storage *storage, unsigned shard);
int storage_open_shard_of(const struct storage *storage, const char *id, struct err *err)
	must_check;

/* Makes the directories of a sandbox in the home directory of a disk that has no owner yet. */
int storage_init_home(int home_fd, struct err *err) must_check;

/* Does the same in a home that had an owner, and removes all of that owner's files. */
int storage_reset_home(int home_fd, struct err *err) must_check;

/*
 * Reserves a few inodes of a disk, if it has no reserve: without one a sandbox that has used up all
 * inodes could not be started again. storage_prepare may take them, so this comes after the
 * overlay.
 */
void storage_reserve(int home_fd);

/*
 * Opens the directories of a sandbox and makes those that are missing, owned by its uid range.
 * home_fd is the home of its disk, or -1.
 */
int storage_prepare(const struct storage *storage, const char *id, int home_fd, uint32_t base_uid,
	bool has_volumes, struct storage_dirs *ret_dirs, struct err *err) must_check;

/* The same for a member of sandbox `id`, which has a workspace; the number is from 1 on. */
int storage_prepare_member(const struct storage *storage, const char *id, int home_fd,
	uint32_t number, uint32_t base_uid, struct storage_dirs *ret_dirs, struct err *err)
	must_check;

/* The names of a sandbox's directories that can be read as a whole. */
#define STORAGE_SYSTEM	  "upper"
#define STORAGE_WORKSPACE "workspace"

/* Opens one of them, by these names, in the home of a disk or (home_fd is -1) where there is none. */
int storage_open_tree(const struct storage *storage, const char *id, int home_fd, const char *name,
	int *ret_fd, struct err *err) must_check;

/* Empties or removes parts (KEEPER_PART_*) of a sandbox that does not run and has no disk. */
int storage_clean(const struct storage *storage, const char *id, uint32_t base_uid, uint32_t parts,
	struct err *err) must_check;

/*
 * Does the same in the home directory of a disk, but not for the workspace as a whole: that is the
 * disk itself. Makes nothing: the disk may be full.
 */
int storage_clean_home(int home_fd, uint32_t parts, struct err *err) must_check;

/* Empties the trash of a disk, whose home directory is open. */
void storage_empty_trash(int home_fd);
