/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What runs in a context, one after another: requests to its process, the lines that say that one is done, the end of the
 * process, and time: timeouts, interrupts that are not heeded, idleness.
 */
#include "base/clock.h"
#include "core/context/context.h"
#include "core/context/context_state.h"
#include "core/engine/sandbox_state.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define LOST_MS	   (600u * 1000) /* for so long one without an interpreter is kept */
#define INTERRUPTS 8
#define EXIT_INT   (128 + SIGINT)

/* --- what runs in it; the lock is held --- */

void context_set_due(struct context *context, uint64_t ms)
{
	context->due_ms = ms ? clock_steady_ms() + ms : 0;
	if (ms && context->timer)
		timer_set(context->timer, ms);
}

/* Nothing runs in it. One without an interpreter has nothing to keep, and does not wait for long. */
void context_rest(struct context *context)
{
	uint64_t idle_ms = (uint64_t)context->record.idle_timeout_s * 1000;

	context->record.used_at_ms = store_clock_ms(context->contexts->store);
	if (!context->process && (idle_ms == 0 || idle_ms > LOST_MS))
		idle_ms = LOST_MS;
	context_set_due(context, idle_ms);
	pthread_cond_broadcast(&context->changed);
}

/* Sends the request of the next, if nothing runs. One that cannot be sent ends with the process. */
void context_begin_next(struct context *context)
{
	struct execution *execution = context->waiting;
	struct err err;

	if (context->current || !execution || !context->is_ready || context->is_ending)
		return;
	context->waiting = take_ptr(&execution->after);
	if (!context->waiting)
		context->last = &context->waiting;
	context->waiting_count--;
	context->current = execution;
	context->interrupts = 0;
	context->scanned = output_log_end(context->log);
	done_line_init(&context->line, execution->record.id);
	context_set_due(context, execution->record.timeout_ms);
	sandbox_enter(context->sandbox);
	/* The row of one that waited is there already. */
	execution_note_begun(execution, context->record.process, context->log);
	if (execution->has_waited)
		execution_write_begun(execution);
	if (process_write(context->process, execution->request.data, execution->request.len, false,
		    NULL, &err) < 0)
		process_kill(context->process, true);
	buf_fini(&execution->request);
}

/* Nothing runs in it any more: what ran, with how it ended. */
static struct execution *take_current(struct context *context, enum outcome_state state)
{
	struct execution *execution = take_ptr(&context->current);

	if (!execution)
		return NULL;
	execution->state = state;
	sandbox_leave(context->sandbox);
	context_rest(context);
	return execution;
}

/* Sends an interrupt; one that comes before the code has begun is not heeded, so there are several. */
static void send_interrupt(struct context *context)
{
	struct err ignored;

	context->interrupts++;
	if (process_signal(context->process, SIGINT, false, &ignored) == 0)
		context_set_due(context, CONTEXT_INTERRUPT_MS / INTERRUPTS);
}

void context_interrupt_now(struct context *context)
{
	if (context->interrupts == 0)
		send_interrupt(context);
}

/* --- the end of an execution --- */

void context_settle(struct settled *settled)
{
	if (!settled->execution)
		return;
	execution_come_to_end(settled->execution, &settled->end, settled->log_end);
	execution_unref(settled->execution);
}

/* Why one that was interrupted ended; the record is read by nobody else yet. */
static enum end_reason reason_of(const struct execution *execution, enum end_reason otherwise)
{
	return execution->has_timed_out		 ? END_TIMEOUT
	       : execution->record.is_cancelling ? END_KILLED
						 : otherwise;
}

/* The interpreter says that it is done. The lock is held. */
static void take_done(struct context *context, struct settled *settled)
{
	struct execution *execution = context->current;
	const struct done_line *line = &context->line;
	enum end_reason reason;

	pthread_mutex_lock(&execution->lock);
	reason = reason_of(execution, END_EXITED);
	pthread_mutex_unlock(&execution->lock);
	settled->end = (struct process_end){.outcome = PROCESS_RAN,
		.exit_code = reason == END_EXITED ? 0 : EXIT_INT,
		.how = {.reason = reason,
			.cpu_us = line->cpu_us,
			.peak_memory_bytes = line->memory_bytes}};
	execution->has_outputs = line->has_outputs;
	settled->log_end = context->scanned;
	settled->execution = take_current(context, OUTCOME_KEPT);
}

