/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The insides of a starter; for starter*.c only. starter.c has those of a sandbox in its list, starter_run.c runs one
 * and runs it again, starter_recall.c takes up those of a daemon before us.
 */
#pragma once

#include "core/process_state.h"
#include "core/starter.h"
#include "model/restart.h"

#define STARTER_TRIES_KEPT 4 /* processes that are remembered of one that fails again and again */

struct starter {
	atomic_int refs;
	struct sandbox *sandbox;
	json_t *spec; /* an entry of the record's start; only read */
	const char *name;

	/* What follows is under sandbox.state. */
	struct starter *next;
	bool is_over; /* off the list: it starts nothing any more */
	struct starter_state state;
	uint32_t ceased;   /* the present one, if somebody wants its end: then it is the last */
	bool was_tried;	   /* since the sandbox was started: the next try is a restart */
	uint32_t failures; /* since it was last well */
	struct alarm *alarm;
	uint32_t tries[STARTER_TRIES_KEPT]; /* the numbers of its last processes */
};

struct starter *starter_ref(struct starter *starter);

/* One that waits to be run, in no list yet. */
struct starter *starter_new(struct sandbox *sandbox, const json_t *spec);

/* Puts it into the list of its sandbox, which takes over the reference. */
void starter_add(struct sandbox *sandbox, struct starter *starter);

/* Tells subscribers how it fares now. */
void starter_announce(struct starter *starter);

/* Runs it, if it waits for that and its sandbox can run it now. Not on the reactor's thread. */
void starter_launch(struct starter *starter);

/* What its end means for it. The lock is held. */
enum restart_verdict starter_judge(
	const struct starter *starter, enum end_reason reason, int exit_code);

/* Sets the alarm to its next try, unless it has one. The lock is held. */
void starter_set_alarm(struct starter *starter);

/* The process that it has now; a reference, or NULL. */
struct process *starter_find_process(struct starter *starter);

/* Ends one whose command the sandbox has no more: it says nothing about one of that name that may come. */
void starter_disown(struct process *process);
