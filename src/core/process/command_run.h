/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command that is run to its end, with its output gathered: what a caller gets who waits for one
 * answer. No thread waits: the end is told by a callback.
 *
 * To run one: command_make (command.h), command_run_new, command_run_start, command_fini. The caller
 * who leaves before the end says so with command_run_leave.
 */
#pragma once

#include "core/process/command.h"

struct command_run;

/* Where output is gathered, and how much of each stream. */
struct command_run_limits {
	int spool_fd; /* a directory for what is too large for memory; borrowed */
	size_t output_max;
	uint64_t disk_reserve;
};

/* What one stream said; NULL if it could not be read back. */
struct command_run_output {
	const uint8_t *data;
	size_t len;
	bool is_cut; /* more came than was kept; no character is cut in two */
};

struct command_run_end {
	const struct process_end *end;
	/* Why it never ran, if that is the fault of whoever asked (process_explain_end); NULL: it ran,
	 * and the output is that of stdout and stderr. */
	const struct err *failure;
	struct command_run_output output[2];
};

struct command_run_events {
	/* Its end, once; not after command_run_leave has given the caller back its answer. Borrowed. May
	 * not block. */
	void (*ended)(void *arg, const struct command_run_end *end);
	/* Nothing more will be told: the run's reference of arg is over. */
	void (*release)(void *arg);
};

/* Makes one that does not run yet; the sandbox is woken if need be. The run has a reference of arg if this
 * succeeds. */
int command_run_new(struct sandbox *sandbox, const struct command *command,
	const struct command_run_limits *limits, const struct command_run_events *events, void *arg,
	struct command_run **ret_run, struct err *err) must_check;

/* Runs it. Its end may be told before this returns; after a failure of this it is not told. */
int command_run_start(struct command_run *run, const struct command *command, struct err *err)
	must_check;

/* The caller does not wait any more. A command that ends with its caller is killed, and its end is told;
 * true. Any other goes on, and its end may still be told if it comes at this moment; false. */
bool command_run_leave(struct command_run *run);

void command_run_unref(struct command_run *run);
