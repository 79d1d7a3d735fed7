/* SPDX-License-Identifier: Apache-2.0 */
/* The roll of a sandbox's processes: those that run, and those that are only remembered. */
#pragma once

#include "core/process.h"

/*
 * Finds one by its name ("p7") or its pid inside. *ret_process is NULL if nothing of it runs any more;
 * the record is a copy for the caller.
 */
int roll_find(struct sandbox *sandbox, const char *name, struct process **ret_process,
	struct process_record *ret_record, struct err *err) must_check;

/* Calls each for all that run or are remembered, in the order of their numbers; borrowed. */
int roll_list(struct sandbox *sandbox, void (*each)(const struct process_record *record, void *arg),
	void *arg, struct err *err) must_check;

/* The kept output of one; of one that runs, the very log that is written. Counted. */
int roll_open_log(struct sandbox *sandbox, uint32_t number, struct output_log **ret_log,
	struct err *err) must_check;

/* For sandbox_link.c, reconcile.c and the reaper: */

/* Lists what the database says runs, before the agent of an adopted sandbox says hello. */
int roll_recall(struct sandbox *sandbox, struct link *link, struct err *err) must_check;

/*
 * The agent named those it has: goes on with the known ones, and ends the others. Known ones that it did not
 * name were lost. On the reactor's thread.
 */
struct unpack;
void roll_call(struct sandbox *sandbox, struct link *link, struct unpack *in, uint32_t count);

/* The sandbox ended: ends all its processes, and returns when all ends are written. */
void roll_end_all(struct sandbox *sandbox, const struct termination *how);

/* The same for a sandbox that ended while there was no daemon: there are only rows. */
int roll_end_rows(struct engine *engine, const char *sandbox_id, const struct termination *how,
	struct err *err) must_check;

/* The daemon leaves: lets go of all without ending any. */
void roll_let_go(struct sandbox *sandbox);

/* Whether a client waits for one of them. */
bool roll_is_watched(struct sandbox *sandbox);
