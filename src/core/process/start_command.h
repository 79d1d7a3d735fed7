/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Start commands: what a sandbox runs by itself whenever it starts, and goes on running. Each is a kept
 * process like any other, and has a start command that runs it again when it fails (model/restart.h).
 *
 * A sandbox has its start commands from its start to its end; a daemon that takes it up makes them anew from
 * the rows of its processes. They do not count as use: a sandbox that nobody needs stops with them.
 */
#pragma once

#include "core/engine/sandbox_handle.h"
#include "model/process_record.h"

struct process_end;
struct start_command;

enum start_command_status {
	START_COMMAND_STOPPED, /* the sandbox does not run */
	START_COMMAND_RUNNING,
	START_COMMAND_WAITING, /* it failed, and is run again at next_try_at_ms */
	START_COMMAND_EXITED,  /* it ended with status 0, and is left alone */
	START_COMMAND_KILLED, /* a client ended it: it is left alone until the sandbox starts again */
};

struct start_command_state {
	enum start_command_status status;
	uint32_t process;    /* the number of the present or last one; 0: none yet */
	int64_t tried_at_ms; /* when that was started */
	uint32_t restarts;   /* since the sandbox was started */
	struct err error;    /* why the last try could not be run; its kind is ERR_NONE if it ran */
	int64_t ended_at_ms; /* of the last that ended; 0: none has */
	int exit_code;	     /* likewise */
	struct termination end; /* likewise */
	int64_t next_try_at_ms; /* 0: none is planned */
};

const char *start_command_status_name(enum start_command_status status);

/* The message of its error, or NULL. */
const char *start_command_error(const struct start_command_state *state);

/* Reads the state of the start command of that name. */
void start_command_read(
	struct sandbox *sandbox, const char *name, struct start_command_state *ret_state);

/*
 * A client wants the end of this process. If it is that of a start command, no daemon restarts it
 * until the sandbox starts again.
 */
void start_command_cease(struct sandbox *sandbox, uint32_t process);

/* For the files of src/core: */

/* Makes what runs equal to the record: what is new is started, what is not there any more is ended. For a
 * sandbox that has just started, or was changed. life is held. */
void start_command_apply(struct sandbox *sandbox);

/* Takes up the start commands of a sandbox that a daemon before us had started, after its processes and
 * before its agent is greeted. life is held. */
int start_command_adopt(struct sandbox *sandbox, struct err *err) must_check;

/* Goes on with those that could not be run, once the agent has answered or the sandbox is resumed. */
void start_command_resume(struct sandbox *sandbox);

/* The sandbox ends, or the daemon leaves: nothing is run again. */
void start_command_leave(struct sandbox *sandbox);

/* Whether the row of this process tells the next daemon how a start command of the sandbox fares. */
bool start_command_needs_row(struct sandbox *sandbox, uint32_t process);

/* Its process runs. */
void start_command_note_started(struct start_command *command, uint32_t process);

/* Its process has ended. */
void start_command_note_end(struct start_command *command, const struct process_end *end);

void start_command_unref(struct start_command *command);
