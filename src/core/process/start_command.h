/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Start commands: what a sandbox runs by itself whenever it starts, and goes on running. Each is a kept
 * process like any other, and has a start command that runs it again when it fails (model/sandbox/restart.h).
 *
 * A sandbox has its start commands from its start to its end; a daemon that takes it up makes them anew from
 * the rows of its processes. They do not count as use: a sandbox that nobody needs stops with them.
 */
#pragma once

#include "core/engine/sandbox_handle.h"
#include "core/process/start_command_state.h"

struct start_command;

const char *start_command_status_name(enum start_command_status status);

/* The message of its error, or NULL. */
const char *start_command_error(const struct start_command_state *state);

/* Reads the state of the start command of that name. */
void start_command_read(
	struct sandbox *sandbox, const char *name, struct start_command_state *ret_state);

/* How those of a sandbox fare together. */
struct start_command_sum {
	unsigned running;
	unsigned failing; /* have failed or were killed, and do not run now */
	unsigned restarts;
};

/* Adds those of a sandbox. */
void start_command_add_up(struct sandbox *sandbox, struct start_command_sum *sum);

/*
 * A client wants the end of this process. If it is that of a start command, no daemon restarts it
 * until the sandbox starts again.
 */
void start_command_cease(struct sandbox *sandbox, uint32_t process);

/* For the files of src/core: */

/* Makes what runs equal to the record: what is new is started, what is not there any more is ended. For a
 * sandbox that has just started, or was changed. life is held. */
void start_command_apply(struct sandbox *sandbox);

/* The same, and what runs already is ended and run anew, with the environment that the sandbox has now. life is held. */
void start_command_restart(struct sandbox *sandbox);

/* Takes up the start commands of a sandbox that a daemon before us had started, after its processes and
 * before its agent is greeted. life is held. */
int start_command_adopt(struct sandbox *sandbox, struct err *err) must_check;

/* Goes on with those that could not be run, once the agent has answered or the sandbox is resumed. */
void start_command_resume(struct sandbox *sandbox);

/* The sandbox ends, or the daemon leaves: nothing is run again. */
void start_command_leave(struct sandbox *sandbox);

/* Whether the row of this process tells the next daemon how a start command of the sandbox fares. */
bool start_command_needs_row(struct sandbox *sandbox, uint32_t process);

void start_command_unref(struct start_command *command);
