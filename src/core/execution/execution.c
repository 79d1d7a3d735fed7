/* SPDX-License-Identifier: Apache-2.0 */
#include "core/execution/execution.h"

#include "base/clock.h"
#include "core/engine/sandbox_handle.h"
#include "core/engine/sandbox_state.h"
#include "core/execution/artifacts.h"
#include "core/execution/execution_request.h"
#include "core/execution/execution_state.h"
#include "core/execution/function_places.h"
#include "core/execution/outcome.h"
#include "core/process/process_state.h"
#include "core/process/process_table.h"
#include "core/sandbox/sandbox_request.h"
#include "store/store_clock.h"
#include "store/work/store_execution.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define REQUEST_MAX (256u << 10) /* bytes of a request that is kept */

/* --- life --- */

struct executions *executions_new(const struct executions_config *config)
{
	struct executions *executions = mem_new(sizeof(*executions));

	executions->config = *config;
	executions->places = function_places_new();
	pthread_mutex_init(&executions->rows, NULL);
	pthread_mutex_init(&executions->lock, NULL);
	pthread_cond_init(&executions->changed, NULL);
	return executions;
}

struct execution *execution_ref(struct execution *execution)
{
	atomic_fetch_add(&execution->refs, 1);
	return execution;
}

void execution_unref(struct execution *execution)
{
	if (!execution || atomic_fetch_sub(&execution->refs, 1) > 1)
		return;
	function_place_give_back(execution->place);
	output_log_unref(execution->log);
	process_unref(execution->process);
	sandbox_unref(execution->sandbox);
	if (execution->host)
		execution->host->ops->unref(execution->host);
	buf_fini(&execution->request);
	execution_record_fini(&execution->record);
	pthread_mutex_destroy(&execution->lock);
	free(execution);
}

struct execution *execution_make(struct executions *executions, struct sandbox *sandbox,
	const struct execution_record *record)
{
	struct execution *execution = mem_new(sizeof(*execution));

	execution->refs = 1;
	execution->executions = executions;
	execution->subject = log_subject();
	execution->sandbox = sandbox ? sandbox_ref(sandbox) : NULL;
	execution->language = language_find(record->language);
	execution->request = BUF_INIT(PROCESS_INPUT_MAX);
	done_line_init(&execution->line, "");
	execution->record = *record;
	pthread_mutex_init(&execution->lock, NULL);
	return execution;
}

void execution_list(struct execution *execution)
{
	struct executions *executions = execution->executions;

	pthread_mutex_lock(&executions->lock);
	execution->next = executions->running;
	executions->running = execution_ref(execution);
	pthread_mutex_unlock(&executions->lock);
}

void execution_unlist(struct execution *execution)
{
	struct executions *executions = execution->executions;
	bool found = false;

	pthread_mutex_lock(&executions->lock);
	for (struct execution **at = &executions->running; *at; at = &(*at)->next) {
		if (*at == execution) {
			*at = execution->next;
			found = true;
			break;
		}
	}
	pthread_mutex_unlock(&executions->lock);
	if (found)
		execution_unref(execution);
}

void executions_leave(struct executions *executions)
{
	struct execution *running, *next;
	struct timer *row_timer, *old_timer;

	if (!executions)
		return;
	pthread_mutex_lock(&executions->lock);
	executions->is_leaving = true;
	pthread_cond_broadcast(&executions->changed);
	while (executions->threads > 0)
		pthread_cond_wait(&executions->changed, &executions->lock);
	row_timer = take_ptr(&executions->row_timer);
	old_timer = take_ptr(&executions->old_timer);
	pthread_mutex_unlock(&executions->lock);
	timer_close(row_timer);
	timer_close(old_timer);
	executions_write_running(executions); /* the next daemon takes them up */
	pthread_mutex_lock(&executions->lock);
	running = take_ptr(&executions->running);
	pthread_mutex_unlock(&executions->lock);
	/* What else holds them goes with the engine, which they must not outlive: their processes and sandboxes are its. */
	for (; running; running = next) {
		next = running->next;
		execution_unref(running);
	}
}

struct function_places *executions_places(struct executions *executions)
{
	return executions->places;
}

