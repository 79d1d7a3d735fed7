/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The row of a process and its end. The thread that claims the end concludes it: it writes the end
 * down and reports it, and the process leaves the list, unless a process that it started survives.
 */
#include "base/clock.h"
#include "base/fail_point.h"
#include "base/log.h"
#include "core/engine/db_writer.h"
#include "core/engine/engine.h"
#include "core/process/exit_reason.h"
#include "core/process/process.h"
#include "core/process/process_announce.h"
#include "core/process/process_state.h"
#include "core/process/process_watchers.h"
#include "core/process/sandbox_output.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#define SURPLUS_MAX 16

/* Writes what is known of a kept one. */
static void write_row(struct process *process)
{
	struct process_record record;
	struct err err;

	pthread_mutex_lock(&process->row);
	process_read(process, &record);
	if (store_process_update(process->sandbox->engine->config.store, &record, &err) < 0)
		log_error("process p%u of sandbox %s: %s", record.number, record.sandbox_id,
			err.message);
	pthread_mutex_unlock(&process->row);
	process_record_fini(&record);
}

static void write_later(void *arg)
{
	write_row(arg);
	process_unref(arg);
}

void process_note_change(struct process *process)
{
	if (process->log)
		db_writer_put(
			process->sandbox->engine->db_writer, write_later, process_ref(process));
}
void process_unlist(struct process *process)
{
	struct sandbox *sandbox = process->sandbox;
	bool found = false;

	pthread_mutex_lock(&sandbox->state);
	for (struct process **at = &sandbox->processes; *at; at = &(*at)->next) {
		if (*at == process) {
			*at = process->next;
			found = true;
			break;
		}
	}
	pthread_cond_broadcast(&sandbox->changed);
	pthread_mutex_unlock(&sandbox->state);
	if (found)
		process_unref(process);
}

bool process_claim_end(struct process *process, const struct process_end *end)
{
	struct timer *timer = NULL;
	bool is_ours;

	pthread_mutex_lock(&process->lock);
	is_ours = !process->ending;
	if (is_ours) {
		struct process_record *record = &process->record;

		process->ending = true;
		process->record.is_input_open = false;
		process->end = *end;
		record->exit_code = end->exit_code;
		record->duration_us = end->duration_us;
		record->end = end->how;
		record->ended_at_ms = store_clock_ms(engine_store(process->sandbox->engine));
		timer = take_ptr(&process->timer);
	}
	pthread_mutex_unlock(&process->lock);
	timer_close(timer);
	return is_ours;
}

int process_explain_end(const struct process_end *end, const char *cwd, struct err *err)
{
	switch (end->outcome) {
	case PROCESS_BAD_CWD:
		return err_explain(err, ERR_INVALID, "cwd_not_found",
			"make that directory, or name another",
			"the directory %s cannot be entered: %s", cwd, strerror(end->errnum));
	case PROCESS_REFUSED:
		if (end->errnum == ESHUTDOWN)
			return err_explain(err, ERR_CONFLICT, "sandbox_ended", "try again",
				"the sandbox is being stopped");
		return err_explain(err, ERR_UNAVAILABLE, "process_refused",
			"end other processes in it, or raise its limits",
			"the sandbox has no room for another process: %s", strerror(end->errnum));
	default:
		return 0;
	}
}

/* Forgets the oldest that ended, so that no sandbox fills the disk with its past. */
static void forget_surplus(const struct process *latest)
{
	struct sandbox *sandbox = latest->sandbox;
	struct engine *engine = sandbox->engine;
	uint32_t numbers[SURPLUS_MAX];
	struct err err;
	int count = store_process_surplus(engine->config.store, sandbox->id,
		engine->config.process_history, numbers, SURPLUS_MAX, &err);

	for (int i = 0; i < count; i++) {
		/* Of those that ended in the same millisecond it may not look like the last. */
		if (numbers[i] == latest->record.number ||
			sandbox->engine->verbs->needs_row(sandbox, numbers[i]))
			continue;
		if (store_process_delete(engine->config.store, sandbox->id, numbers[i], &err) < 0)
			break;
		if (sandbox_output_remove(sandbox, numbers[i], &err) < 0)
			log_error("sandbox %s: %s", sandbox->id, err.message);
	}
}

