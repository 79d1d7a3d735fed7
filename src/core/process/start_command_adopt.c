/* SPDX-License-Identifier: Apache-2.0 */
/* What start commands were at when the daemon before us went, from the rows of their processes. */
#include "base/clock.h"
#include "core/engine/engine.h"
#include "core/process/start_command.h"
#include "core/process/start_command_private.h"
#include "model/sandbox/start_spec.h"

#include <string.h>

/*
 * The last try of a start command since the sandbox was started; clocks may have been set back meanwhile. One
 * of the same name that was to run something else says nothing about it.
 */
struct last_try {
	const char *name;
	uint64_t digest;
	int64_t since_ms;
	struct start_command_state state;
	bool is_over; /* it has ended */
	bool is_ceased;
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
		last->state = (struct start_command_state){0};
		return;
	}
	last->is_over = record->ended_at_ms > 0;
	last->is_ceased = record->is_ceased;
	last->state = (struct start_command_state){.process = record->number,
		.tried_at_ms = record->started_at_ms,
		.restarts = record->restarts,
		.ended_at_ms = record->ended_at_ms,
		.exit_code = record->exit_code,
		.end = record->end};
}

/* It failed when nobody was there to run it again: as if that had been planned at once. */
static void plan_again(struct start_command *command)
{
	struct start_command_state *state = &command->state;
	int64_t ran_ms = state->ended_at_ms - state->tried_at_ms;
	int64_t now_ms = store_clock_ms(engine_store(command->sandbox->engine));
	int64_t since_ms = state->ended_at_ms < now_ms ? state->ended_at_ms : now_ms;

	state->status = START_COMMAND_WAITING;
	if (command->was_tried)
		state->next_try_at_ms = since_ms + (int64_t)restart_pause_ms(&command->failures,
							   ran_ms > 0 ? (uint64_t)ran_ms : 0);
}

/* What it was at when the daemon before us went, from the rows of its processes. */
static void remember(struct start_command *command, const struct last_try *last)
{
	enum restart_decision decision;

	command->state = last->state;
	command->ceased = last->is_ceased ? last->state.process : 0;
	decision = start_command_judge(command, last->state.end.reason, last->state.exit_code);
	command->was_tried = last->state.process > 0;
	command->failures = last->state.restarts;
	if (command->was_tried && !last->is_over)
		command->state.status = START_COMMAND_RUNNING;
	else if (!command->was_tried || decision == RESTART_AGAIN)
		plan_again(command);
	else
		command->state.status =
			decision == RESTART_DONE ? START_COMMAND_EXITED : START_COMMAND_KILLED;
}

static void join_process(struct start_command *command)
{
	struct sandbox *sandbox = command->sandbox;

	pthread_mutex_lock(&sandbox->state);
	for (struct process *p = sandbox->processes; p; p = p->next) {
		if (p->record.number == command->state.process)
			start_command_tie(command, p);
	}
	pthread_mutex_unlock(&sandbox->state);
}

/* The daemon before us wrote down that others are to run, and did not come to end these. */
static void disown_strays(struct sandbox *sandbox)
{
	pthread_mutex_lock(&sandbox->state);
	for (struct process *p = sandbox->processes; p; p = p->next) {
		if (p->record.start[0] && !p->start_command)
			start_command_disown(p);
	}
	pthread_mutex_unlock(&sandbox->state);
}

int start_command_adopt(struct sandbox *sandbox, struct err *err)
{
	json_t *spec;
	size_t i;

	json_array_foreach(sandbox->record.start, i, spec)
	{
		struct start_command *command = start_command_new(sandbox, spec);
		struct last_try last = {.name = command->name,
			.digest = start_spec_digest(spec),
			.since_ms = sandbox->record.started_at_ms};
		int r = store_process_list(
			engine_store(sandbox->engine), sandbox->id, false, look_at_row, &last, err);

		if (r < 0) {
			start_command_unref(command);
			return r;
		}
		remember(command, &last);
		join_process(command);
		start_command_add(sandbox, command);
	}
	disown_strays(sandbox);
	return 0;
}
