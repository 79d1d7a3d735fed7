/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The row of an execution. Whoever waits for the answer alone is answered from memory, and the row is written after that,
 * once, with the outcome: two writes on the way of the answer took longer than what most code does. One that runs for
 * longer than ROW_MS has its row while it runs, so that the next daemon takes it up.
 */
#include "base/log.h"
#include "core/engine/db_writer.h"
#include "core/engine/engine.h"
#include "core/engine/sandbox_state.h"
#include "core/execution/execution.h"
#include "core/execution/execution_state.h"
#include "store/work/store_execution.h"

#include <pthread.h>

#define ROW_MS 20

int execution_write(struct execution *execution, struct err *err)
{
	struct executions *executions = execution->executions;
	struct store *store = executions->config.store;
	struct execution_record record;
	int r;

	pthread_mutex_lock(&executions->rows);
	pthread_mutex_lock(&execution->lock);
	atomic_store(&execution->is_row_old, false);
	execution_record_copy(&record, &execution->record);
	pthread_mutex_unlock(&execution->lock);
	if (atomic_load(&execution->is_written)) {
		r = store_execution_update(store, &record, err);
	} else {
		r = store_execution_insert(store, &record, err);
		atomic_store(&execution->is_written, r == 0);
	}
	pthread_mutex_unlock(&executions->rows);
	execution_record_fini(&record);
	return r;
}

void execution_write_or_log(struct execution *execution)
{
	struct err err;

	if (execution_write(execution, &err) < 0)
		log_error("execution %s: %s", execution->record.id, err.message);
}

static void write_begun(void *arg)
{
	struct execution *execution = arg;
	bool runs;

	pthread_mutex_lock(&execution->lock);
	runs = execution->record.ended_at_ms == 0;
	pthread_mutex_unlock(&execution->lock);
	if (runs)
		execution_write_or_log(execution);
	execution_unref(execution);
}

void execution_write_begun(struct execution *execution)
{
	db_writer_put(execution->sandbox->engine->db_writer, write_begun, execution_ref(execution));
}

bool execution_is_written(const struct execution *execution)
{
	return atomic_load(&execution->is_written) && !atomic_load(&execution->is_row_old);
}

/* One that is not written, with a reference; NULL: there is none. */
static struct execution *find_unwritten(struct executions *executions)
{
	struct execution *found;

	pthread_mutex_lock(&executions->lock);
	for (found = executions->running; found && execution_is_written(found);)
		found = found->next;
	if (found)
		execution_ref(found);
	pthread_mutex_unlock(&executions->lock);
	return found;
}

void executions_write_running(struct executions *executions)
{
	struct execution *execution;
	struct err err;
	int r = 0;

	while (r == 0 && (execution = find_unwritten(executions))) {
		r = execution_write(execution, &err);
		if (r < 0)
			log_error("execution %s: %s", execution->record.id, err.message);
		execution_unref(execution);
	}
}

static void write_running(void *arg)
{
	executions_write_running(arg);
}

static void on_due(void *arg)
{
	struct executions *executions = arg;
	struct execution *execution = find_unwritten(executions);

	pthread_mutex_lock(&executions->lock);
	executions->is_row_due = false;
	pthread_mutex_unlock(&executions->lock);
	if (!execution)
		return;
	db_writer_put(executions->engine->db_writer, write_running, executions);
	execution_unref(execution);
}

void execution_write_soon(struct execution *execution)
{
	struct executions *executions = execution->executions;

	pthread_mutex_lock(&executions->lock);
	if (!executions->is_row_due && !executions->is_leaving) {
		if (!executions->row_timer)
			executions->row_timer = engine_open_timer(
				execution->sandbox->engine, on_due, NULL, executions);
		executions->is_row_due = true;
		timer_set(executions->row_timer, ROW_MS);
	}
	pthread_mutex_unlock(&executions->lock);
}

/* Somebody who waits until all rows are written. */
struct row_wait {
	struct executions *executions;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool is_done;
};

static void end_wait(void *arg)
{
	struct row_wait *wait = arg;

	executions_write_running(wait->executions);
	pthread_mutex_lock(&wait->lock);
	wait->is_done = true;
	pthread_cond_signal(&wait->changed);
	pthread_mutex_unlock(&wait->lock);
}

void executions_settle(struct executions *executions, struct engine *engine)
{
	struct row_wait wait = {.executions = executions};

	pthread_mutex_init(&wait.lock, NULL);
	pthread_cond_init(&wait.changed, NULL);
	db_writer_put(engine->db_writer, end_wait, &wait);
	pthread_mutex_lock(&wait.lock);
	while (!wait.is_done)
		pthread_cond_wait(&wait.changed, &wait.lock);
	pthread_mutex_unlock(&wait.lock);
	pthread_cond_destroy(&wait.changed);
	pthread_mutex_destroy(&wait.lock);
}
