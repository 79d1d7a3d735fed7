/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a start command, and runs it again. Whoever runs it claims that under the lock by setting it to running, so
 * there is never a second copy. That is done on the thread of a verb, or by the database writer: starting needs the database,
 * which the event loop's timer must not wait for.
 */
#include "base/clock.h"
#include "base/log.h"
#include "core/engine/db_writer.h"
#include "core/engine/engine.h"
#include "core/engine/member_state.h"
#include "core/process/danger_gate.h"
#include "core/process/environment.h"
#include "core/process/start_command.h"
#include "core/process/start_command_private.h"
#include "event/timer.h"
#include "model/sandbox/start_spec.h"

#include <stdio.h>
#include <string.h>

/* --- running --- */

static void try_later(struct start_command *command, uint64_t ran_ms);

struct process *start_command_find_process(struct start_command *command)
{
	struct process *process;

	pthread_mutex_lock(&command->sandbox->state);
	for (process = command->sandbox->processes; process; process = process->next) {
		if (process->start_command == command)
			break;
	}
	if (process)
		process_ref(process);
	pthread_mutex_unlock(&command->sandbox->state);
	return process;
}

/* Ends what is there of it: also those who outlived its main process, and may hold its port. */
static void end_process(struct start_command *command)
{
	struct process *process = start_command_find_process(command);

	if (process)
		process_kill(process, true);
	process_unref(process);
}

void start_command_disown(struct process *process)
{
	pthread_mutex_lock(&process->lock);
	process->record.start_digest = 0;
	pthread_mutex_unlock(&process->lock);
	process_kill(process, true);
}

/* A reference of the link if it may be run now, and is ours to run. */
static struct agent_link *claim(struct start_command *command, uint32_t *ret_restarts)
{
	struct sandbox *sandbox = command->sandbox;
	struct agent_link *link = NULL;

	pthread_mutex_lock(&sandbox->state);
	if (!command->is_over && command->state.status == START_COMMAND_WAITING && sandbox->link &&
		sandbox->greeted && !sandbox->ending && !sandbox->member.is_held &&
		sandbox->record.status == SANDBOX_RUNNING) {
		link = agent_link_ref(sandbox->link);
		command->state.status = START_COMMAND_RUNNING;
		command->ceased = 0;
		command->state.next_try_at_ms = 0;
		command->state.tried_at_ms = store_clock_ms(engine_store(sandbox->engine));
		command->state.restarts += command->was_tried;
		command->was_tried = true;
		*ret_restarts = command->state.restarts;
	}
	pthread_mutex_unlock(&sandbox->state);
	return link;
}

/* It could not even be asked for. */
static void note_failure(struct start_command *command, const struct err *why)
{
	struct sandbox *sandbox = command->sandbox;

	log_warning("sandbox %s: start command %s: %s", sandbox->id, command->name, why->message);
	pthread_mutex_lock(&sandbox->state);
	command->state.error = *why;
	pthread_mutex_unlock(&sandbox->state);
	try_later(command, 0);
	start_command_announce(command);
}

/* It runs as this process, unless that has ended already; the oldest of many tries is forgotten. */
static void note_try(struct start_command *command, struct process *process, uint32_t restarts)
{
	uint32_t *place = &command->tries[restarts % START_COMMAND_TRIES_KEPT], oldest;
	bool is_over;

	pthread_mutex_lock(&command->sandbox->state);
	if (command->state.status == START_COMMAND_RUNNING)
		command->state.process = process->record.number;
	oldest = *place;
	*place = process->record.number;
	is_over = command->is_over;
	pthread_mutex_unlock(&command->sandbox->state);
	if (oldest)
		process_forget_row(command->sandbox, oldest);
	/* A thread that took the command off the list meanwhile did not find the process. */
	if (is_over)
		process_kill(process, true);
}

/* The record keeps it. */
static const char *directory(
	const struct start_command *command, const struct sandbox_record *record)
{
	const char *cwd = json_string_value(json_object_get(command->spec, "cwd"));

	return cwd ? cwd : environment_cwd(record);
}

void start_command_launch(struct start_command *command)
{
	const char *argv[] = {"/bin/sh", "-c",
		json_string_value(json_object_get(command->spec, "command")), NULL};
	struct sandbox *sandbox = command->sandbox;
	uint32_t restarts = 0, uid;
	struct sandbox_record record;
	struct agent_link *link = claim(command, &restarts);
	struct danger_verdict verdict;
	struct process *process;
	struct err err;
	char **env;
	int r;

	if (!link)
		return;
	end_process(command);
	process = process_make(sandbox, link);
	start_command_tie(command, process);
	snprintf(process->record.start, sizeof(process->record.start), "%s", command->name);
	process->record.start_digest = start_spec_digest(command->spec);
	process->record.restarts = restarts;
	sandbox_read(sandbox, &record);
	uid = environment_uid(&record);
	env = environment_make(sandbox, json_object_get(command->spec, "env"), uid, false);
	/* Nobody is there who could confirm it. */
	r = danger_gate_ask(sandbox->engine,
		&(struct danger_question){.argv = argv,
			.owner = &record.owner,
			.sandbox = sandbox->id,
			.is_confirmed = true},
		&verdict, &err);
	if (r == 0)
		r = process_run(process,
			&(struct process_spec){.argv = argv,
				.env = (const char *const *)env,
				.cwd = directory(command, &record),
				.uid = uid,
				.gid = environment_gid(&record, uid),
				.groups = environment_groups(&record, uid),
				/* Servers that watch their standard input take its end for their own. */
				.keeps_input_open = true,
				.is_line = true,
				.danger = verdict.flags,
				.is_background = true,
				.is_kept = true,
				.kills_tree = true},
			&err);
	environment_free(env);
	sandbox_record_fini(&record);
	if (r == 0)
		note_try(command, process, restarts);
	else
		note_failure(command, &err);
	process_unref(process);
}