void process_forget_row(struct sandbox *sandbox, uint32_t number)
{
	struct err err;

	if (store_process_delete(sandbox->engine->config.store, sandbox->id, number, &err) < 0 ||
		sandbox_output_remove(sandbox, number, &err) < 0)
		log_error("sandbox %s: %s", sandbox->id, err.message);
}

void process_drop_row(struct process *process)
{
	if (process->log)
		process_forget_row(process->sandbox, process->record.number);
}

/* One that was not kept, but left somebody behind, is listed from now on. One that never was is not. */
static void write_end(struct process *process)
{
	struct process_record record;
	struct err err;

	if (process->end.outcome == PROCESS_BAD_CWD || process->end.outcome == PROCESS_REFUSED) {
		process_drop_row(process);
	} else if (process->log) {
		write_row(process);
	} else {
		process_read(process, &record);
		if (store_process_insert(process->sandbox->engine->config.store, &record, &err) < 0)
			log_error("process p%u of sandbox %s: %s", record.number, record.sandbox_id,
				err.message);
		process_record_fini(&record);
	}
	forget_surplus(process);
	sandbox_output_note(process->sandbox);
}

/* One that stays on the list leaves it when its last survivor has, after that was written down. */
static void report_end(struct process *process, bool stays)
{
	/* First: whoever waits for the end need not wait until the agent is woken. */
	process_watchers_tell_ended(process);
	process_tell(process, AGENT_FORGET, NULL, 0);
	if (process->log &&
		(process->end.outcome == PROCESS_RAN || process->end.outcome == PROCESS_NOT_RUN))
		process_announce(process, "process.exited");
	if (process->starter)
		process->starter->ended(process->start_command, &process->end);
	if (!stays) {
		process_unlist(process);
		return;
	}
	/* Under the lock: who looks at the list and then waits must not miss it in between. */
	pthread_mutex_lock(&process->sandbox->state);
	pthread_cond_broadcast(&process->sandbox->changed);
	pthread_mutex_unlock(&process->sandbox->state);
}

void process_conclude(struct process *process)
{
	bool stays = process_has_survivors(process);

	if (process->log || stays) {
		fail_point("process.end_claimed");
		write_end(process);
		fail_point("process.end_written");
	}
	report_end(process, stays);
	fail_point("process.end_reported");
}

void process_abandon(struct process *process)
{
	const struct process_end leaving = {.exit_code = EXIT_REASON_SIGNAL_BASE + SIGKILL,
		.how = {.reason = END_OPERATOR, .signal = SIGKILL}};

	struct timer *timer = NULL;
	bool is_ours;

	/* The record stays as it is: it may be on its way to the database. */
	pthread_mutex_lock(&process->lock);
	is_ours = !process->ending;
	if (is_ours) {
		process->ending = true;
		process->end = leaving;
		timer = take_ptr(&process->timer);
	}
	pthread_mutex_unlock(&process->lock);
	timer_close(timer);
	if (is_ours)
		process_watchers_tell_ended(process);
	process_watchers_tell_deserted(process);
}

static void conclude(void *arg)
{
	process_conclude(arg);
	process_unref(arg);
}

void process_conclude_later(struct process *process)
{
	db_writer_put(process->sandbox->engine->db_writer, conclude, process_ref(process));
}

void process_come_to_end(struct process *process, const struct process_end *how)
{
	if (!process_claim_end(process, how))
		return;
	if (process->log || process_has_survivors(process))
		process_conclude_later(process);
	else
		report_end(process, false);
}

static void leave_list(void *arg)
{
	struct process *process = arg;

	write_row(process);
	process_watchers_tell_deserted(process);
	process_unlist(process);
	process_unref(process);
}

void process_leave_later(struct process *process)
{
	db_writer_put(process->sandbox->engine->db_writer, leave_list, process_ref(process));
}
