/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of an execution: how it is noticed, what came of it, and what is left to be removed. One that has its sandbox for
 * itself is over when its runner says so: the process, and all else in that sandbox, goes when the client has its answer.
 */
#include "base/clock.h"
#include "base/log.h"
#include "core/engine/db_writer.h"
#include "core/engine/sandbox_state.h"
#include "core/execution/artifacts.h"
#include "core/execution/execution.h"
#include "core/execution/execution_state.h"
#include "core/execution/function_places.h"
#include "core/execution/outcome.h"
#include "core/process/process_state.h"
#include "core/sandbox/sandbox_request.h"
#include "store/store_clock.h"
#include "store/work/store_execution.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>

#define READERS_S   30		/* how long a log waits for its readers */
#define QUICK_BYTES (64u << 10) /* of a log that is read at once */

/* --- what came of it --- */

static void publish(struct execution *execution, const struct execution_record *record)
{
	struct event_bus *bus = execution->executions->config.bus;
	char type[32];
	json_t *data = json_pack("{s:s, s:o, s:s, s:s}", "execution", record->id, "sandbox",
		record->is_fresh ? json_null() : json_string(record->sandbox_id), "language",
		record->language, "status", execution_status_name(record->status));
	auto_free char *text = json_dumps(data, JSON_COMPACT);

	json_decref(data);
	snprintf(type, sizeof(type), "execution.%s", execution_status_name(record->status));
	event_bus_publish_in(bus, &record->owner, record->sandbox_id, record->id, type, text);
}

/* Notes the outcome, which it takes over; the record is for the caller to end. */
static void note_outcome(struct execution *execution, enum execution_status status, json_t *outcome,
	struct execution_record *ret_record)
{
	pthread_mutex_lock(&execution->lock);
	execution->record.status = status;
	execution->record.outcome = outcome;
	execution->record.outcome_bytes += json_dumpb(outcome, NULL, 0, JSON_COMPACT);
	execution->record.ended_at_ms = store_clock_ms(execution->executions->config.store);
	if (execution->times.asked_us)
		execution->record.duration_us = clock_steady_us() - execution->times.asked_us;
	execution_record_copy(ret_record, &execution->record);
	atomic_store(&execution->is_row_old, true);
	pthread_mutex_unlock(&execution->lock);
}

/* Notes and tells the outcome. Whoever was told that it runs must not hear of an end that a crash could undo. */
void execution_tell_outcome(
	struct execution *execution, enum execution_status status, json_t *outcome)
{
	struct execution_record record;

	note_outcome(execution, status, outcome, &record);
	if (execution->is_told)
		execution_write_or_log(execution);
	function_place_give_back(take_ptr(&execution->place));
	execution_tell_over(execution, &record);
	execution_record_fini(&record);
}

/* What is left to do when it is told. */
void execution_conclude(struct execution *execution)
{
	struct execution_record record;

	if (!execution_is_written(execution))
		execution_write_or_log(execution);
	execution_read(execution, &record);
	publish(execution, &record);
	execution_unlist(execution);
	execution_history_note(execution->executions, &record);
	execution_record_fini(&record);
}

static bool has_readers(struct execution *execution)
{
	bool has;

	pthread_mutex_lock(&execution->lock);
	has = execution->readers > 0;
	pthread_mutex_unlock(&execution->lock);
	return has;
}

/* Waits for those who read its log, which goes with the sandbox: as long as they take, but not for ever. */
static void await_readers(struct execution *execution)
{
	struct executions *executions = execution->executions;
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += READERS_S;
	pthread_mutex_lock(&executions->lock);
	while (!executions->is_leaving && has_readers(execution) &&
		pthread_cond_timedwait(&executions->changed, &executions->lock, &until) == 0)
		;
	pthread_mutex_unlock(&executions->lock);
}

