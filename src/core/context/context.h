/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts: interpreters that keep their state between executions. A context is a kept process of its sandbox
 * (core/process/process.h) that runs the loop of a runner (runtime/python.py), and a row (model/work/context_record.h).
 *
 * Executions run in it one after another, in the order in which they came; a bounded number waits. Each is a part of
 * the log of the process: from where it was sent to the line on the descriptor for results that says that it is done.
 * Every line there begins with the id of its execution. The interpreter learns an id with the request, and nobody in
 * the sandbox knows it before: so no thread or child that an earlier execution left behind can end a later one or
 * give a result in its name by what it prepared, and what comes late under an old id is left out and counted. Code
 * that searches the memory of its own interpreter can still find the id: contexts are walls between executions of
 * nobody, sandboxes are.
 *
 * An execution that is cancelled or takes too long is interrupted, and the state is kept. If that does not end it
 * soon, the process is killed, and the state is lost. Which of both is said with the execution. A context that lost
 * its state while something ran gets another interpreter with the next execution. One whose process ended otherwise,
 * as with its sandbox, has ended: nobody was told that its state is lost, so it takes nothing before it is restarted.
 *
 * Lock order: contexts, then context, then process; executions are told of things without any.
 */
#pragma once

#include "core/engine/sandbox_handle.h"
#include "core/execution/execution.h"
#include "model/text_map.h"
#include "model/work/context_record.h"

struct context;
struct contexts;

#define CONTEXT_MAX	       16 /* of a sandbox, that take executions */
#define CONTEXT_QUEUE_MAX      32 /* executions that wait in one */
#define CONTEXT_IDLE_DEFAULT_S 3600
#define CONTEXT_IDLE_MAX_S     (7 * 86400)
#define CONTEXT_INTERRUPT_MS   2000  /* what an interrupt has before the process is killed */
#define CONTEXT_START_MS       60000 /* an interpreter that takes longer is given up */

struct contexts *contexts_new(struct store *store);

/* Takes up those that ran under the daemon before, once sandboxes are there. */
void contexts_adopt(struct contexts *contexts, struct engine *engine);

/* From now on ends are not written: the next daemon sees to them. */
void contexts_leave(struct contexts *contexts);

/* After the engine is closed. */
void contexts_free(struct contexts *contexts);

/* --- for callers; they may block on the sandbox --- */

struct context_spec {
	const char *language;
	const char *cwd; /* NULL: as of commands */
	struct text_map env;
	int64_t idle_timeout_s; /* 0: never */
};

/* Makes one and waits until its interpreter is ready. */
int context_create(struct contexts *contexts, struct sandbox *sandbox,
	const struct context_spec *spec, struct context **ret_context, struct err *err) must_check;

/* Also one that has ended. */
int context_get(struct contexts *contexts, struct sandbox *sandbox, const char *id,
	struct context **ret_context, struct err *err) must_check;

struct context *context_ref(struct context *context);
void context_unref(struct context *context);
const char *context_id(const struct context *context);
const char *context_language(const struct context *context);

struct context_view {
	struct context_record record;
	const char *status;	    /* starting, idle, busy, ended */
	char execution[ID_LEN + 1]; /* what runs in it, or empty */
	unsigned waiting;
};

/* What it is now; the caller ends the record. */
void context_read(struct context *context, struct context_view *ret_view);

/* Calls each for all of a sandbox in the order of their ids; borrowed. */
int contexts_list(struct contexts *contexts, struct sandbox *sandbox,
	void (*each)(const struct context_view *view, void *arg), void *arg, struct err *err)
	must_check;

/* Interrupts what runs in it, and waits for the end of that. */
int context_interrupt(struct context *context, struct err *err) must_check;

/* Ends its interpreter with all that runs or waits in it, and starts another. */
int context_restart(struct context *context, struct err *err) must_check;

/* Ends and forgets it. */
int context_delete(struct context *context, struct err *err) must_check;

/* For executions in it. */
struct execution_host *context_host(struct context *context);

/* Finds one for executions_adopt. */
int context_find_host(void *contexts, struct sandbox *sandbox, const char *id,
	struct execution_host **ret_host, struct err *err) must_check;
