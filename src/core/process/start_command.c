/* SPDX-License-Identifier: Apache-2.0 */
/* The start commands of a sandbox: who they are, and which of them there are to be. */
#include "core/process/start_command.h"
#include "base/clock.h"
#include "base/log.h"
#include "core/engine/db_writer.h"
#include "core/engine/engine.h"
#include "core/engine/sandbox_network.h"
#include "core/process/start_command_private.h"
#include "model/sandbox/start_spec.h"

#include <stdio.h>
#include <string.h>

/* --- life --- */

struct start_command *start_command_ref(struct start_command *command)
{
	atomic_fetch_add(&command->refs, 1);
	return command;
}

void start_command_unref(struct start_command *command)
{
	if (!command || atomic_fetch_sub(&command->refs, 1) > 1)
		return;
	json_decref(command->spec);
	sandbox_unref(command->sandbox);
	free(command);
}

struct start_command *start_command_new(struct sandbox *sandbox, const json_t *spec)
{
	struct start_command *command = mem_new(sizeof(*command));

	command->refs = 1;
	command->sandbox = sandbox_ref(sandbox);
	command->spec = json_deep_copy(spec);
	command->name = start_spec_name(command->spec);
	command->state.status = START_COMMAND_WAITING;
	return command;
}

const char *start_command_status_name(enum start_command_status status)
{
	static const char *const names[] = {
		[START_COMMAND_STOPPED] = "stopped",
		[START_COMMAND_RUNNING] = "running",
		[START_COMMAND_WAITING] = "waiting",
		[START_COMMAND_EXITED] = "exited",
		[START_COMMAND_KILLED] = "killed",
	};

	return names[status];
}

const char *start_command_error(const struct start_command_state *state)
{
	return state->error.kind == ERR_NONE ? NULL : state->error.message;
}

void start_command_read(
	struct sandbox *sandbox, const char *name, struct start_command_state *ret_state)
{
	*ret_state = (struct start_command_state){.status = START_COMMAND_STOPPED};
	pthread_mutex_lock(&sandbox->state);
	for (struct start_command *s = sandbox->start_commands; s; s = s->next) {
		if (strcmp(s->name, name) == 0)
			*ret_state = s->state;
	}
	pthread_mutex_unlock(&sandbox->state);
}

static bool is_failing(const struct start_command_state *state)
{
	switch (state->status) {
	case START_COMMAND_WAITING:
		return state->tried_at_ms;
	case START_COMMAND_EXITED:
		return state->exit_code;
	default:
		return state->status == START_COMMAND_KILLED;
	}
}

void start_command_add_up(struct sandbox *sandbox, struct start_command_sum *sum)
{
	pthread_mutex_lock(&sandbox->state);
	for (const struct start_command *s = sandbox->start_commands; s; s = s->next) {
		sum->running += s->state.status == START_COMMAND_RUNNING;
		sum->failing += is_failing(&s->state);
		sum->restarts += s->state.restarts;
	}
	pthread_mutex_unlock(&sandbox->state);
}

static json_t *time_to_json(int64_t wall_ms)
{
	char text[CLOCK_TEXT_LEN];

	clock_format(wall_ms, text);
	return json_string(text);
}

void start_command_announce(struct start_command *command)
{
	struct sandbox *sandbox = command->sandbox;
	char type[32], process[PROCESS_NAME_MAX];
	auto_free char *text = NULL;
	struct start_command_state state;
	json_t *event;

	pthread_mutex_lock(&sandbox->state);
	state = command->state;
	pthread_mutex_unlock(&sandbox->state);
	process_name_format(state.process, process);
	snprintf(type, sizeof(type), "start.%s", start_command_status_name(state.status));
	event = json_pack("{s:s, s:s, s:s, s:o, s:I, s:s?, s:o, s:o, s:o, s:o}", "sandbox",
		sandbox->id, "name", command->name, "status",
		start_command_status_name(state.status), "process",
		state.process ? json_string(process) : json_null(), "restarts",
		(json_int_t)state.restarts, "last_error", start_command_error(&state),
		"last_exit_code", state.ended_at_ms ? json_integer(state.exit_code) : json_null(),
		"last_reason",
		state.ended_at_ms ? json_string(end_reason_name(state.end.reason)) : json_null(),
		"next_try_at",
		state.next_try_at_ms ? time_to_json(store_clock_to_wall(
					       engine_store(sandbox->engine), state.next_try_at_ms))
				     : json_null(),
		"at", time_to_json(clock_wall_ms()));
	text = json_dumps(event, JSON_COMPACT);
	json_decref(event);
	if (text)
		sandbox_tell(sandbox, type, text);
}

/* --- all of a sandbox --- */

void start_command_add(struct sandbox *sandbox, struct start_command *command)
{
	pthread_mutex_lock(&sandbox->state);
	command->next = sandbox->start_commands;
	sandbox->start_commands = command;
	pthread_mutex_unlock(&sandbox->state);
}