/* Reads lines of results; the bytes end at an offset. The lock is held. */
void context_scan(struct context *context, const uint8_t *data, size_t len, uint64_t end,
	struct settled *settled)
{
	/* After an adoption some of it was read from the log already. */
	if (end <= context->scanned)
		return;
	if (end - len < context->scanned) {
		data += context->scanned - (end - len);
		len = (size_t)(end - context->scanned);
	}
	context->scanned = end;
	if (!done_line_put(&context->line, data, len))
		return;
	if (!context->is_ready) {
		context->is_ready = true;
		pthread_cond_broadcast(&context->changed);
	} else if (context->current) {
		take_done(context, settled);
	}
}

static void on_output(void *arg, int stream, const uint8_t *data, size_t len)
{
	struct context *context = arg;
	struct settled settled = {0};
	struct execution *current;

	pthread_mutex_lock(&context->lock);
	/* The first may come before the call that started it has returned. */
	if (!context->log && context->process)
		context->log = output_log_ref(process_log(context->process));
	if (stream == 3 && context->log)
		context_scan(context, data, len, output_log_end(context->log), &settled);
	context_begin_next(context);
	current = context->current ? execution_ref(context->current) : NULL;
	pthread_mutex_unlock(&context->lock);
	if (settled.execution)
		execution_tell_output(settled.execution);
	context_settle(&settled);
	if (current)
		execution_tell_output(current);
	execution_unref(current);
}

/* --- the end of its process --- */

/* Whether the sandbox ends, and with it all that is in it. */
static bool is_sandbox_ending(struct context *context, enum end_reason reason)
{
	struct sandbox *sandbox = context->sandbox;
	bool is_ending;

	if (reason == END_IDLE || reason == END_LIFETIME || reason == END_MEMORY_PRESSURE ||
		reason == END_AGENT_LOST || reason == END_OPERATOR)
		return true;
	pthread_mutex_lock(&sandbox->state);
	is_ending = sandbox->ending || sandbox->gone || !sandbox->link;
	pthread_mutex_unlock(&sandbox->state);
	return is_ending;
}

static void explain_end(const struct process_end *end, bool is_sandbox, char *text, size_t size)
{
	const char *name = end->how.signal ? sigabbrev_np(end->how.signal) : NULL;

	if (is_sandbox)
		snprintf(text, size, "the sandbox was stopped");
	else if (end->how.reason == END_OOM)
		snprintf(text, size, "the sandbox ran out of memory");
	else if (name)
		snprintf(text, size, "the interpreter was ended by SIG%s", name);
	else
		snprintf(text, size, "the interpreter ended with exit code %d", end->exit_code);
}

/* Everything that waits, in order; the lock is held. */
struct execution *context_take_waiting(struct context *context)
{
	struct execution *first = take_ptr(&context->waiting);

	context->last = &context->waiting;
	context->waiting_count = 0;
	return first;
}

/* What waited is not run in an interpreter that does not know what came before. */
static void lose_waiting(struct execution *first, const char *why)
{
	const struct process_end nothing = {.outcome = PROCESS_REFUSED};

	while (first) {
		struct execution *next = take_ptr(&first->after);
		struct settled settled = {.execution = first, .end = nothing};

		first->state = OUTCOME_LOST;
		first->failure = why;
		context_settle(&settled);
		first = next;
	}
}

/* It takes no more executions. The lock is held; the caller takes it off the list. */
void context_end_with(struct context *context, const char *reason)
{
	snprintf(context->record.reason, sizeof(context->record.reason), "%s", reason);
	context->record.ended_at_ms = store_clock_ms(context->contexts->store);
	context->is_live = false;
	timer_close(take_ptr(&context->timer));
}

