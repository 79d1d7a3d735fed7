/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The struct of a start command, for start_command*.c only. start_command.c keeps the list of a
 * sandbox, start_command_run.c runs a command and restarts it, start_command_adopt.c adopts those
 * of an earlier daemon.
 */
#pragma once

#include "core/process/process.h"
#include "core/process/process_state.h"
#include "core/process/start_command_state.h"
#include "model/sandbox/restart.h"

#define START_COMMAND_TRIES_KEPT                                                                   \
	4 /* processes that are remembered of one that fails again and again */

struct start_command {
	atomic_int refs;
	struct sandbox *sandbox;
	json_t *spec; /* an entry of the record's start; only read */
	const char *name;

	/* What follows is under sandbox.state. */
	struct start_command *next;
	bool is_over; /* off the list: it starts nothing any more */
	struct start_command_state state;
	uint32_t
		ceased; /* the present process, if a client asked for its end: it is not restarted */
	bool was_tried;	   /* since the sandbox was started: the next try is a restart */
	uint32_t failures; /* since it was last well */
	struct timer *timer;
	uint32_t tries[START_COMMAND_TRIES_KEPT]; /* the numbers of its last processes */
};

struct start_command *start_command_ref(struct start_command *command);

/* Makes a start command that is due, in no list yet. */
struct start_command *start_command_new(struct sandbox *sandbox, const json_t *spec);

/* Puts it into the list of its sandbox, which takes over the reference. */
void start_command_add(struct sandbox *sandbox, struct start_command *command);

/* Publishes the state of the command to subscribers. */
void start_command_announce(struct start_command *command);

/* Runs the command if it is due and its sandbox can run it now. Not on the event loop's thread. */
void start_command_launch(struct start_command *command);

/* Decides what follows from the end of its process. The lock is held. */
enum restart_decision start_command_judge(
	const struct start_command *command, enum end_reason reason, int exit_code);

/* Starts the timer for the next try, unless it runs. The lock is held. */
void start_command_set_timer(struct start_command *command);

/* Makes this the process of the command, which is told how it fares. */
void start_command_tie(struct start_command *command, struct process *process);

/* The process that it has now; a reference, or NULL. */
struct process *start_command_find_process(struct start_command *command);

/*
 * Ends a process whose start command the sandbox has no more; a later command of that name ignores
 * its row.
 */
void start_command_disown(struct process *process);