/* Takes one off the list and gives the list's reference to the caller. The lock is held. */
static struct start_command *take(struct start_command **at, struct timer **ret_timer)
{
	struct start_command *command = *at;

	*at = command->next;
	command->is_over = true;
	*ret_timer = take_ptr(&command->timer);
	return command;
}

static bool is_wanted(const struct sandbox *sandbox, const struct start_command *command)
{
	json_t *spec;
	size_t i;

	json_array_foreach(sandbox->record.start, i, spec)
	{
		if (json_equal(spec, command->spec))
			return true;
	}
	return false;
}

/* Ends one that the record does not have any more, or any; false if there is none. life is held. */
static bool drop_one(struct sandbox *sandbox, bool is_any)
{
	struct start_command *dropped = NULL;
	struct process *process;
	struct timer *timer = NULL;

	pthread_mutex_lock(&sandbox->state);
	for (struct start_command **at = &sandbox->start_commands; *at && !dropped;) {
		if (!is_any && is_wanted(sandbox, *at))
			at = &(*at)->next;
		else
			dropped = take(at, &timer);
	}
	pthread_mutex_unlock(&sandbox->state);
	if (!dropped)
		return false;
	timer_close(timer);
	process = start_command_find_process(dropped);
	if (process)
		start_command_disown(process);
	process_unref(process);
	start_command_unref(dropped);
	return true;
}

static bool has_start_command(struct sandbox *sandbox, const json_t *spec)
{
	struct start_command *s;

	pthread_mutex_lock(&sandbox->state);
	for (s = sandbox->start_commands; s && !json_equal(s->spec, spec);)
		s = s->next;
	pthread_mutex_unlock(&sandbox->state);
	return s != NULL;
}

void start_command_apply(struct sandbox *sandbox)
{
	const json_t *specs = sandbox->record.start; /* which only a holder of life changes */
	struct err err;
	json_t *spec;
	size_t i;

	while (drop_one(sandbox, false))
		;
	if (json_array_size(specs) == 0)
		return;
	/* It goes on without egress; the next command tries to open it again. */
	if (sandbox_network_open_missing(sandbox, &err) < 0)
		log_warning("sandbox %s: %s", sandbox->id, err.message);
	json_array_foreach((json_t *)specs, i, spec)
	{
		struct start_command *command;

		if (has_start_command(sandbox, spec))
			continue;
		command = start_command_new(sandbox, spec);
		start_command_add(sandbox, start_command_ref(command));
		start_command_launch(command);
		start_command_unref(command);
	}
}

void start_command_restart(struct sandbox *sandbox)
{
	while (drop_one(sandbox, true))
		;
	start_command_apply(sandbox);
}

void start_command_resume(struct sandbox *sandbox)
{
	pthread_mutex_lock(&sandbox->state);
	for (struct start_command *s = sandbox->start_commands; s; s = s->next)
		start_command_set_timer(s);
	pthread_mutex_unlock(&sandbox->state);
}

void start_command_leave(struct sandbox *sandbox)
{
	struct start_command *command;

	do {
		struct timer *timer = NULL;

		pthread_mutex_lock(&sandbox->state);
		command = sandbox->start_commands ? take(&sandbox->start_commands, &timer) : NULL;
		pthread_mutex_unlock(&sandbox->state);
		timer_close(timer);
		start_command_unref(command);
	} while (command);
}

bool start_command_needs_row(struct sandbox *sandbox, uint32_t process)
{
	struct start_command *s;

	pthread_mutex_lock(&sandbox->state);
	for (s = sandbox->start_commands; s && s->state.process != process;)
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
	struct start_command *command = arg;
	struct process *process = start_command_find_process(command);
	uint32_t ceased;

	pthread_mutex_lock(&command->sandbox->state);
	ceased = command->ceased;
	pthread_mutex_unlock(&command->sandbox->state);
	if (process && process->record.number == ceased) {
		pthread_mutex_lock(&process->lock);
		process->record.is_ceased = true;
		pthread_mutex_unlock(&process->lock);
		process_note_change(process);
	} else if (ceased) {
		mark_row(command->sandbox, ceased);
	}
	process_unref(process);
	start_command_unref(command);
}

void start_command_cease(struct sandbox *sandbox, uint32_t process)
{
	struct start_command *found;
	struct timer *timer = NULL;
	bool waits = false;

	pthread_mutex_lock(&sandbox->state);
	for (found = sandbox->start_commands; found && found->state.process != process;)
		found = found->next;
	if (found) {
		found->ceased = process;
		waits = found->state.status == START_COMMAND_WAITING;
		start_command_ref(found);
	}
	if (waits) {
		found->state.status = START_COMMAND_KILLED;
		found->state.next_try_at_ms = 0;
		timer = take_ptr(&found->timer);
	}
	pthread_mutex_unlock(&sandbox->state);
	if (!found)
		return;
	timer_close(timer);
	if (waits)
		start_command_announce(found);
	/* There it comes after what else is known of the process. */
	db_writer_put(sandbox->engine->db_writer, write_ceased, found);
}
