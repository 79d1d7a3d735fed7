/* SPDX-License-Identifier: Apache-2.0 */
/* The starters of a sandbox: who they are, and which of them there are to be. */
#include "base/clock.h"
#include "base/log.h"
#include "core/network.h"
#include "core/scribe.h"
#include "core/starter_private.h"
#include "model/start_spec.h"

#include <stdio.h>
#include <string.h>

/* --- life --- */

struct starter *starter_ref(struct starter *starter)
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

struct starter *starter_new(struct sandbox *sandbox, const json_t *spec)
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

void starter_announce(struct starter *starter)
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

/* --- all of a sandbox --- */

void starter_add(struct sandbox *sandbox, struct starter *starter)
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
	process = starter_find_process(dropped);
	if (process)
		starter_disown(process);
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
		starter_add(sandbox, starter_ref(starter));
		starter_launch(starter);
		starter_unref(starter);
	}
}

void starter_resume(struct sandbox *sandbox)
{
	pthread_mutex_lock(&sandbox->state);
	for (struct starter *s = sandbox->starters; s; s = s->next)
		starter_set_alarm(s);
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

bool starter_needs_row(struct sandbox *sandbox, uint32_t process)
{
	struct starter *s;

	pthread_mutex_lock(&sandbox->state);
	for (s = sandbox->starters; s && s->state.process != process;)
		s = s->next;
	pthread_mutex_unlock(&sandbox->state);
	return s != NULL;
}

/* Of one that is only remembered; one that never ran is not. */
static void mark_row(struct sandbox *sandbox, uint32_t number)
{
	struct store *store = engine_store(sandbox->engine);
	struct process_record record;
	struct err err;

	if (store_process_get(store, sandbox->id, number, &record, &err) < 0)
		return;
	record.is_ceased = true;
	if (store_process_update(store, &record, &err) < 0)
		log_error("process p%u of sandbox %s: %s", number, sandbox->id, err.message);
	process_record_fini(&record);
}

/* For the next daemon. */
static void write_ceased(void *arg)
{
	struct starter *starter = arg;
	struct process *process = starter_find_process(starter);
	uint32_t ceased;

	pthread_mutex_lock(&starter->sandbox->state);
	ceased = starter->ceased;
	pthread_mutex_unlock(&starter->sandbox->state);
	if (process && process->record.number == ceased) {
		pthread_mutex_lock(&process->lock);
		process->record.is_ceased = true;
		pthread_mutex_unlock(&process->lock);
		process_note_change(process);
	} else if (ceased) {
		mark_row(starter->sandbox, ceased);
	}
	process_unref(process);
	starter_unref(starter);
}

void starter_cease(struct sandbox *sandbox, uint32_t process)
{
	struct starter *found;
	struct alarm *alarm = NULL;
	bool waits = false;

	pthread_mutex_lock(&sandbox->state);
	for (found = sandbox->starters; found && found->state.process != process;)
		found = found->next;
	if (found) {
		found->ceased = process;
		waits = found->state.status == STARTER_WAITING;
		starter_ref(found);
	}
	if (waits) {
		found->state.status = STARTER_KILLED;
		found->state.next_try_at_ms = 0;
		alarm = take_ptr(&found->alarm);
	}
	pthread_mutex_unlock(&sandbox->state);
	if (!found)
		return;
	alarm_close(alarm);
	if (waits)
		starter_announce(found);
	/* There it comes after what else is known of the process. */
	scribe_put(sandbox->engine->scribe, write_ceased, found);
}