/* The fresh sandbox of one that is over. What stays is removed by the next daemon. */
static void remove_sandbox(struct execution *execution)
{
	struct engine *engine = sandbox_engine(execution->sandbox);
	struct err err;

	if (has_readers(execution)) {
		if (sandbox_stop(execution->sandbox, END_OPERATOR, &err) < 0)
			log_warning("execution %s: %s", execution->record.id, err.message);
		await_readers(execution);
	}
	if (sandbox_request_purge_builder(engine, execution->record.sandbox_id, &err) < 0)
		log_error("the sandbox of execution %s: %s", execution->record.id, err.message);
}

/* A runner that says when it is done has looked, so that those without any do not wait. */
static bool may_have_artifacts(const struct execution *execution)
{
	return execution->end.outcome == PROCESS_RAN && !execution->failure &&
	       ((!execution->host && !execution->said_done) || execution->has_outputs);
}

/* Gathers the outcome and tells it: it blocks on the sandbox if there may be artifacts. */
static void gather(struct execution *execution)
{
	struct outcome_input input = {.record = &execution->record,
		.language = execution->language,
		.log = execution->log,
		.from = execution->record.from,
		.to = execution->log ? output_log_end(execution->log) : 0,
		.end = &execution->end,
		.failure = execution->failure,
		.state = execution->state,
		.start = !execution->record.is_fresh ? NULL
			 : execution->is_warm	     ? "warm"
						     : "cold",
		.times = execution->times};
	struct artifacts_request artifacts = {.sandbox = execution->sandbox,
		.since_ms = execution->started_wall_ms,
		.copy = execution->executions->config.artifacts,
		.execution = execution->record.is_fresh ? execution->record.id : NULL};
	enum execution_status status;
	json_t *outcome;
	struct err err;

	/* What it left behind would disturb the next, and what is read here; a sandbox that is removed has no next. */
	if (execution->process && (!execution->said_done || may_have_artifacts(execution)))
		process_kill(execution->process, true);
	if (execution->host || execution->said_done)
		input.to = execution->log_end;
	/* Copies of one that has no row would be taken for what a forgotten one left. */
	if (may_have_artifacts(execution) && !atomic_load(&execution->is_written))
		execution_write_or_log(execution);
	input.artifacts = may_have_artifacts(execution)
				  ? artifacts_list(&artifacts, &input.is_artifacts_cut)
				  : json_array();
	pthread_mutex_lock(&execution->lock);
	execution->log_end = input.to;
	pthread_mutex_unlock(&execution->lock);
	outcome = outcome_make(&input, &status);
	/* Who asks for the next as soon as this has answered finds room for it. */
	if (execution->record.is_fresh && sandbox_disown(execution->sandbox, &err) < 0)
		log_warning("execution %s: %s", execution->record.id, err.message);
	execution_tell_outcome(execution, status, outcome);
}

static void *remove_in_thread(void *arg)
{
	struct execution *execution = arg;
	struct executions *executions = execution->executions;
	struct log_subject before = log_subject();

	log_set_subject(&execution->subject);
	if (execution->record.is_fresh)
		remove_sandbox(execution);
	log_set_subject(&before); /* it may be the thread of another, which goes on */
	execution_unref(execution);
	pthread_mutex_lock(&executions->lock);
	executions->threads--;
	pthread_cond_broadcast(&executions->changed);
	pthread_mutex_unlock(&executions->lock);
	return NULL;
}

static void *gather_in_thread(void *arg)
{
	struct execution *execution = arg;

	log_set_subject(&execution->subject);
	gather(arg);
	execution_conclude(arg);
	return remove_in_thread(arg);
}

/* A daemon that leaves gathers nothing any more; the next does. */
static bool take_thread(struct executions *executions)
{
	bool goes_on;

	pthread_mutex_lock(&executions->lock);
	goes_on = !executions->is_leaving;
	executions->threads += goes_on;
	pthread_mutex_unlock(&executions->lock);
	return goes_on;
}

