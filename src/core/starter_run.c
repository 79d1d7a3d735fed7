/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a start command, and runs it again. Whoever runs it claims that under the lock by setting it to running, so
 * there is never a second copy. That is done on the thread of a verb, or by the scribe: starting needs the database,
 * which the reactor's alarm must not wait for.
 */
#include "base/clock.h"
#include "base/log.h"
#include "core/alarm.h"
#include "core/environment.h"
#include "core/scribe.h"
#include "core/starter_private.h"
#include "model/start_spec.h"

#include <stdio.h>

/* --- running --- */

static void try_later(struct starter *starter, uint64_t ran_ms);

struct process *starter_find_process(struct starter *starter)
{
	struct process *process;

	pthread_mutex_lock(&starter->sandbox->state);
	for (process = starter->sandbox->processes; process; process = process->next) {
		if (process->starter == starter)
			break;
	}
	if (process)
		process_ref(process);
	pthread_mutex_unlock(&starter->sandbox->state);
	return process;
}

/* Ends what is there of it: also those who outlived its main process, and may hold its port. */
static void end_process(struct starter *starter)
{
	struct process *process = starter_find_process(starter);

	if (process)
		process_kill(process, true);
	process_unref(process);
}

void starter_disown(struct process *process)
{
	pthread_mutex_lock(&process->lock);
	process->record.start_digest = 0;
	pthread_mutex_unlock(&process->lock);
	process_kill(process, true);
}

/* A reference of the link if it may be run now, and is ours to run. */
static struct link *claim(struct starter *starter, uint32_t *ret_restarts)
{
	struct sandbox *sandbox = starter->sandbox;
	struct link *link = NULL;

	pthread_mutex_lock(&sandbox->state);
	if (!starter->is_over && starter->state.status == STARTER_WAITING && sandbox->link &&
		sandbox->greeted && !sandbox->ending && sandbox->record.status == SANDBOX_RUNNING) {
		link = link_ref(sandbox->link);
		starter->state.status = STARTER_RUNNING;
		starter->ceased = 0;
		starter->state.next_try_at_ms = 0;
		starter->state.tried_at_ms = clock_wall_ms();
		starter->state.restarts += starter->was_tried;
		starter->was_tried = true;
		*ret_restarts = starter->state.restarts;
	}
	pthread_mutex_unlock(&sandbox->state);
	return link;
}

/* It could not even be asked for. */
static void note_failure(struct starter *starter, const struct err *why)
{
	struct sandbox *sandbox = starter->sandbox;

	log_warning("sandbox %s: start command %s: %s", sandbox->id, starter->name, why->message);
	pthread_mutex_lock(&sandbox->state);
	starter->state.error = *why;
	pthread_mutex_unlock(&sandbox->state);
	try_later(starter, 0);
	starter_announce(starter);
}

/* It runs as this process, unless that has ended already; the oldest of many tries is forgotten. */
static void note_try(struct starter *starter, struct process *process, uint32_t restarts)
{
	uint32_t *place = &starter->tries[restarts % STARTER_TRIES_KEPT], oldest;
	bool is_over;

	pthread_mutex_lock(&starter->sandbox->state);
	if (starter->state.status == STARTER_RUNNING)
		starter->state.process = process->record.number;
	oldest = *place;
	*place = process->record.number;
	is_over = starter->is_over;
	pthread_mutex_unlock(&starter->sandbox->state);
	if (oldest)
		process_forget_row(starter->sandbox, oldest);
	/* Whoever took it out meanwhile did not find the process. */
	if (is_over)
		process_kill(process, true);
}

static const char *directory(const struct starter *starter)
{
	const char *cwd = json_string_value(json_object_get(starter->spec, "cwd"));

	return cwd ? cwd : ENVIRONMENT_CWD;
}

void starter_launch(struct starter *starter)
{
	const char *argv[] = {"/bin/sh", "-c",
		json_string_value(json_object_get(starter->spec, "command")), NULL};
	struct sandbox *sandbox = starter->sandbox;
	uint32_t restarts = 0;
	struct link *link = claim(starter, &restarts);
	struct process *process;
	struct err err;
	char **env;
	int r;

	if (!link)
		return;
	end_process(starter);
	process = process_make(sandbox, link);
	process->starter = starter_ref(starter);
	snprintf(process->record.start, sizeof(process->record.start), "%s", starter->name);
	process->record.start_digest = start_spec_digest(starter->spec);
	process->record.restarts = restarts;
	env = environment_make(
		sandbox, json_object_get(starter->spec, "env"), ENVIRONMENT_UID, false);
	r = process_run(process,
		&(struct process_spec){.argv = argv,
			.env = (const char *const *)env,
			.cwd = directory(starter),
			.uid = ENVIRONMENT_UID,
			.gid = ENVIRONMENT_UID,
			/* Servers that watch their standard input take its end for their own. */
			.keeps_input_open = true,
			.is_line = true,
			.is_background = true,
			.is_kept = true,
			.kills_tree = true},
		&err);
	environment_free(env);
	if (r == 0)
		note_try(starter, process, restarts);
	else
		note_failure(starter, &err);
	process_unref(process);
}

