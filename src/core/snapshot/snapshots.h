/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots: copies of all files of a sandbox, kept under an id of their own. Processes are not copied.
 * A snapshot outlives its sandbox; its owner makes new sandboxes of it, or gives a sandbox its files back.
 *
 * The row is written first and goes last. One that is not ready when the daemon starts was cut short:
 * its files go, then its row. Files without any row stay, since the database may be an older one.
 */
#pragma once

#include "core/engine/sandbox_handle.h"
#include "model/sandbox/snapshot_record.h"

#define SNAPSHOTS_FORK_MAX 16

/* Makes one of a sandbox, whose writers wait meanwhile. name may be empty. The caller ends the record. */
int snapshots_take(struct sandbox *sandbox, const char *name, bool is_checkpoint,
	struct snapshot_record *ret_record, struct err *err) must_check;

/* Removes one of an owner's. */
int snapshots_remove(struct engine *engine, const struct owner *owner, const char *id,
	struct err *err) must_check;

/*
 * Whether a snapshot is of the template that a sandbox has: the writable layer of one means nothing
 * on top of another. ERR_CONFLICT.
 */
int snapshots_check_fit(struct sandbox *sandbox, const struct snapshot_record *snapshot,
	struct err *err) must_check;

/* The stack of layers in what a record says of an image; "": none. */
const char *snapshots_stack(const json_t *image);

/*
 * Gives a sandbox the files of one of its owner's snapshots; ERR_CONFLICT if that is of another
 * template, whose files would not fit.
 */
int snapshots_restore(struct sandbox *sandbox, const struct owner *owner, const char *id,
	struct err *err) must_check;

/* What came of a fork: each copy is there, or an error that says why not. */
struct snapshots_fork {
	struct sandbox *made[SNAPSHOTS_FORK_MAX]; /* references, in order */
	size_t made_count;
	struct err failures[SNAPSHOTS_FORK_MAX];
	size_t failure_count;
};

/*
 * Makes count new sandboxes with the files and settings of one, and starts them. Fails if the files could
 * not be copied at all, or no sandbox was made; else the caller drops the references.
 */
int snapshots_fork(struct sandbox *sandbox, unsigned count, struct snapshots_fork *ret_fork,
	struct err *err) must_check;
