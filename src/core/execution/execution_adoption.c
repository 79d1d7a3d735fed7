/* SPDX-License-Identifier: Apache-2.0 */
/* What ran under the daemon before: a process or a context that is still there is taken up, all else is lost. */
#include "base/clock.h"
#include "base/log.h"
#include "core/engine/sandbox_handle.h"
#include "core/execution/execution.h"
#include "core/execution/execution_state.h"
#include "core/process/process_table.h"
#include "store/store_clock.h"
#include "store/work/store_execution.h"

/* A process of which only the row is left tells its end itself. */
static void take_end(struct execution *execution, const struct process_record *process)
{
	execution->end = (struct process_end){.exit_code = process->exit_code,
		.duration_us = process->duration_us,
		.how = process->end};
	execution->has_ended = true;
}

/* Finds out what became of one; NULL, or why nobody can know. */
static const char *take_up(struct execution *execution)
{
	struct process_record process;
	char name[PROCESS_NAME_MAX];
	struct err err;

	process_name_format(execution->record.process, name);
	if (process_table_find(execution->sandbox, name, &execution->process, &process, &err) < 0)
		return "nothing is known of its process any more";
	if (process_table_open_log(
		    execution->sandbox, execution->record.process, &execution->log, &err) < 0)
		log_warning("execution %s: %s", execution->record.id, err.message);
	execution->started_wall_ms =
		clock_wall_ms() - (store_clock_ms(execution->executions->config.store) -
					  execution->record.created_at_ms);
	execution_list(execution);
	if (!execution->process || !process_watch(execution->process, &execution_process_events,
					   execution_ref(execution))) {
		if (execution->process) {
			execution_unref(execution); /* the watch's: there is none */
			process_record_fini(&process);
			process_read(execution->process, &process);
		}
		take_end(execution, &process);
	}
	process_record_fini(&process);
	execution_note(execution, &execution->is_listed);
	return NULL;
}

/* One whose process nobody can ask. */
static void lose(struct executions *executions, struct execution_record *record, const char *why)
{
	const struct process_end unknown = {.outcome = PROCESS_REFUSED};
	struct outcome_input input = {.record = record,
		.language = language_find(language_names[0]), /* nothing of it is read */
		.end = &unknown,
		.failure = why,
		.artifacts = json_array()};
	struct err err;

	record->outcome = outcome_make(&input, &record->status);
	record->outcome_bytes = json_dumpb(record->outcome, NULL, 0, JSON_COMPACT);
	record->ended_at_ms = store_clock_ms(executions->config.store);
	if (store_execution_update(executions->config.store, record, &err) < 0)
		log_error("execution %s: %s", record->id, err.message);
}

struct adoption {
	struct executions *executions;
	struct engine *engine;
	execution_find_host *find;
	void *arg;
};

/* One that was begun in a context goes on there; one that waited for its turn was in nobody's hands. */
static const char *take_up_in_context(struct adoption *adoption, struct execution *execution)
{
	const struct execution_record *record = &execution->record;
	struct err err;

	if (record->process == 0)
		return "the daemon ended before it began";
	if (adoption->find(adoption->arg, execution->sandbox, record->context_id, &execution->host,
		    &err) < 0)
		return "its context is gone";
	execution_list(execution);
	if (execution->host->ops->adopt(execution->host, execution)) {
		execution_note(execution, &execution->is_listed);
		return NULL;
	}
	execution_unlist(execution);
	return "its context ended meanwhile";
}

static bool adopt(const struct execution_record *row, void *arg)
{
	struct adoption *adoption = arg;
	struct execution_record record = *row;
	struct execution *execution;
	struct sandbox *sandbox;
	const char *why;
	struct err err;

	if (!language_find(record.language) ||
		sandbox_get(adoption->engine, NULL, record.sandbox_id, &sandbox, &err) < 0) {
		lose(adoption->executions, &record,
			record.status == EXECUTION_QUEUED ? "the daemon ended before it began"
			: record.is_fresh		  ? "the daemon ended while it ran"
							  : "its sandbox was removed meanwhile");
		execution_record_fini(&record);
		return true;
	}
	execution = execution_make(adoption->executions, sandbox, &record);
	execution->is_told = true;
	atomic_store(&execution->is_written, true);
	why = record.context_id[0] ? take_up_in_context(adoption, execution) : take_up(execution);
	if (why)
		lose(adoption->executions, &execution->record, why);
	execution_unref(execution);
	sandbox_unref(sandbox);
	return true;
}

void executions_adopt(
	struct executions *executions, struct engine *engine, execution_find_host *find, void *arg)
{
	struct adoption adoption = {executions, engine, find, arg};
	struct store_execution_filter filter = {.is_active = true, .limit = UINT32_MAX};
	struct err err;

	if (store_execution_list(executions->config.store, &filter, adopt, &adoption, &err) < 0)
		log_error("executions: %s", err.message);
	execution_history_open(executions, engine);
}
