/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept of the output of a sandbox's processes, all together (core/output/output_budget.h). */
#pragma once

#include "core/engine/sandbox_state.h"
#include "core/output/output_budget.h"
#include "core/output/output_log.h"

/* Opens the log of a process to be appended to, within the bounds of process and sandbox. Counted. */
int sandbox_output_open(struct sandbox *sandbox, uint32_t process, struct output_log **ret_log,
	struct err *err) must_check;

/* Removes what is kept of a process. */
int sandbox_output_remove(struct sandbox *sandbox, uint32_t process, struct err *err) must_check;

/* Writes down what it takes, if that is not what was last written by more than a little: it counts of the quota. */
void sandbox_output_note(struct sandbox *sandbox);

/* The same for a workspace that is only kept, of an older database. */
void sandbox_output_measure(struct engine *engine, const char *id);

/* What is kept of the output of its processes takes so much of the host's disk. */
uint64_t sandbox_output_used(struct sandbox *sandbox);