static void launch_later(void *arg)
{
	start_command_launch(arg);
	start_command_unref(arg);
}

/* --- trying again --- */

static void released(void *arg)
{
	start_command_unref(arg);
}

static void on_timer(void *arg)
{
	struct start_command *command = arg;
	struct sandbox *sandbox = command->sandbox;
	struct timer *timer;

	pthread_mutex_lock(&sandbox->state);
	timer = take_ptr(&command->timer);
	pthread_mutex_unlock(&sandbox->state);
	timer_close(timer);
	db_writer_put(sandbox->engine->db_writer, launch_later, start_command_ref(command));
}

void start_command_set_timer(struct start_command *command)
{
	int64_t pause_ms = command->state.next_try_at_ms -
			   store_clock_ms(engine_store(command->sandbox->engine));

	if (command->timer || command->is_over || command->state.status != START_COMMAND_WAITING)
		return;
	command->timer = timer_open(
		command->sandbox->engine->loop, on_timer, released, start_command_ref(command));
	timer_set(command->timer, pause_ms > 0 ? (uint64_t)pause_ms : 0);
}

/* It failed after ran_ms. */
static void try_later(struct start_command *command, uint64_t ran_ms)
{
	struct sandbox *sandbox = command->sandbox;

	pthread_mutex_lock(&sandbox->state);
	command->state.status = START_COMMAND_WAITING;
	command->state.next_try_at_ms = store_clock_ms(engine_store(sandbox->engine)) +
					(int64_t)restart_pause_ms(&command->failures, ran_ms);
	if (!sandbox->ending)
		start_command_set_timer(command);
	pthread_mutex_unlock(&sandbox->state);
}

/* What is known of the end of a try; one that never ran has left no process. The lock is held. */
static void keep_end(struct start_command *command, const struct process_end *end)
{
	struct start_command_state *state = &command->state;

	if (process_explain_end(end, directory(command, &command->sandbox->record), &state->error) <
		0) {
		state->process = 0;
		return;
	}
	state->error.kind = ERR_NONE;
	state->ended_at_ms = store_clock_ms(engine_store(command->sandbox->engine));
	state->exit_code = end->exit_code;
	state->end = end->how;
}

enum restart_decision start_command_judge(
	const struct start_command *command, enum end_reason reason, int exit_code)
{
	const char *rule = json_string_value(json_object_get(command->spec, "restart"));
	enum restart_decision decision = restart_judge(reason, exit_code);

	if (rule && strcmp(rule, "always") == 0 && decision == RESTART_DONE)
		decision = RESTART_AGAIN;
	if (rule && strcmp(rule, "never") == 0 && decision == RESTART_AGAIN)
		decision = RESTART_DONE;

	/* It may have failed before the signal came, or before anybody asked for its end. */
	return command->ceased && decision == RESTART_AGAIN ? RESTART_KILLED : decision;
}

static void note_end(struct start_command *command, const struct process_end *end)
{
	struct sandbox *sandbox = command->sandbox;
	enum restart_decision decision;
	bool is_ours;

	pthread_mutex_lock(&sandbox->state);
	decision = start_command_judge(command, end->how.reason, end->exit_code);
	is_ours = !command->is_over && !sandbox->ending &&
		  command->state.status == START_COMMAND_RUNNING;
	if (is_ours) {
		keep_end(command, end);
		member_state_hurry(sandbox);
	}
	if (is_ours && decision != RESTART_AGAIN)
		command->state.status =
			decision == RESTART_DONE ? START_COMMAND_EXITED : START_COMMAND_KILLED;
	pthread_mutex_unlock(&sandbox->state);
	if (!is_ours)
		return;
	if (decision == RESTART_AGAIN) {
		end_process(command);
		try_later(command, end->duration_us / 1000);
	}
	start_command_announce(command);
}

static void note_started(struct start_command *command, uint32_t process)
{
	pthread_mutex_lock(&command->sandbox->state);
	command->state.process = process;
	command->state.error.kind = ERR_NONE;
	member_state_hurry(command->sandbox);
	pthread_mutex_unlock(&command->sandbox->state);
	start_command_announce(command);
}

static const struct process_starter starter = {note_started, note_end, start_command_unref};

void start_command_tie(struct start_command *command, struct process *process)
{
	process->start_command = start_command_ref(command);
	process->starter = &starter;
}