/* Runs it on a thread of its own; without one to be had it is better late than never. */
static void begin_thread(void *(*work)(void *), struct execution *execution)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, work, execution) == 0)
		pthread_detach(thread);
	else
		(void)work(execution);
}

static void conclude_on_writer(void *arg)
{
	struct execution *execution = arg;

	execution_conclude(execution);
	if (execution->record.is_fresh)
		begin_thread(remove_in_thread, execution);
	else
		(void)remove_in_thread(execution);
}

static void gather_on_writer(void *arg)
{
	gather(arg);
	conclude_on_writer(arg);
}

/* One that does not block on the sandbox and has said little needs no thread of its own. */
static bool is_quick(const struct execution *execution)
{
	return (execution->host || execution->said_done) && !may_have_artifacts(execution) &&
	       execution->log_end - execution->record.from <= QUICK_BYTES;
}

/* Whether telling it takes neither the database nor a lock of the sandbox: the event loop may do it. */
static bool is_light(const struct execution *execution)
{
	return is_quick(execution) && !execution->is_told &&
	       (!execution->record.is_fresh || execution->is_warm);
}

static void begin_gathering(struct execution *execution)
{
	struct db_writer *writer = execution->sandbox->engine->db_writer;

	if (!take_thread(execution->executions))
		return;
	if (is_light(execution)) {
		gather(execution);
		db_writer_put(writer, conclude_on_writer, execution_ref(execution));
	} else if (is_quick(execution)) {
		db_writer_put(writer, gather_on_writer, execution_ref(execution));
	} else {
		begin_thread(gather_in_thread, execution_ref(execution));
	}
}

void execution_note(struct execution *execution, bool *flag)
{
	bool is_due;

	pthread_mutex_lock(&execution->lock);
	*flag = true;
	is_due = execution->is_listed && execution->has_ended;
	pthread_mutex_unlock(&execution->lock);
	if (is_due)
		begin_gathering(execution);
}

void execution_come_to_end(
	struct execution *execution, const struct process_end *end, uint64_t log_end)
{
	bool is_first;

	pthread_mutex_lock(&execution->lock);
	is_first = !execution->is_ending;
	execution->is_ending = true;
	if (is_first) {
		execution->times.ended_us = clock_steady_us();
		execution->end = *end;
		execution->log_end = log_end;
	}
	pthread_mutex_unlock(&execution->lock);
	if (is_first)
		execution_note(execution, &execution->has_ended);
}

/* --- its process --- */

/* The runner of one in a passing sandbox says that it is done. It may lie, but there is nothing of others there. */
static void take_done(struct execution *execution)
{
	const struct done_line *line = &execution->line;
	const struct process_end end = {.outcome = PROCESS_RAN,
		.how = {.reason = END_EXITED,
			.cpu_us = line->cpu_us,
			.peak_memory_bytes = line->memory_bytes}};
	bool is_cancelling;

	pthread_mutex_lock(&execution->lock);
	is_cancelling = execution->record.is_cancelling;
	pthread_mutex_unlock(&execution->lock);
	if (is_cancelling)
		return; /* its process is being killed, and that is its end */
	execution->said_done = true;
	execution->has_outputs = line->has_outputs;
	execution_come_to_end(execution, &end, output_log_end(process_log(execution->process)));
}

static void on_output(void *arg, int stream, const uint8_t *data, size_t len)
{
	struct execution *execution = arg;

	if (stream == 3 && !execution->times.begun_us)
		execution->times.begun_us = clock_steady_us();
	execution_tell_output(execution);
	if (stream == 3 && execution->record.is_fresh && !execution->language->is_plain &&
		!execution->said_done && done_line_put(&execution->line, data, len))
		take_done(execution);
}

static void on_ended(void *arg, const struct process_end *end)
{
	execution_come_to_end(arg, end, 0);
}

static void release(void *arg)
{
	execution_unref(arg);
}

const struct process_events execution_process_events = {
	.output = on_output, .ended = on_ended, .release = release};
