/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executions: code that is run for its result. An execution is a kept process (core/process/process.h) with a
 * descriptor for results, and a row that says what came of it (model/work/execution_record.h).
 *
 * It goes on when its client leaves and when the daemon does: the process is adopted by the next daemon, and its
 * results are in its log. When it has ended, a thread of its own gathers the outcome (outcome.h), because that
 * blocks on the sandbox; one that needs nothing of the sandbox and has said little is gathered where its end is noticed.
 * Then it is told and written: first written if its client knows of it, else first told (execution_row.c).
 *
 * Lock order: executions, then execution; neither is held while the store or a process is called.
 */
#pragma once

#include "core/execution/execution_spec.h"
#include "core/process/process.h"

/* Finds a host of a sandbox by its id. */
typedef int execution_find_host(void *arg, struct sandbox *sandbox, const char *id,
	struct execution_host **ret_host, struct err *err);

struct executions *executions_new(const struct executions_config *config);

/* Takes up what ran under the daemon before, once sandboxes and contexts are there. */
void executions_adopt(
	struct executions *executions, struct engine *engine, execution_find_host *find, void *arg);

/* Returns when the rows say what is so now, for whoever is about to list them; it blocks. */
void executions_settle(struct executions *executions, struct engine *engine);

/* From now on ends are not written: the next daemon sees to them. */
void executions_leave(struct executions *executions);

/* The calls of functions that are under way. */
struct function_places *executions_places(struct executions *executions);

/* A copy of an artifact of an execution that had a fresh sandbox; ERR_NOT_FOUND. */
struct digest;
int executions_open_copy(struct executions *executions, const struct digest *digest, int *ret_fd,
	struct err *err) must_check;

/* After the engine is closed. */
void executions_free(struct executions *executions);

/* --- for callers --- */

/* Starts one, in the name of the sandbox's owner. The sandbox is woken if need be. A fresh sandbox is the execution's
 * from then on; on failure it is the caller's. */
int execution_start(struct executions *executions, struct sandbox *sandbox,
	const struct execution_spec *spec, struct execution **ret_execution, struct err *err)
	must_check;

/*
 * One whose sandbox cannot be made yet: it is known from now on, and `queued`, until execution_start() is told of it or
 * execution_refuse() ends it. A daemon that ends before that has lost it. ERR_RATE: too many are.
 */
int execution_queue(struct executions *executions, const struct owner *owner,
	const struct execution_spec *spec, struct execution **ret_execution, struct err *err)
	must_check;

/* Ends one that is queued, with the reason; NULL, or if somebody did: it was cancelled. It blocks on the database. */
void execution_refuse(struct execution *execution, const struct err *why);

/* Whether it is over: one that is queued was cancelled. */
bool execution_is_over(struct execution *execution);

struct execution *execution_ref(struct execution *execution);
void execution_unref(struct execution *execution);

/*
 * One that runs (then *ret_execution, a reference), or is kept. The caller ends the record, which is as it is now.
 * ERR_NOT_FOUND for one of somebody else.
 */
int execution_get(struct executions *executions, const struct owner *owner, const char *id,
	struct execution **ret_execution, struct execution_record *ret_record, struct err *err)
	must_check;

/* A copy of what it is now; the caller ends it. */
void execution_read(struct execution *execution, struct execution_record *ret_record);

/*
 * Its log, borrowed, from *ret_from on; NULL if it has not begun, or never did. And how much of it is of this
 * execution, once it is over.
 */
struct output_log *execution_log(struct execution *execution, uint64_t *ret_from);
uint64_t execution_log_end(struct execution *execution);

/* Its log stays until as many ends as begins were said, or for half a minute after its end. */
void execution_begin_reading(struct execution *execution);
void execution_end_reading(struct execution *execution);

/* Asks for its end. One that is over stays as it is. */
void execution_cancel(struct execution *execution);

/* Both may be NULL; neither may block. */
struct execution_events {
	/* Its log has more. */
	void (*output)(void *arg);
	/* It is over; the record is borrowed. Only release follows. */
	void (*over)(void *arg, const struct execution_record *record);
	/* The watch is over, and with it its reference of arg. */
	void (*release)(void *arg);
};

/* Watches it, with a reference of arg that is the watch's; false if it is over already, and then the reference stays
 * the caller's. */
bool execution_watch(struct execution *execution, const struct execution_events *events, void *arg)
	must_check;

/* No event begins after it, but one may be under way. Harmless if the watch is over. */
void execution_unwatch(struct execution *execution, void *arg);
