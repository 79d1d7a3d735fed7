/* SPDX-License-Identifier: Apache-2.0 */
/* What start commands were at when the daemon before us went, from the rows of their processes. */
#include "base/clock.h"
#include "core/starter_private.h"
#include "model/start_spec.h"

#include <string.h>

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
		last->state = (struct starter_state){0};
		return;
	}
	last->is_over = record->ended_at_ms > 0;
	last->is_ceased = record->is_ceased;
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
	enum restart_verdict verdict;

	starter->state = last->state;
	starter->ceased = last->is_ceased ? last->state.process : 0;
	verdict = starter_judge(starter, last->state.end.reason, last->state.exit_code);
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
			starter_disown(p);
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
		starter_add(sandbox, starter);
	}
	disown_strays(sandbox);
	return 0;
}
