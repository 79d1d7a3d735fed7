/* SPDX-License-Identifier: Apache-2.0 */
/* Handles of sandboxes, by id: how they are found, and how they come and go together with their rows. */
#pragma once

#include "core/sandbox/sandbox_state.h"

/* A reference to the handle of one that is in memory, as all that run are; else NULL. */
struct sandbox *sandbox_handle_find(struct engine *engine, const char *id);

/*
 * Adds a row and its handle together, with its life lock held: a thread that finds it waits until
 * it has started. Takes over the record.
 */
int sandbox_handle_new(struct engine *engine, struct sandbox_record *record,
	int (*add_row)(struct store *store, struct sandbox_record *record, struct err *err),
	struct sandbox **ret_sandbox, struct err *err) must_check;

/* Removes the row and the handle together: a new one of the same id must not find the old handle. */
int sandbox_handle_forget(struct sandbox *sandbox,
	int (*remove_row)(struct store *store, const char *id, struct err *err), struct err *err)
	must_check;

/* Takes a deleted one out of the tree, so that its id can be used again. */
void sandbox_handle_detach(struct sandbox *sandbox);
