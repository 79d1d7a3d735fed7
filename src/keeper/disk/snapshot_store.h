/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots: copies of the images of sandboxes (disk_image.h), in a directory of their own.
 *
 *   snapshots/<snapshot>.img   a snapshot
 *   snapshots/<id>.new         a copy of one that is to become the disk of sandbox id
 *
 * A copy has no name until it is whole, so a crash leaves no half of one. What replaces a disk is on the host's disk before it
 * has its name. A snapshot that went through the host's cache (image_copy.h) is so a moment later: a helper, the snapshot writer,
 * sees to that, and what a failure of power has torn meanwhile is removed (late_copy.h). One that went past it is waited for.
 * What a new sandbox starts with is not, as none of what it writes is: the first commit of its journal brings all of it to the
 * disk. A fork does not even wait when its disk is mounted (next_disk.h).
 *
 * While a mounted image is copied, its file system is frozen: writers of the sandbox wait, and ext4
 * has emptied its journal, so that the copy is clean. The kernel keeps a frozen file system for ever,
 * even without a mount: so the child that copies thaws it also when the keeper dies, and the keeper
 * when the child does; if both do, the next keeper (disk_thaw.h).
 */
#pragma once

#include "keeper/disk/disk.h"

/* What a snapshot is taken for. */
enum snapshot_use {
	SNAPSHOT_KEPT,
	SNAPSHOT_TEMPORARY, /* it may never come to the host's disk */
	SNAPSHOT_NEXT, /* likewise, and a new sandbox takes it next: it is mounted already (next_disk.h) */
};

struct snapshot_child {
	pid_t pid;   /* 0: none */
	int home_fd; /* on the disk that it may have frozen; -1: it freezes none */
};

struct snapshot_store {
	struct disks *disks;
	struct snapshot_child children[HELPERS_ASKED_MAX];
	struct helper writer; /* where disks have limits: there may be images */
};

/*
 * Also removes copies that an earlier keeper did not put in their place or that are not whole, thaws what it left frozen, and
 * starts the snapshot writer.
 */
void snapshot_store_open(struct snapshot_store *store, struct disks *disks);

/*
 * In a child: copies the disk of a sandbox, running or not. *ret_bytes: what the snapshot takes of the
 * host's disk, as far as it is shared with nothing. What is there after a failure goes with
 * snapshot_store_drop.
 */
int snapshot_store_take(const struct snapshot_store *store, const char *id, const char *snapshot,
	enum snapshot_use use, uint64_t *ret_bytes, struct err *err) must_check;

/* In the keeper: a child takes a snapshot of a disk, whose home is open or -1; takes over home_fd. */
void snapshot_store_watch(struct snapshot_store *store, pid_t pid, int home_fd);

/*
 * Notes that a child was reaped. If it was one of ours, wakes the snapshot writer, and thaws the disk if that may not have been
 * done.
 */
void snapshot_store_reaped(struct snapshot_store *store, pid_t pid, int status);

/*
 * In a child: copies a snapshot for a sandbox, whose uid range begins at base_uid. With `takes` the
 * snapshot itself becomes that copy, and is one no more.
 */
int snapshot_store_copy(const struct snapshot_store *store, const char *snapshot, bool takes,
	const char *id, uint32_t base_uid, struct err *err) must_check;

/*
 * Makes that copy the disk of the sandbox, which does not run, in the place of the one that it has.
 * That one is lost.
 */
int snapshot_store_place(const struct snapshot_store *store, const char *snapshot, const char *id,
	struct err *err) must_check;

/* Lists snapshots in order, after `after`; returns how many. */
uint32_t snapshot_store_list(const struct snapshot_store *store, const char *after,
	char ids[][KEEPER_ID_LEN + 1], uint32_t max);

/*
 * In a child: opens a directory of a snapshot (STORAGE_SYSTEM, STORAGE_WORKSPACE), read-only, where
 * its mount can be cloned, as if its files belonged to the range of base_uid; until
 * snapshot_store_close_tree.
 */
int snapshot_store_open_tree(const struct disks *disks, const char *snapshot, const char *name,
	uint32_t base_uid, int *ret_fd, struct err *err) must_check;
void snapshot_store_close_tree(const struct disks *disks);

/* Removes a snapshot; one that does not exist is fine. */
int snapshot_store_drop(const struct snapshot_store *store, const char *snapshot, struct err *err)
	must_check;
