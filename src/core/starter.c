/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A starter is in the list of its sandbox, and its process knows it. Whoever runs it claims that under
 * the lock by setting it to running, so there is never a second copy. It is run on the thread of a verb,
 * or by the scribe: starting needs the database, which the reactor's alarm must not wait for.
 */
#include "core/starter.h"

#include "base/clock.h"
#include "base/log.h"
#include "core/alarm.h"
#include "core/environment.h"
#include "core/network.h"
#include "core/process_state.h"
#include "core/scribe.h"
#include "model/restart.h"
#include "model/start_spec.h"

#include <stdio.h>
#include <string.h>

#define TRIES_KEPT 4 /* processes that are remembered of one that fails again and again */

struct starter {
	atomic_int refs;
	struct sandbox *sandbox;
	json_t *spec; /* an entry of the record's start; only read */
	const char *name;

	/* What follows is under sandbox.state. */
	struct starter *next;
	bool is_over; /* off the list: it starts nothing any more */
	struct starter_state state;
	bool was_tried;	   /* since the sandbox was started: the next try is a restart */
	uint32_t failures; /* since it was last well */
	struct alarm *alarm;
	uint32_t tries[TRIES_KEPT]; /* the numbers of its last processes */
};

/* --- life --- */

static struct starter *starter_ref(struct starter *starter)
{
	atomic_fetch_add(&starter->refs, 1);
	return starter;
}

void starter_unref(struct starter *starter)
{
	if (!starter || atomic_fetch_sub(&starter->refs, 1) > 1)
		return;
	json_decref(starter->spec);
	sandbox_unref(starter->sandbox);
	free(starter);
}

static struct starter *starter_new(struct sandbox *sandbox, const json_t *spec)
{
	struct starter *starter = mem_new(sizeof(*starter));

	starter->refs = 1;
	starter->sandbox = sandbox_ref(sandbox);
	starter->spec = json_deep_copy(spec);
	starter->name = start_spec_name(starter->spec);
	starter->state.status = STARTER_WAITING;
	return starter;
}

const char *starter_status_name(enum starter_status status)
{
	static const char *const names[] = {
		[STARTER_STOPPED] = "stopped",
		[STARTER_RUNNING] = "running",
		[STARTER_WAITING] = "waiting",
		[STARTER_EXITED] = "exited",
		[STARTER_KILLED] = "killed",
	};

	return names[status];
}

const char *starter_error(const struct starter_state *state)
{
	return state->error.kind == ERR_NONE ? NULL : state->error.message;
}

void starter_read(struct sandbox *sandbox, const char *name, struct starter_state *ret_state)
{
	*ret_state = (struct starter_state){.status = STARTER_STOPPED};
	pthread_mutex_lock(&sandbox->state);
	for (struct starter *s = sandbox->starters; s; s = s->next) {
		if (strcmp(s->name, name) == 0)
			*ret_state = s->state;
	}
	pthread_mutex_unlock(&sandbox->state);
}

static json_t *time_to_json(int64_t ms)
{
	char text[CLOCK_TEXT_LEN];

	clock_format(ms, text);
	return ms ? json_string(text) : json_null();
}

/* Tells subscribers how it fares now. */
static void announce(struct starter *starter)
{
	struct sandbox *sandbox = starter->sandbox;
	char type[32], process[PROCESS_NAME_MAX];
	auto_free char *text = NULL;
	struct starter_state state;
	json_t *event;

	pthread_mutex_lock(&sandbox->state);
	state = starter->state;
	pthread_mutex_unlock(&sandbox->state);
	process_name_format(state.process, process);
	snprintf(type, sizeof(type), "start.%s", starter_status_name(state.status));
	event = json_pack("{s:s, s:s, s:s, s:o, s:I, s:s?, s:o, s:o, s:o, s:o}", "sandbox",
		sandbox->id, "name", starter->name, "status", starter_status_name(state.status),
		"process", state.process ? json_string(process) : json_null(), "restarts",
		(json_int_t)state.restarts, "last_error", starter_error(&state), "last_exit_code",
		state.ended_at_ms ? json_integer(state.exit_code) : json_null(), "last_reason",
		state.ended_at_ms ? json_string(end_reason_name(state.end.reason)) : json_null(),
		"next_try_at", time_to_json(state.next_try_at_ms), "at",
		time_to_json(clock_wall_ms()));
	text = json_dumps(event, JSON_COMPACT);
	json_decref(event);
	if (text)
		engine_publish(sandbox->engine, sandbox->id, type, text);
}

/* --- running --- */

static void try_later(struct starter *starter, uint64_t ran_ms);

