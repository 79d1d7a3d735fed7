/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executions that are known before they can begin, because their client does not wait and what they need is still to come.
 * They have a row and no sandbox. What brings them there is their caller's, as is the wish to begin them.
 */
#include "base/clock.h"
#include "core/execution/execution.h"
#include "core/execution/execution_state.h"
#include "core/execution/outcome.h"
#include "model/access/owner.h"

#include <ctype.h>

#define QUEUED_MAX	 64
#define QUEUED_OWNER_MAX 16

static int check_room(struct executions *executions, const struct owner *owner, struct err *err)
{
	unsigned all = 0, own = 0;

	pthread_mutex_lock(&executions->lock);
	for (struct execution *at = executions->running; at; at = at->next) {
		bool is_queued = at->is_queued && at->record.status == EXECUTION_QUEUED;

		all += is_queued;
		own += is_queued && owner_equals(&at->record.owner, owner);
	}
	pthread_mutex_unlock(&executions->lock);
	if (all < QUEUED_MAX && own < QUEUED_OWNER_MAX)
		return 0;
	return err_explain(err, ERR_RATE, "too_many_queued",
		"wait until some of them run, or send it without `async`, which waits",
		"%u executions wait for their images and packages, of which an owner may have %d",
		own, QUEUED_OWNER_MAX);
}

int execution_queue(struct executions *executions, const struct owner *owner,
	const struct execution_spec *spec, struct execution **ret_execution, struct err *err)
{
	struct execution *execution;
	struct execution_record record;
	int r = check_room(executions, owner, err);

	if (r < 0)
		return r;
	execution_describe(executions, spec, &record);
	record.owner = *owner;
	record.status = EXECUTION_QUEUED;
	execution = execution_make(executions, NULL, &record);
	execution->is_queued = execution->is_told = true;
	execution->times.asked_us = spec->asked_us ? spec->asked_us : clock_steady_us();
	r = execution_write(execution, err);
	if (r < 0) {
		execution_unref(execution);
		return r;
	}
	execution_list(execution);
	*ret_execution = execution;
	return 0;
}

/* The code of an error as the name of a type: dependencies_failed becomes DependenciesFailed. */
static void name_type(const char *code, char *type, size_t size)
{
	bool is_first = true;
	size_t len = 0;

	for (; *code && len + 1 < size; code++) {
		if (*code != '_')
			type[len++] = (char)(is_first ? toupper((unsigned char)*code) : *code);
		is_first = *code == '_';
	}
	type[len] = '\0';
}

/* As that of any other, and its own error. */
static json_t *make_outcome(const struct execution *execution, const struct err *why)
{
	const struct process_end none = {
		.outcome = PROCESS_REFUSED, .how = {.reason = why ? END_EXITED : END_KILLED}};
	struct outcome_input input = {.record = &execution->record,
		.language = execution->language,
		.end = &none,
		.times = execution->times,
		.artifacts = json_array()};
	enum execution_status ignored;
	json_t *outcome;
	char type[64];

	input.times.ended_us = clock_steady_us();
	outcome = outcome_make(&input, &ignored);
	json_object_set_new(outcome, "exit_code", json_null());
	json_object_set_new(outcome, "termination", json_null());
	if (!why)
		return outcome;
	name_type(why->code[0] ? why->code : "not_started", type, sizeof(type));
	json_object_set_new(outcome, "error",
		json_pack(
			"{s:s, s:s, s:s}", "type", type, "message", why->message, "traceback", ""));
	return outcome;
}

void execution_refuse(struct execution *execution, const struct err *why)
{
	bool is_first;

	pthread_mutex_lock(&execution->lock);
	is_first = !execution->is_ending;
	execution->is_ending = true;
	if (execution->record.is_cancelling)
		why = NULL;
	pthread_mutex_unlock(&execution->lock);
	if (!is_first)
		return;
	execution_tell_outcome(execution, why ? EXECUTION_FAILED : EXECUTION_CANCELLED,
		make_outcome(execution, why));
	execution_conclude(execution);
}
