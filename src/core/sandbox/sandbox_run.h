/* SPDX-License-Identifier: Apache-2.0 */
/* One run of a sandbox, from the driver's start to its stop. life is held by all callers. */
#pragma once

#include "core/engine/sandbox_state.h"

/* Starts it, with its disk checked if need be, and waits for its agent; if that fails, nothing of it runs. Writes
 * nothing down. */
int sandbox_run_begin(struct sandbox *sandbox, struct err *err) must_check;

/* Ends it, with all that runs in it; gently: its processes get a moment. Likewise. */
int sandbox_run_end(struct sandbox *sandbox, bool gently, const struct termination *how,
	struct err *err) must_check;

/* Empties parts of it (DRIVER_PART_*) while it does not run. */
int sandbox_run_clean(struct sandbox *sandbox, unsigned parts, struct err *err) must_check;

/* Keeps a copy of its files (driver.h), while it runs or not. */
int sandbox_run_take_snapshot(struct sandbox *sandbox, const char *snapshot, enum driver_copy copy,
	uint64_t *ret_bytes, struct err *err) must_check;

/* What it has used by now; nothing if it does not run. */
void sandbox_run_read_usage(struct sandbox *sandbox, struct termination *how);

/* If its agent vanished: ends what is left of it and writes down how it ended. */
void sandbox_run_settle(struct sandbox *sandbox);

/* The same, and takes life. */
void sandbox_settle(struct sandbox *sandbox);
