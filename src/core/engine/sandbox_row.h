/* SPDX-License-Identifier: Apache-2.0 */
/* What is written down of a sandbox: the row first, then the record in memory. life is held by all callers but those
 * of the last. */
#pragma once

#include "core/engine/sandbox_state.h"

/* Makes a changed copy its record. */
int sandbox_row_write(
	struct sandbox *sandbox, const struct sandbox_record *changed, struct err *err) must_check;

/*
 * A new state, and how the old one ended; END_NONE: it has not, and what is known of its last end
 * stays. Subscribers are told.
 */
int sandbox_row_write_status(struct sandbox *sandbox, enum sandbox_status status,
	const struct termination *end, struct err *err) must_check;

/* The same of one that has just been started. */
int sandbox_row_write_running(struct sandbox *sandbox, struct err *err) must_check;

/*
 * The disk of one that runs failed: that is its error message from now on, and subscribers are told. Takes life, unless
 * a verb has it: then it is to be called again.
 */
void sandbox_row_note_failed_disk(struct sandbox *sandbox);