static void launch_later(void *arg)
{
	starter_launch(arg);
	starter_unref(arg);
}

/* --- trying again --- */

static void released(void *arg)
{
	starter_unref(arg);
}

static void on_alarm(void *arg)
{
	struct starter *starter = arg;
	struct sandbox *sandbox = starter->sandbox;
	struct alarm *alarm;

	pthread_mutex_lock(&sandbox->state);
	alarm = take_ptr(&starter->alarm);
	pthread_mutex_unlock(&sandbox->state);
	alarm_close(alarm);
	scribe_put(sandbox->engine->scribe, launch_later, starter_ref(starter));
}

void starter_set_alarm(struct starter *starter)
{
	int64_t pause_ms = starter->state.next_try_at_ms - clock_wall_ms();
	struct err err;

	if (starter->alarm || starter->is_over || starter->state.status != STARTER_WAITING)
		return;
	if (alarm_open(starter->sandbox->engine->reactor, pause_ms > 0 ? (uint64_t)pause_ms : 0,
		    on_alarm, released, starter_ref(starter), &starter->alarm, &err) == 0)
		return;
	log_error("sandbox %s: start command %s is not run again: %s", starter->sandbox->id,
		starter->name, err.message);
	starter_unref(starter); /* not the last one: the caller has its own */
}

/* It failed after ran_ms. */
static void try_later(struct starter *starter, uint64_t ran_ms)
{
	struct sandbox *sandbox = starter->sandbox;

	pthread_mutex_lock(&sandbox->state);
	starter->state.status = STARTER_WAITING;
	starter->state.next_try_at_ms =
		clock_wall_ms() + (int64_t)restart_pause_ms(&starter->failures, ran_ms);
	if (!sandbox->ending)
		starter_set_alarm(starter);
	pthread_mutex_unlock(&sandbox->state);
}

void starter_note_started(struct starter *starter, uint32_t process)
{
	pthread_mutex_lock(&starter->sandbox->state);
	starter->state.process = process;
	starter->state.error.kind = ERR_NONE;
	pthread_mutex_unlock(&starter->sandbox->state);
	starter_announce(starter);
}

/* What is known of the end of a try; one that never ran has left no process. The lock is held. */
static void keep_end(struct starter *starter, const struct process_end *end)
{
	struct starter_state *state = &starter->state;

	if (process_explain_end(end, directory(starter), &state->error) < 0) {
		state->process = 0;
		return;
	}
	state->error.kind = ERR_NONE;
	state->ended_at_ms = clock_wall_ms();
	state->exit_code = end->exit_code;
	state->end = end->how;
}

enum restart_verdict starter_judge(
	const struct starter *starter, enum end_reason reason, int exit_code)
{
	enum restart_verdict verdict = restart_judge(reason, exit_code);

	/* It may have failed before the signal came, or before anybody asked for its end. */
	return starter->ceased && verdict == RESTART_AGAIN ? RESTART_KILLED : verdict;
}

void starter_note_end(struct starter *starter, const struct process_end *end)
{
	struct sandbox *sandbox = starter->sandbox;
	enum restart_verdict verdict;
	bool is_ours;

	pthread_mutex_lock(&sandbox->state);
	verdict = starter_judge(starter, end->how.reason, end->exit_code);
	is_ours = !starter->is_over && !sandbox->ending && starter->state.status == STARTER_RUNNING;
	if (is_ours)
		keep_end(starter, end);
	if (is_ours && verdict != RESTART_AGAIN)
		starter->state.status = verdict == RESTART_DONE ? STARTER_EXITED : STARTER_KILLED;
	pthread_mutex_unlock(&sandbox->state);
	if (!is_ours)
		return;
	if (verdict == RESTART_AGAIN) {
		end_process(starter);
		try_later(starter, end->duration_us / 1000);
	}
	starter_announce(starter);
}
