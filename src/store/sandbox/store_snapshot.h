/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots in the database. A row is there before the files, and goes after them: what is
 * unfinished when the daemon starts is removed.
 */
#pragma once

#include "model/sandbox/snapshot_record.h"
#include "store/store.h"

#define STORE_SNAPSHOTS_MAX 1000 /* of an owner */

/*
 * Adds one that is not finished; its bytes, an estimate, count in the owner's quota from now on. ERR_RATE if that is
 * used up, or there are too many.
 */
int store_snapshot_insert(
	struct store *store, const struct snapshot_record *record, struct err *err) must_check;

/* Its files are there, of so many bytes: it is ready. */
int store_snapshot_finish(struct store *store, const char *id, uint64_t bytes, struct err *err)
	must_check;

/* One that is ready; ERR_NOT_FOUND. The caller ends the record. */
int store_snapshot_get(struct store *store, const struct owner *owner, const char *id,
	struct snapshot_record *ret_record, struct err *err) must_check;

/*
 * Calls each for those that are ready, in order of their ids, after an id, until it says false; at most limit. Only
 * those of a sandbox, unless sandbox_id is NULL. The record is borrowed; the callback may use the store.
 */
int store_snapshot_list(struct store *store, const struct owner *owner, const char *sandbox_id,
	const char *after, unsigned limit,
	bool (*each)(const struct snapshot_record *record, void *arg), void *arg, struct err *err)
	must_check;

/* It is about to be removed: nobody sees it any more. ERR_NOT_FOUND. */
int store_snapshot_hide(
	struct store *store, const struct owner *owner, const char *id, struct err *err) must_check;
int store_snapshot_delete(struct store *store, const char *id, struct err *err) must_check;

/*
 * The ids of those that are not finished, after an id: how many, or -errno. All, or (with a sandbox)
 * its checkpoints.
 */
int store_snapshot_unfinished(struct store *store, const char *sandbox_id, const char *after,
	char ids[][ID_LEN + 1], unsigned max, struct err *err) must_check;

/* Whether there is a row of it, finished or not: 1 or 0. */
int store_snapshot_is_known(struct store *store, const char *id, struct err *err) must_check;
