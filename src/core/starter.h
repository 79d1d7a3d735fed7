/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Start commands: what a sandbox runs by itself whenever it starts, and goes on running. Each is a kept
 * process like any other, and has a starter that runs it again when it fails (model/restart.h).
 *
 * A sandbox has its starters from its start to its end; a daemon that takes it up makes them anew from
 * the rows of its processes. They do not count as use: a sandbox that nobody needs stops with them.
 */
#pragma once

#include "core/sandbox.h"
#include "model/process_record.h"

struct process_end;
struct starter;

enum starter_status {
	STARTER_STOPPED, /* the sandbox does not run */
	STARTER_RUNNING,
	STARTER_WAITING, /* it failed, and is run again at next_try_at_ms */
	STARTER_EXITED,	 /* it ended with status 0, and is left alone */
	STARTER_KILLED,	 /* somebody ended it: it is left alone until the sandbox starts again */
};

struct starter_state {
	enum starter_status status;
	uint32_t process;    /* the number of the present or last one; 0: none yet */
	int64_t tried_at_ms; /* when that was started */
	uint32_t restarts;   /* since the sandbox was started */
	struct err error;    /* why the last try could not be run; its kind is ERR_NONE if it ran */
	int64_t ended_at_ms; /* of the last that ended; 0: none has */
	int exit_code;	     /* likewise */
	struct termination end; /* likewise */
	int64_t next_try_at_ms; /* 0: none is planned */
};

const char *starter_status_name(enum starter_status status);

/* The message of its error, or NULL. */
const char *starter_error(const struct starter_state *state);

/* How the start command of that name fares. */
void starter_read(struct sandbox *sandbox, const char *name, struct starter_state *ret_state);

/* Somebody wants the end of this process: if it is that of a start command, it is not run again until the sandbox
 * starts again, whatever ends it, and by whichever daemon. */
void starter_cease(struct sandbox *sandbox, uint32_t process);

/* For the files of src/core: */

/* Makes what runs equal to the record: what is new is started, what is not there any more is ended. For a
 * sandbox that has just started, or was changed. life is held. */
void starter_apply(struct sandbox *sandbox);

/* Takes up the start commands of a sandbox that a daemon before us had started, after its processes and
 * before its agent is greeted. life is held. */
int starter_recall(struct sandbox *sandbox, struct err *err) must_check;

/* Goes on with those that could not be run, once the agent has answered or the sandbox is resumed. */
void starter_resume(struct sandbox *sandbox);

/* The sandbox ends, or the daemon leaves: nothing is run again. */
void starter_leave(struct sandbox *sandbox);

/* Whether the row of this process tells the next daemon how a start command of the sandbox fares. */
bool starter_needs_row(struct sandbox *sandbox, uint32_t process);

/* Its process runs. */
void starter_note_started(struct starter *starter, uint32_t process);

/* Its process has ended. */
void starter_note_end(struct starter *starter, const struct process_end *end);

void starter_unref(struct starter *starter);
