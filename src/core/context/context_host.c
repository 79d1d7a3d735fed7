/* SPDX-License-Identifier: Apache-2.0 */
/* A context as a place for executions (core/execution/execution.h), also for those that a daemon before us began. */
#include "base/clock.h"
#include "base/log.h"
#include "core/context/context.h"
#include "core/context/context_state.h"
#include "core/output/output_cursor.h"
#include "core/process/process_table.h"
#include "store/sandbox/store_context.h"
#include "store/store_clock.h"

#include <signal.h>
#include <string.h>

#define SCAN_PIECE (64u << 10)
#define EXIT_INT   (128 + SIGINT)

static struct context *of_host(struct execution_host *host)
{
	return (struct context *)host;
}

static int prepare(struct context *context, struct err *err)
{
	bool needs_start;
	int r = 0;

	pthread_mutex_lock(&context->lock);
	if (!context->is_live)
		r = context_explain_ended(context, err);
	needs_start = !context->process;
	pthread_mutex_unlock(&context->lock);
	return r == 0 && needs_start ? context_start(context, err) : r;
}

static int enqueue(struct context *context, struct execution *execution, struct err *err)
{
	if (!context->is_live || !context->is_ready)
		return err_explain(err, ERR_CONFLICT, "context_ended", "try again",
			"context %s lost its state just now", context->record.id);
	if (context->waiting_count >= CONTEXT_QUEUE_MAX)
		return err_explain(err, ERR_RATE, "context_busy",
			"wait for some to end, or make another context",
			"%d executions wait in context %s already", CONTEXT_QUEUE_MAX,
			context->record.id);
	*context->last = execution_ref(execution);
	context->last = &execution->after;
	context->waiting_count++;
	context_begin_next(context);
	execution->has_waited = context->current != execution;
	return 0;
}

static int host_submit(struct execution_host *host, struct execution *execution, struct err *err)
{
	struct context *context = of_host(host);
	int r;

	pthread_mutex_lock(&context->starting);
	r = prepare(context, err);
	if (r == 0) {
		pthread_mutex_lock(&context->lock);
		r = enqueue(context, execution, err);
		pthread_mutex_unlock(&context->lock);
	}
	pthread_mutex_unlock(&context->starting);
	return r;
}

/* Takes one out of the queue; the lock is held. */
static bool unqueue(struct context *context, struct execution *execution)
{
	for (struct execution **at = &context->waiting; *at; at = &(*at)->after) {
		if (*at != execution)
			continue;
		*at = take_ptr(&execution->after);
		if (!*at)
			context->last = at;
		context->waiting_count--;
		return true;
	}
	return false;
}

static void host_cancel(struct execution_host *host, struct execution *execution)
{
	struct context *context = of_host(host);
	struct settled settled = {.end = {.outcome = PROCESS_REFUSED,
					  .exit_code = EXIT_INT,
					  .how = {.reason = END_KILLED}}};

	pthread_mutex_lock(&context->lock);
	if (context->current == execution) {
		context_interrupt_now(context);
	} else if (unqueue(context, execution)) {
		execution->state = OUTCOME_KEPT;
		settled.execution = execution;
	}
	pthread_mutex_unlock(&context->lock);
	context_settle(&settled);
}

/* --- after a restart of the daemon --- */

/* Looks for the end of what runs in the part of the log that is there. */
static void scan_log(struct context *context, struct settled *settled)
{
	struct output_cursor *cursor = output_cursor_new(context->log, context->scanned);
	auto_free uint8_t *data = mem_new(SCAN_PIECE);
	struct output_piece piece = {.next = context->scanned};

	do {
		output_cursor_read(cursor, data, SCAN_PIECE, &piece);
		if (piece.kind == OUTPUT_RESULT)
			context_scan(context, data, (size_t)(piece.next - piece.offset), piece.next,
				settled);
		else if (piece.kind != OUTPUT_NONE)
			context->scanned = piece.next;
	} while (piece.kind != OUTPUT_NONE && context->current);
	output_cursor_free(cursor);
}

