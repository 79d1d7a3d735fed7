/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a sandbox has added, changed and deleted, since it was created or since a snapshot of it.
 *
 * Readers of files (core/template/image/tree_stream.h) tell what the sandbox has written to the overlay
 * beside what it was started from, and to its workspace; of a snapshot they tell the same. Both
 * come in the same order, so one pass over both finds the differences. A snapshot is a copy of the
 * disk, so a file that was not touched since has the same inode number and time of change.
 */
#pragma once

#include "core/engine/sandbox_handle.h"
#include "model/sandbox/snapshot_record.h"

enum change_kind { CHANGE_ADDED, CHANGE_MODIFIED, CHANGE_DELETED };

struct change {
	enum change_kind kind;
	const char *path; /* absolute; any bytes */
	uint64_t size;	  /* of what is there, or was */
};

struct changes_query {
	const struct snapshot_record *since; /* NULL: its creation */
	const char *after;		     /* begins after this path; "": at the first */
	/* Gets one after the other; false: no more is wanted. */
	bool (*each)(const struct change *change, void *arg);
	void *arg;
};

/*
 * Finds the changes of a sandbox, running or not: first those of its system, then those of its
 * workspace. A deleted directory stands for all that was in it. ERR_CONFLICT: the snapshot is of
 * another template.
 */
int changes_find(struct sandbox *sandbox, const struct changes_query *query, struct err *err)
	must_check;
