/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles of sandboxes: how they are found, read and used. A handle is counted; it stays valid after
 * the sandbox was deleted. What can be done with a sandbox is in core/sandbox/sandbox.h.
 */
#pragma once

#include "core/engine/engine_config.h"
#include "wire/wall.h"

struct agent_link;
struct sandbox;

/* The sandbox of an id; of an owner also by its name. */
int sandbox_get(struct engine *engine, const struct owner *owner, const char *id,
	struct sandbox **ret_sandbox, struct err *err) must_check;
struct sandbox *sandbox_ref(struct sandbox *sandbox);
void sandbox_unref(struct sandbox *sandbox);

static inline void sandbox_unrefp(struct sandbox **sandbox)
{
	sandbox_unref(*sandbox);
}

/* A copy of its present record, which the caller ends with sandbox_record_fini. */
void sandbox_read(struct sandbox *sandbox, struct sandbox_record *ret_record);

/* The walls that it has; false while it does not run. */
bool sandbox_read_walls(struct sandbox *sandbox, struct walls *ret_walls);

/*
 * Something wants to work in it: wakes it if it is stopped, notes the use, and gives a reference to
 * the link to its agent.
 */
int sandbox_use(struct sandbox *sandbox, struct agent_link **ret_link, struct err *err) must_check;

/*
 * A client is connected to something in the sandbox, which is not idle until it leaves. In pairs.
 */
void sandbox_enter(struct sandbox *sandbox);
void sandbox_leave(struct sandbox *sandbox);

const char *sandbox_id(const struct sandbox *sandbox);
struct engine *sandbox_engine(const struct sandbox *sandbox);

/* Notes a use of a sandbox in memory, for callers without a handle. Does not block. */
void engine_note_use(struct engine *engine, const char *id);

/* --- for the files of src/core: how handles come and go together with their rows --- */

/* A reference to the handle of one that is in memory, as all that run are; else NULL. */
struct sandbox *sandbox_handle_find(struct engine *engine, const char *id);

/*
 * Adds a row and its handle together, with its life lock held: a thread that finds it waits until
 * it has started. Takes over the record.
 */
int sandbox_handle_new(struct engine *engine, struct sandbox_record *record,
	int (*add_row)(struct store *store, struct sandbox_record *record, struct err *err),
	struct sandbox **ret_sandbox, struct err *err) must_check;

/* Gives back what a passing one uses of quotas beside its row (sandbox_lend); false: nothing. */
bool sandbox_handle_give_back_claim(struct sandbox *sandbox);

/* Removes the row and the handle together: a new one of the same id must not find the old handle. */
int sandbox_handle_forget(struct sandbox *sandbox,
	int (*remove_row)(struct store *store, const char *id, struct err *err), struct err *err)
	must_check;

/* Takes a deleted one out of the tree, so that its id can be used again. */
void sandbox_handle_detach(struct sandbox *sandbox);

/* The handle of a record that is in the database; takes over the record. */
struct sandbox *sandbox_attach(struct engine *engine, struct sandbox_record *record);

/* Calls a function for each sandbox in memory. */
void engine_visit(
	struct engine *engine, void (*visit)(struct sandbox *sandbox, void *arg), void *arg);

/* References to all sandboxes in memory, as all that run are. The caller drops them and frees the array. */
struct sandbox **engine_list(struct engine *engine, size_t *ret_count);

/* Opens the directory with the output of its processes; -ENOENT if there is none. */
int sandbox_open_logs(struct sandbox *sandbox, int *ret_fd, struct err *err) must_check;

/* The same for a writer: it is made if need be, but not once its removal has begun. */
int sandbox_make_logs(struct sandbox *sandbox, int *ret_fd, struct err *err) must_check;

/* Removes the kept output of all its processes, for good. */
void sandbox_remove_logs(struct sandbox *sandbox);

/* Removes the kept output of an id that no handle of a sandbox has. */
void engine_remove_logs(struct engine *engine, const char *sandbox_id);