static void on_ended(void *arg, const struct process_end *end)
{
	struct context *context = arg;
	struct settled settled = {.end = *end};
	struct execution *waiting;
	char reason[CONTEXT_REASON_MAX];
	bool is_sandbox, is_over;

	if (atomic_load(&context->contexts->is_leaving))
		return;
	is_sandbox = is_sandbox_ending(context, end->how.reason);
	explain_end(end, is_sandbox, reason, sizeof(reason));
	pthread_mutex_lock(&context->lock);
	settled.log_end = context->log ? output_log_end(context->log) : 0;
	process_unref(take_ptr(&context->process));
	output_log_unref(take_ptr(&context->log));
	settled.execution = take_current(context, OUTCOME_LOST);
	waiting = context_take_waiting(context);
	context->end = *end;
	context->record.process = 0;
	context->record.is_lost = context->is_ready;
	/* One that was ended before has a reason already. */
	if (context->is_live)
		snprintf(context->record.reason, sizeof(context->record.reason), "%s", reason);
	is_over = context->is_live && context->is_ready && !context->is_ending &&
		  (!settled.execution || is_sandbox);
	if (is_over)
		context_end_with(context, reason);
	context->is_ready = false;
	pthread_cond_broadcast(&context->changed);
	pthread_mutex_unlock(&context->lock);
	if (is_over)
		context_unlist(context);
	context_write_later(context);
	if (settled.execution) {
		struct execution *execution = settled.execution;

		pthread_mutex_lock(&execution->lock);
		settled.end.how.reason = reason_of(execution, end->how.reason);
		pthread_mutex_unlock(&execution->lock);
		if (is_sandbox)
			execution->failure = "its sandbox was stopped";
		execution->has_outputs = !is_sandbox;
	}
	context_settle(&settled);
	lose_waiting(waiting, is_sandbox ? "its sandbox was stopped before it began"
					 : "the context lost its state before it began");
}

const struct process_events context_process_events = {
	.output = on_output, .ended = on_ended, .release = context_release};

/* --- time --- */

/* Ends one that nobody uses. The lock is held, and is given up. */
static void end_idle(struct context *context)
{
	struct process *process = context->process ? process_ref(context->process) : NULL;
	char reason[64];

	snprintf(reason, sizeof(reason),
		process ? "nothing ran in it for %lld s" : "its interpreter was lost",
		(long long)context->record.idle_timeout_s);
	context_end_with(context, reason);
	context->is_ending = true;
	pthread_mutex_unlock(&context->lock);
	context_unlist(context);
	context_write_later(context);
	if (process)
		process_kill(process, true);
	process_unref(process);
}

void context_on_timer(void *arg)
{
	struct context *context = arg;
	uint64_t now_ms = clock_steady_ms();

	pthread_mutex_lock(&context->lock);
	if (!context->is_live || !context->due_ms || atomic_load(&context->contexts->is_leaving)) {
		pthread_mutex_unlock(&context->lock);
		return;
	}
	if (now_ms < context->due_ms) {
		timer_set(context->timer, context->due_ms - now_ms);
	} else if (context->current && context->interrupts >= INTERRUPTS) {
		context->due_ms = 0;
		process_kill(context->process, true);
	} else if (context->current && context->interrupts > 0) {
		send_interrupt(context);
	} else if (context->current) {
		context->current->has_timed_out = true;
		context_interrupt_now(context);
	} else if (context->process && !context->is_ready) {
		context->due_ms = 0; /* it is being started */
	} else {
		end_idle(context);
		return;
	}
	pthread_mutex_unlock(&context->lock);
}

/* Waits for a change, at most until a time of the steady clock; false if that is over. The lock is held. */
bool context_wait_until(struct context *context, uint64_t until_ms)
{
	struct timespec deadline = {
		.tv_sec = (time_t)(until_ms / 1000), .tv_nsec = (long)(until_ms % 1000) * 1000000};

	return pthread_cond_timedwait(&context->changed, &context->lock, &deadline) != ETIMEDOUT;
}