/* The process that it has now; a reference, or NULL. */
static struct process *find_process(struct starter *starter)
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
	struct process *process = find_process(starter);

	if (process)
		process_kill(process, true);
	process_unref(process);
}

/* Ends one whose command the sandbox has no more: it says nothing about one of that name that may come. */
static void disown(struct process *process)
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
	announce(starter);
}

/* It runs as this process, unless that has ended already; the oldest of many tries is forgotten. */
static void note_try(struct starter *starter, struct process *process, uint32_t restarts)
{
	uint32_t *place = &starter->tries[restarts % TRIES_KEPT], oldest;
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

static void launch(struct starter *starter)
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
	launch(arg);
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

/* Sets the alarm to its next try, unless it has one. The lock is held. */
static void set_alarm(struct starter *starter)
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
		set_alarm(starter);
	pthread_mutex_unlock(&sandbox->state);
}

void starter_note_started(struct starter *starter, uint32_t process)
{
	pthread_mutex_lock(&starter->sandbox->state);
	starter->state.process = process;
	starter->state.error.kind = ERR_NONE;
	pthread_mutex_unlock(&starter->sandbox->state);
	announce(starter);
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

void starter_note_end(struct starter *starter, const struct process_end *end)
{
	enum restart_verdict verdict = restart_judge(end->how.reason, end->exit_code);
	struct sandbox *sandbox = starter->sandbox;
	bool is_ours;

	pthread_mutex_lock(&sandbox->state);
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
	announce(starter);
}

void starter_cease(struct sandbox *sandbox, uint32_t process)
{
	struct starter *found;
	struct alarm *alarm = NULL;

	pthread_mutex_lock(&sandbox->state);
	for (found = sandbox->starters; found; found = found->next) {
		if (found->state.process == process && found->state.status == STARTER_WAITING)
			break;
	}
	if (found) {
		found->state.status = STARTER_KILLED;
		found->state.next_try_at_ms = 0;
		alarm = take_ptr(&found->alarm);
		starter_ref(found);
	}
	pthread_mutex_unlock(&sandbox->state);
	if (!found)
		return;
	alarm_close(alarm);
	announce(found);
	starter_unref(found);
}

/* --- all of a sandbox --- */

static void add(struct sandbox *sandbox, struct starter *starter)
{
	pthread_mutex_lock(&sandbox->state);
	starter->next = sandbox->starters;
	sandbox->starters = starter;
	pthread_mutex_unlock(&sandbox->state);
}

/* Takes one off the list and gives the list's reference to the caller. The lock is held. */
static struct starter *take(struct starter **at, struct alarm **ret_alarm)
{
	struct starter *starter = *at;

	*at = starter->next;
	starter->is_over = true;
	*ret_alarm = take_ptr(&starter->alarm);
	return starter;
}

static bool is_wanted(const struct sandbox *sandbox, const struct starter *starter)
{
	json_t *spec;
	size_t i;

	json_array_foreach(sandbox->record.start, i, spec)
	{
		if (json_equal(spec, starter->spec))
			return true;
	}
	return false;
}

/* Ends one that the record does not have any more; false if there is none. life is held. */
static bool drop_unwanted(struct sandbox *sandbox)
{
	struct starter *dropped = NULL;
	struct process *process;
	struct alarm *alarm = NULL;

	pthread_mutex_lock(&sandbox->state);
	for (struct starter **at = &sandbox->starters; *at && !dropped;) {
		if (is_wanted(sandbox, *at))
			at = &(*at)->next;
		else
			dropped = take(at, &alarm);
	}
	pthread_mutex_unlock(&sandbox->state);
	if (!dropped)
		return false;
	alarm_close(alarm);
	process = find_process(dropped);
	if (process)
		disown(process);
	process_unref(process);
	starter_unref(dropped);
	return true;
}

static bool has_starter(struct sandbox *sandbox, const json_t *spec)
{
	struct starter *s;

	pthread_mutex_lock(&sandbox->state);
	for (s = sandbox->starters; s && !json_equal(s->spec, spec);)
		s = s->next;
	pthread_mutex_unlock(&sandbox->state);
	return s != NULL;
}

void starter_apply(struct sandbox *sandbox)
{
	const json_t *specs = sandbox->record.start; /* which only a holder of life changes */
	struct err err;
	json_t *spec;
	size_t i;

	while (drop_unwanted(sandbox))
		;
	if (json_array_size(specs) == 0)
		return;
	/* Without a way out it goes on; the next command tries again. */
	if (network_open_missing(sandbox, &err) < 0)
		log_warning("sandbox %s: %s", sandbox->id, err.message);
	json_array_foreach((json_t *)specs, i, spec)
	{
		struct starter *starter;

		if (has_starter(sandbox, spec))
			continue;
		starter = starter_new(sandbox, spec);
		add(sandbox, starter_ref(starter));
		launch(starter);
		starter_unref(starter);
	}
}

void starter_resume(struct sandbox *sandbox)
{
	pthread_mutex_lock(&sandbox->state);
	for (struct starter *s = sandbox->starters; s; s = s->next)
		set_alarm(s);
	pthread_mutex_unlock(&sandbox->state);
}

void starter_leave(struct sandbox *sandbox)
{
	struct starter *starter;

	do {
		struct alarm *alarm = NULL;

		pthread_mutex_lock(&sandbox->state);
		starter = sandbox->starters ? take(&sandbox->starters, &alarm) : NULL;
		pthread_mutex_unlock(&sandbox->state);
		alarm_close(alarm);
		starter_unref(starter);
	} while (starter);
}

/* --- after a restart of the daemon --- */

/*
 * The last try of a start command since the sandbox was started; clocks may have been set back meanwhile. One
 * of the same name that was to run something else says nothing about it.
 */
struct last_try {
	const char *name;
	uint64_t digest;
	int64_t since_ms;
	struct starter_state state;
	bool is_over; /* it has ended */
};

static void look_at_row(const struct process_record *record, void *arg)
{
	struct last_try *last = arg;

	if (strcmp(record->start, last->name) != 0)
		return;
	/* One that runs cannot be of an earlier start, whatever the time says. */
	if (record->ended_at_ms > 0 && record->started_at_ms < last->since_ms)
		return;
	if (record->start_digest != last->digest) {
		last->state = (struct starter_state){0};
		return;
	}
	last->is_over = record->ended_at_ms > 0;
	last->state = (struct starter_state){.process = record->number,
		.tried_at_ms = record->started_at_ms,
		.restarts = record->restarts,
		.ended_at_ms = record->ended_at_ms,
		.exit_code = record->exit_code,
		.end = record->end};
}

/* It failed when nobody was there to run it again: as if that had been planned at once. */
static void plan_again(struct starter *starter)
{
	struct starter_state *state = &starter->state;
	int64_t ran_ms = state->ended_at_ms - state->tried_at_ms;
	int64_t now_ms = clock_wall_ms();
	int64_t since_ms = state->ended_at_ms < now_ms ? state->ended_at_ms : now_ms;

	state->status = STARTER_WAITING;
	if (starter->was_tried)
		state->next_try_at_ms = since_ms + (int64_t)restart_pause_ms(&starter->failures,
							   ran_ms > 0 ? (uint64_t)ran_ms : 0);
}

/* What it was at when the daemon before us went, from the rows of its processes. */
static void remember(struct starter *starter, const struct last_try *last)
{
	enum restart_verdict verdict = restart_judge(last->state.end.reason, last->state.exit_code);

	starter->state = last->state;
	starter->was_tried = last->state.process > 0;
	starter->failures = last->state.restarts;
	if (starter->was_tried && !last->is_over)
		starter->state.status = STARTER_RUNNING;
	else if (!starter->was_tried || verdict == RESTART_AGAIN)
		plan_again(starter);
	else
		starter->state.status = verdict == RESTART_DONE ? STARTER_EXITED : STARTER_KILLED;
}

static void join_process(struct starter *starter)
{
	struct sandbox *sandbox = starter->sandbox;

	pthread_mutex_lock(&sandbox->state);
	for (struct process *p = sandbox->processes; p; p = p->next) {
		if (p->record.number == starter->state.process)
			p->starter = starter_ref(starter);
	}
	pthread_mutex_unlock(&sandbox->state);
}

/* The daemon before us wrote down that others are to run, and did not come to end these. */
static void disown_strays(struct sandbox *sandbox)
{
	pthread_mutex_lock(&sandbox->state);
	for (struct process *p = sandbox->processes; p; p = p->next) {
		if (p->record.start[0] && !p->starter)
			disown(p);
	}
	pthread_mutex_unlock(&sandbox->state);
}

int starter_recall(struct sandbox *sandbox, struct err *err)
{
	json_t *spec;
	size_t i;

	json_array_foreach(sandbox->record.start, i, spec)
	{
		struct starter *starter = starter_new(sandbox, spec);
		struct last_try last = {.name = starter->name,
			.digest = start_spec_digest(spec),
			.since_ms = sandbox->record.started_at_ms};
		int r = store_process_list(
			engine_store(sandbox->engine), sandbox->id, false, look_at_row, &last, err);

		if (r < 0) {
			starter_unref(starter);
			return r;
		}
		remember(starter, &last);
		join_process(starter);
		add(sandbox, starter);
	}
	disown_strays(sandbox);
	return 0;
}