int executions_open_copy(
	struct executions *executions, const struct digest *digest, int *ret_fd, struct err *err)
{
	return artifact_store_read(executions->config.artifacts, digest, ret_fd, err);
}

void executions_free(struct executions *executions)
{
	if (!executions)
		return;
	function_places_free(executions->places);
	pthread_cond_destroy(&executions->changed);
	pthread_mutex_destroy(&executions->lock);
	pthread_mutex_destroy(&executions->rows);
	free(executions);
}

/* --- its context --- */

void execution_note_begun(struct execution *execution, uint32_t process, struct output_log *log)
{
	execution->times.sent_us = execution->times.begun_us = clock_steady_us();
	execution->started_wall_ms = clock_wall_ms();
	pthread_mutex_lock(&execution->lock);
	execution->log = output_log_ref(log);
	execution->record.process = process;
	execution->record.from = output_log_end(log);
	pthread_mutex_unlock(&execution->lock);
	execution_tell_output(execution);
}

/* --- the start --- */

void execution_describe(struct executions *executions, const struct execution_spec *spec,
	struct execution_record *record)
{
	*record = (struct execution_record){
		.timeout_ms = spec->timeout_ms ? spec->timeout_ms : EXECUTION_TIMEOUT_DEFAULT_MS,
		.has_handler = spec->handler || spec->event,
		.is_fresh = spec->is_fresh,
		.danger = spec->danger,
		.version = spec->version};
	if (spec->request)
		record->outcome_bytes = json_dumpb(spec->request, NULL, 0, JSON_COMPACT);
	if (record->outcome_bytes <= REQUEST_MAX)
		record->request = json_incref(spec->request);
	else
		record->outcome_bytes = 0;
	snprintf(record->function, sizeof(record->function), "%s",
		spec->function ? spec->function : "");
	record->created_at_ms = store_clock_ms(executions->config.store);
	id_new(record->created_at_ms, record->id);
	snprintf(record->language, sizeof(record->language), "%s", spec->language);
	snprintf(
		record->handler, sizeof(record->handler), "%s", spec->handler ? spec->handler : "");
}

static void describe_place(struct sandbox *sandbox, struct execution_record *record)
{
	struct sandbox_record box;

	sandbox_read(sandbox, &box);
	record->owner = box.owner;
	memcpy(record->sandbox_id, box.id, sizeof(record->sandbox_id));
	sandbox_record_fini(&box);
}

/* It runs, and is among those that do. Its row is written first if the client is told of it before it is over; if not, and
 * the daemon dies before that, the next does not know of it: the client has heard nothing either. */
static int note_started(struct execution *execution, struct err *err)
{
	int r = execution->is_told ? execution_write(execution, err) : 0;

	if (r < 0)
		return r;
	if (!execution->is_queued)
		execution_list(execution);
	if (!execution->is_told)
		execution_write_soon(execution);
	execution_note(execution, &execution->is_listed);
	return 0;
}

static int run_in_context(
	struct execution *execution, const struct execution_spec *spec, struct err *err)
{
	int r = execution_request_frame(
		execution->sandbox, spec, &execution->record, &execution->request, err);

	if (r == 0)
		r = execution->host->ops->submit(execution->host, execution, err);
	if (r < 0)
		return r;
	r = note_started(execution, err);
	if (r < 0)
		execution->host->ops->cancel(execution->host, execution);
	return r;
}

/* Runs the process; from then on its end may be told. */
static int run(struct execution *execution, const struct command *command, struct err *err)
{
	struct process_record process;
	int r;

	if (!process_watch(execution->process, &execution_process_events, execution_ref(execution)))
		abort(); /* it does not run yet */
	execution->times.sent_us = clock_steady_us();
	execution->started_wall_ms = clock_wall_ms();
	r = process_run(execution->process, &command->spec, err);
	if (r < 0)
		return r;
	process_read(execution->process, &process);
	execution->record.process = process.number;
	process_record_fini(&process);
	execution->log = output_log_ref(process_log(execution->process));
	r = note_started(execution, err);
	if (r < 0) {
		process_unwatch(execution->process, execution);
		process_kill(execution->process, true);
	}
	return r;
}

