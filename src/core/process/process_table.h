/* SPDX-License-Identifier: Apache-2.0 */
/* The process table of a sandbox: its running processes, and the ended ones that are remembered. */
#pragma once

#include "core/process/process.h"

/*
 * Finds one by its name ("p7") or its pid inside. *ret_process is NULL if nothing of it runs any more;
 * the record is a copy for the caller.
 */
int process_table_find(struct sandbox *sandbox, const char *name, struct process **ret_process,
	struct process_record *ret_record, struct err *err) must_check;

/* Calls each for all that run or are remembered, in the order of their numbers, from behind `after` on and until it
 * says false; borrowed. */
int process_table_list(struct sandbox *sandbox, uint32_t after,
	bool (*each)(const struct process_record *record, void *arg), void *arg, struct err *err)
	must_check;

/* The kept output of one; of one that runs, the very log that is written. Counted. */
int process_table_open_log(struct sandbox *sandbox, uint32_t number, struct output_log **ret_log,
	struct err *err) must_check;

/* For sandbox_link.c, reconcile.c and the reaper: */

/* Lists what the database says runs, before the agent of an adopted sandbox says hello. */
int process_table_adopt(struct sandbox *sandbox, struct agent_link *link, struct err *err)
	must_check;

/*
 * The agent named those it has: goes on with the known ones, and ends the others. Known ones that it did not
 * name were lost. On the event loop's thread.
 */
struct unpack;
void process_table_match(
	struct sandbox *sandbox, struct agent_link *link, struct unpack *in, uint32_t count);

/* The sandbox ended: ends all its processes, and returns when all ends are written. */
void process_table_end_all(struct sandbox *sandbox, const struct termination *how);

/* The same for a sandbox that ended while there was no daemon: there are only rows. */
int process_table_end_rows(struct engine *engine, const char *sandbox_id,
	const struct termination *how, struct err *err) must_check;

/* The daemon leaves: lets go of all without ending any. */
void process_table_let_go(struct sandbox *sandbox);

/* The sandbox has another owner, who answers for what runs in it: processes go on, if need be without a place. */
void process_table_give(struct sandbox *sandbox);

/* Whether a client waits for one of them. */
bool process_table_is_watched(struct sandbox *sandbox);

/* Whether one of them runs for less than that; those that check health are none. */
bool process_table_has_young(struct sandbox *sandbox, uint64_t age_ms);
