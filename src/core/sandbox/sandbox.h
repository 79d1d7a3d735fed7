/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sandbox and what can be done with it. Each verb blocks until it has happened and is written down.
 * A handle is counted; it stays valid after the sandbox was deleted, when every verb says not found.
 */
#pragma once

#include "core/engine/engine.h"
#include "core/engine/sandbox_handle.h"

/* Makes a new sandbox from a draft (id may be empty) and starts it. The draft is not changed. */
int sandbox_create(struct engine *engine, const struct sandbox_record *draft,
	struct sandbox **ret_sandbox, struct err *err) must_check;

/*
 * The sandbox of the draft's id, or of its owner and project or name: healthy as it is, woken if it
 * is stopped, made anew if it is not there or could not be started (then *ret_created).
 */
int sandbox_ensure(struct engine *engine, const struct sandbox_record *draft,
	struct sandbox **ret_sandbox, bool *ret_created, struct err *err) must_check;

/* Why it is not stopped as idle, for people; false while it does not run. */
#define SANDBOX_AWAKE_MAX 96
bool sandbox_explain_awake(struct sandbox *sandbox, char text[SANDBOX_AWAKE_MAX]);

/* Whether it runs, and has become ready as its template says (core/process/ready_check.h). */
bool sandbox_is_ready(struct sandbox *sandbox);

int sandbox_start(struct sandbox *sandbox, struct err *err) must_check;
int sandbox_stop(struct sandbox *sandbox, enum end_reason reason, struct err *err) must_check;
/* The same with a detail for people. */
int sandbox_stop_because(struct sandbox *sandbox, enum end_reason reason, const char *detail,
	struct err *err) must_check;
int sandbox_pause(struct sandbox *sandbox, struct err *err) must_check;
int sandbox_resume(struct sandbox *sandbox, struct err *err) must_check;

/* Empties agent_workspace, outputs and the writable system layer; it then runs, if it ran before. */
int sandbox_reset(struct sandbox *sandbox, struct err *err) must_check;

/* Gives it the files of a snapshot in the place of its own; it then runs, if it ran before. */
int sandbox_restore(struct sandbox *sandbox, const char *snapshot, struct err *err) must_check;

/*
 * Gives a passing one (sandbox_request.h) that is nobody's to an owner, whose quotas must have room for it: ERR_RATE if
 * not. Its row stays nobody's, for the next daemon only removes it. life is held.
 */
int sandbox_lend(struct sandbox *sandbox, const struct owner *owner, struct err *err) must_check;

/* Gives a passing one back, so that no quota of its owner counts it any more: it is about to be removed. For one that was
 * lent this waits for nothing. */
int sandbox_disown(struct sandbox *sandbox, struct err *err) must_check;

/* Ends it and forgets it; the workspace stays for a later one of the same id. */
int sandbox_delete(struct sandbox *sandbox, enum end_reason reason, struct err *err) must_check;

/* The same, and the workspace too. By id, because the sandbox may have been deleted before, or by the name of
 * one that was not. */
int sandbox_purge(struct engine *engine, const struct owner *owner, const char *ref,
	struct err *err) must_check;

/* The same for a workspace that no sandbox has; -EEXIST if one has it. */
int sandbox_purge_left(struct engine *engine, const char *id, struct err *err) must_check;

/* Applies a change to the record and writes it. */
int sandbox_change(struct sandbox *sandbox, void (*apply)(struct sandbox_record *record, void *arg),
	void *arg, struct err *err) must_check;

/* For engine_verbs: sandbox_use(). */
int sandbox_wake_and_use(struct sandbox *sandbox, struct agent_link **ret_link, struct err *err)
	must_check;

/* Whether the sandbox is in use now, so that it is not idle. */
bool sandbox_is_occupied(struct sandbox *sandbox);

/* A create that failed and is not undone yet (is_undo_due): tries once more, or gives up. */
void sandbox_undo_again(struct sandbox *sandbox);
void sandbox_cancel_undo(struct sandbox *sandbox);