static int start_in_context(struct executions *executions, struct sandbox *sandbox,
	const struct execution_spec *spec, struct execution_record *record,
	struct execution **ret_execution, struct err *err)
{
	struct execution *execution;
	int r;

	snprintf(record->context_id, sizeof(record->context_id), "%s",
		spec->host->ops->id(spec->host));
	execution = execution_make(executions, sandbox, record);
	execution->is_told = spec->is_told;
	execution->host = spec->host->ops->ref(spec->host);
	execution->times.asked_us = clock_steady_us();
	r = run_in_context(execution, spec, err);
	if (r < 0)
		execution_unref(execution);
	else
		*ret_execution = execution;
	return r;
}

/* The same with a runner that waits. */
static int run_warm(struct execution *execution, const struct buf *input, struct err *err)
{
	struct process_record process;
	int r;

	execution->is_warm = true;
	execution->log = output_log_ref(process_log(execution->process));
	execution->record.from = output_log_end(execution->log);
	process_read(execution->process, &process);
	execution->record.process = process.number;
	process_record_fini(&process);
	if (!process_watch(
		    execution->process, &execution_process_events, execution_ref(execution))) {
		execution_unref(execution); /* the watch's: there is none */
		return err_set(err, ERR_UNAVAILABLE, "the interpreter that waited has ended");
	}
	execution->times.sent_us = clock_steady_us();
	execution->started_wall_ms = clock_wall_ms();
	r = process_write_last(execution->process, input->data, input->len, err);
	if (r == 0) {
		process_start_timer(execution->process, execution->record.timeout_ms);
		r = note_started(execution, err);
	}
	if (r < 0)
		process_unwatch(execution->process, execution);
	return r;
}

/* One that was queued gets its place, unless it was cancelled; a copy of its record. */
static int take_queued(struct execution *execution, struct sandbox *sandbox,
	struct execution_record *ret_record, struct err *err)
{
	int r = 0;

	pthread_mutex_lock(&execution->lock);
	if (execution->is_over || execution->record.is_cancelling) {
		r = err_set(err, ERR_CONFLICT, "it was cancelled");
	} else {
		execution->sandbox = sandbox_ref(sandbox);
		execution->record.status = EXECUTION_RUNNING;
		describe_place(sandbox, &execution->record);
		execution_record_copy(ret_record, &execution->record);
	}
	pthread_mutex_unlock(&execution->lock);
	return r;
}

/* Runs it, in the interpreter that waits for it or in a new one. */
static int begin(struct execution *execution, const struct execution_spec *spec,
	const struct execution_request *request, struct err *err)
{
	struct process *process = spec->warm ? process_ref(spec->warm) : NULL;
	bool is_cancelling;
	int r = process ? 0 : process_new(execution->sandbox, &process, err);

	if (r < 0)
		return r;
	pthread_mutex_lock(&execution->lock);
	execution->process = process;
	pthread_mutex_unlock(&execution->lock);
	r = spec->warm ? run_warm(execution, &request->input, err)
		       : run(execution, &request->command, err);
	pthread_mutex_lock(&execution->lock);
	is_cancelling = execution->record.is_cancelling;
	pthread_mutex_unlock(&execution->lock);
	/* One that was queued is known to who cancels it before it has a process that can be killed. */
	if (r == 0 && is_cancelling)
		process_kill(process, true);
	return r;
}