static uint64_t time_left(struct context *context, const struct execution *execution)
{
	int64_t end_ms = execution->record.created_at_ms + (int64_t)execution->record.timeout_ms;
	int64_t left_ms = end_ms - store_clock_ms(context->contexts->store);

	return left_ms > 1 ? (uint64_t)left_ms : 1;
}

static bool host_adopt(struct execution_host *host, struct execution *execution)
{
	struct context *context = of_host(host);
	struct settled settled = {0};
	bool is_here;

	pthread_mutex_lock(&context->lock);
	is_here = context->process && !context->current &&
		  context->record.process == execution->record.process;
	if (is_here) {
		context->current = execution_ref(execution);
		execution->log = output_log_ref(context->log);
		execution->started_wall_ms = clock_wall_ms();
		context->scanned = execution->record.from;
		done_line_init(&context->line, execution->record.id);
		sandbox_enter(context->sandbox);
		context_set_due(context, time_left(context, execution));
		scan_log(context, &settled);
	}
	pthread_mutex_unlock(&context->lock);
	context_settle(&settled);
	return is_here;
}

static const char *host_id(const struct execution_host *host)
{
	return ((const struct context *)host)->record.id;
}

static struct execution_host *host_ref(struct execution_host *host)
{
	return &context_ref(of_host(host))->host;
}

static void host_unref(struct execution_host *host)
{
	context_unref(of_host(host));
}

static const struct execution_host_ops host_ops = {.id = host_id,
	.ref = host_ref,
	.unref = host_unref,
	.submit = host_submit,
	.cancel = host_cancel,
	.adopt = host_adopt};

struct execution_host *context_host(struct context *context)
{
	context->host.ops = &host_ops;
	return &context->host;
}

int context_find_host(void *contexts, struct sandbox *sandbox, const char *id,
	struct execution_host **ret_host, struct err *err)
{
	struct context *context;
	int r = context_get(contexts, sandbox, id, &context, err);

	if (r == 0)
		*ret_host = context_host(context);
	return r;
}

/* Finds the process of one that the row says is there; it must have a log. */
static bool find_process(struct context *context)
{
	struct process_record process;
	char name[PROCESS_NAME_MAX];
	bool found;
	struct err err;

	process_name_format(context->record.process, name);
	if (process_table_find(context->sandbox, name, &context->process, &process, &err) < 0)
		return false;
	process_record_fini(&process);
	if (!context->process)
		return false;
	context->log = output_log_ref(process_log(context->process));
	context->is_ready = true;
	found = context->log &&
		process_watch(context->process, &context_process_events, context_ref(context));
	if (!found)
		context_unref(context); /* the watch's: there is none */
	return found;
}

static void adopt_one(
	struct contexts *contexts, struct engine *engine, struct context_record *record)
{
	struct context *context;
	struct sandbox *sandbox;
	struct err err;

	if (!language_find(record->language) ||
		sandbox_get(engine, NULL, record->sandbox_id, &sandbox, &err) < 0) {
		context_record_fini(record);
		return;
	}
	context = context_make(contexts, sandbox, record);
	sandbox_unref(sandbox);
	if ((record->process == 0 || find_process(context)) &&
		context_enliven(context, &err) == 0) {
		pthread_mutex_lock(&context->lock);
		context_rest(context);
		pthread_mutex_unlock(&context->lock);
	} else {
		process_unref(take_ptr(&context->process));
		context->record.process = 0;
		context_end_with(context, "its interpreter ended while there was no daemon");
		context_write_later(context);
	}
	context_unref(context);
}

void contexts_adopt(struct contexts *contexts, struct engine *engine)
{
	struct context_record rows[CONTEXT_MAX];
	char after[ID_LEN + 1] = "";
	struct err err;
	int count;

	do {
		count = store_context_list(contexts->store, NULL, after, rows, CONTEXT_MAX, &err);
		for (int i = 0; i < count; i++) {
			memcpy(after, rows[i].id, sizeof(after));
			adopt_one(contexts, engine, &rows[i]);
		}
	} while (count == CONTEXT_MAX);
	if (count < 0)
		log_error("contexts: %s", err.message);
}
