/* SPDX-License-Identifier: Apache-2.0 */
/* The interpreter of a context: its start, and its end when somebody asks for it. */
#include "base/clock.h"
#include "core/context/context.h"
#include "core/context/context_state.h"
#include "core/execution/execution_request.h"

#include <string.h>

/* Kills its process and waits until it is gone. */
void context_kill_process(struct context *context)
{
	uint64_t until_ms = clock_steady_ms() + CONTEXT_KILL_MS;
	struct process *process;

	pthread_mutex_lock(&context->lock);
	context->is_ending = true;
	process = context->process ? process_ref(context->process) : NULL;
	pthread_mutex_unlock(&context->lock);
	if (process)
		process_kill(process, true);
	process_unref(process);
	pthread_mutex_lock(&context->lock);
	while (context->process && context_wait_until(context, until_ms))
		;
	context->is_ending = false;
	pthread_mutex_unlock(&context->lock);
}

static int explain_start(struct context *context, struct err *err)
{
	const struct process_end *end = &context->end;
	int r = process_explain_end(
		end, context->record.cwd[0] ? context->record.cwd : "of commands", err);

	if (r < 0)
		return r;
	if (end->outcome == PROCESS_NOT_RUN)
		return err_explain(err, ERR_CONFLICT, "language_missing",
			"use a template that has it", "the sandbox has no %s to run %s with: %s",
			context->language->program[0], context->language->name,
			strerror(end->errnum));
	return err_explain(err, ERR_CONFLICT, "context_failed",
		"look at its process with GET /v1/sandboxes/{id}/processes",
		"the interpreter ended before it was ready: %s", context->record.reason);
}

/* The interpreter says that it is ready, or it has ended. */
static int await_ready(struct context *context, struct err *err)
{
	uint64_t until_ms = clock_steady_ms() + CONTEXT_START_MS;
	bool in_time = true;
	int r = 0;

	pthread_mutex_lock(&context->lock);
	while (context->process && !context->is_ready && in_time)
		in_time = context_wait_until(context, until_ms);
	if (!context->process)
		r = explain_start(context, err);
	else if (!context->is_ready)
		r = err_explain(err, ERR_UNAVAILABLE, "context_slow", "try again",
			"the interpreter was not ready after %d s", CONTEXT_START_MS / 1000);
	else
		context_rest(context);
	pthread_mutex_unlock(&context->lock);
	if (r < 0 && !in_time)
		context_kill_process(context);
	return r;
}

static int run(struct context *context, const struct command *command, struct err *err)
{
	struct process_record made;
	struct process *process;
	int r = process_new(context->sandbox, &process, err);

	if (r < 0)
		return r;
	if (!process_watch(process, &context_process_events, context_ref(context)))
		abort(); /* it does not run yet */
	pthread_mutex_lock(&context->lock);
	context->process = process;
	context->is_ready = false;
	context->scanned = 0;
	done_line_init(&context->line, context->record.id);
	output_log_unref(take_ptr(&context->log));
	pthread_mutex_unlock(&context->lock);
	process_ref(process);
	r = process_run(process, &command->spec, err);
	process_read(process, &made);
	pthread_mutex_lock(&context->lock);
	if (r < 0) {
		if (context->process == process)
			process_unref(take_ptr(&context->process));
	} else {
		context->record.process = context->process ? made.number : 0;
		context->record.starts++;
		context->record.is_lost = false;
		context->record.reason[0] = '\0';
	}
	pthread_mutex_unlock(&context->lock);
	process_record_fini(&made);
	process_unref(process);
	return r;
}

/* Starts an interpreter; `starting` is held. */
int context_start(struct context *context, struct err *err)
{
	struct execution_request request;
	struct context_record record;
	bool is_there;
	int r;

	pthread_mutex_lock(&context->lock);
	context_record_copy(&record, &context->record);
	is_there = context->process != NULL;
	pthread_mutex_unlock(&context->lock);
	if (is_there) {
		context_record_fini(&record);
		return err_set(err, ERR_UNAVAILABLE, "the interpreter of context %s does not end",
			record.id);
	}
	r = execution_request_make_context(context->sandbox, &record, &request, err);
	if (r == 0)
		r = run(context, &request.command, err);
	execution_request_fini(&request);
	context_record_fini(&record);
	if (r == 0)
		r = await_ready(context, err);
	context_write_later(context);
	return r;
}

/* It takes executions from now on. */
int context_enliven(struct context *context, struct err *err)
{
	int r = context_list(context, err);

	if (r < 0)
		return r;
	pthread_mutex_lock(&context->lock);
	context->is_live = true;
	context->record.ended_at_ms = 0;
	context->timer = engine_open_timer(sandbox_engine(context->sandbox), context_on_timer,
		context_release, context_ref(context));
	pthread_mutex_unlock(&context->lock);
	return 0;
}

/* It takes none any more. */
void context_retire(struct context *context)
{
	pthread_mutex_lock(&context->lock);
	context->is_live = false;
	timer_close(take_ptr(&context->timer));
	pthread_mutex_unlock(&context->lock);
	context_unlist(context);
}