int execution_start(struct executions *executions, struct sandbox *sandbox,
	const struct execution_spec *spec, struct execution **ret_execution, struct err *err)
{
	uint64_t asked_us = spec->asked_us ? spec->asked_us : clock_steady_us();
	struct execution_request request;
	struct execution_record record;
	struct execution *execution;
	int r = 0;

	if (!language_find(spec->language))
		return err_explain(err, ERR_INVALID, "invalid_field", NULL,
			"field language must be that of a runner");
	if (spec->queued) {
		r = take_queued(spec->queued, sandbox, &record, err);
	} else {
		execution_describe(executions, spec, &record);
		describe_place(sandbox, &record);
	}
	if (r < 0)
		return r;
	if (spec->host)
		return start_in_context(executions, sandbox, spec, &record, ret_execution, err);
	r = execution_request_make(sandbox, spec, &record, &request, err);
	if (r < 0 || spec->queued)
		execution_record_fini(&record);
	if (r < 0) {
		execution_request_fini(&request);
		return r;
	}
	execution = spec->queued ? execution_ref(spec->queued)
				 : execution_make(executions, sandbox, &record);
	execution->times.asked_us = asked_us;
	execution->place = spec->place;
	execution->is_told = spec->is_told;
	r = begin(execution, spec, &request, err);
	execution_request_fini(&request);
	if (r < 0) {
		execution->place = NULL;
		/* What became of its process is not its end: that it could not begin is told by whoever queued it. */
		execution->is_ending = execution->has_ended = false;
		execution_unref(execution);
		return r;
	}
	*ret_execution = execution;
	return 0;
}

/* --- questions --- */

void execution_read(struct execution *execution, struct execution_record *ret_record)
{
	pthread_mutex_lock(&execution->lock);
	execution_record_copy(ret_record, &execution->record);
	/* Not before it is written down. */
	if (!execution->is_over && execution->record.ended_at_ms > 0) {
		json_decref(take_ptr(&ret_record->outcome));
		ret_record->status = EXECUTION_RUNNING;
		ret_record->ended_at_ms = 0;
	}
	pthread_mutex_unlock(&execution->lock);
}

int execution_get(struct executions *executions, const struct owner *owner, const char *id,
	struct execution **ret_execution, struct execution_record *ret_record, struct err *err)
{
	struct execution *found;

	pthread_mutex_lock(&executions->lock);
	for (found = executions->running; found && strcmp(found->record.id, id) != 0;)
		found = found->next;
	if (found && owner && !owner_equals(&found->record.owner, owner))
		found = NULL; /* of somebody else */
	if (found)
		execution_ref(found);
	pthread_mutex_unlock(&executions->lock);
	*ret_execution = found;
	if (!found)
		return store_execution_get(executions->config.store, owner, id, ret_record, err);
	execution_read(found, ret_record);
	return 0;
}

struct output_log *execution_log(struct execution *execution, uint64_t *ret_from)
{
	struct output_log *log;

	pthread_mutex_lock(&execution->lock);
	log = execution->log;
	*ret_from = execution->record.from;
	pthread_mutex_unlock(&execution->lock);
	return log;
}

uint64_t execution_log_end(struct execution *execution)
{
	uint64_t end;

	pthread_mutex_lock(&execution->lock);
	end = execution->is_over || (execution->host && execution->has_ended) ? execution->log_end
									      : UINT64_MAX;
	pthread_mutex_unlock(&execution->lock);
	return end;
}

void execution_begin_reading(struct execution *execution)
{
	pthread_mutex_lock(&execution->lock);
	execution->readers++;
	pthread_mutex_unlock(&execution->lock);
}

void execution_end_reading(struct execution *execution)
{
	struct executions *executions = execution->executions;

	pthread_mutex_lock(&execution->lock);
	execution->readers--;
	pthread_mutex_unlock(&execution->lock);
	pthread_mutex_lock(&executions->lock);
	pthread_cond_broadcast(&executions->changed);
	pthread_mutex_unlock(&executions->lock);
}

bool execution_is_over(struct execution *execution)
{
	bool is_over;

	pthread_mutex_lock(&execution->lock);
	is_over = execution->is_over;
	pthread_mutex_unlock(&execution->lock);
	return is_over;
}

void execution_cancel(struct execution *execution)
{
	auto_(process_unrefp) struct process *process = NULL;
	bool is_over, is_queued;

	pthread_mutex_lock(&execution->lock);
	is_over = execution->is_over;
	execution->record.is_cancelling |= !is_over;
	is_queued = execution->record.status == EXECUTION_QUEUED;
	if (execution->process)
		process = process_ref(execution->process);
	pthread_mutex_unlock(&execution->lock);
	if (is_over)
		return;
	if (execution->host)
		execution->host->ops->cancel(execution->host, execution);
	else if (process)
		process_kill(process, true);
	else if (is_queued)
		execution_refuse(execution, NULL);
}
