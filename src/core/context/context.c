/* SPDX-License-Identifier: Apache-2.0 */
#include "core/context/context.h"

#include "base/clock.h"
#include "base/log.h"
#include "core/context/context_state.h"
#include "core/engine/db_writer.h"
#include "core/engine/sandbox_state.h"
#include "store/sandbox/store_context.h"

#include <stdio.h>
#include <string.h>

#define ROWS_MAX (2 * CONTEXT_MAX) /* of a sandbox; the oldest that ended go first */

/* --- life --- */

struct contexts *contexts_new(struct store *store)
{
	struct contexts *contexts = mem_new(sizeof(*contexts));

	contexts->store = store;
	pthread_mutex_init(&contexts->lock, NULL);
	return contexts;
}

struct context *context_ref(struct context *context)
{
	atomic_fetch_add(&context->refs, 1);
	return context;
}

void context_unref(struct context *context)
{
	if (!context || atomic_fetch_sub(&context->refs, 1) > 1)
		return;
	process_unref(context->process);
	output_log_unref(context->log);
	context_record_fini(&context->record);
	sandbox_unref(context->sandbox);
	pthread_cond_destroy(&context->changed);
	pthread_mutex_destroy(&context->lock);
	pthread_mutex_destroy(&context->starting);
	free(context);
}

void context_release(void *arg)
{
	context_unref(arg);
}

/* Takes over the record. */
struct context *context_make(
	struct contexts *contexts, struct sandbox *sandbox, const struct context_record *record)
{
	struct context *context = mem_new(sizeof(*context));
	pthread_condattr_t attr;

	context->refs = 1;
	context->contexts = contexts;
	context->sandbox = sandbox_ref(sandbox);
	context->language = language_find(record->language);
	context->record = *record;
	context->last = &context->waiting;
	pthread_mutex_init(&context->starting, NULL);
	pthread_mutex_init(&context->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&context->changed, &attr);
	pthread_condattr_destroy(&attr);
	return context;
}

const char *context_id(const struct context *context)
{
	return context->record.id;
}

const char *context_language(const struct context *context)
{
	return context->record.language;
}

static struct db_writer *writer_of(const struct context *context)
{
	return context->sandbox->engine->db_writer;
}

static void write_row(void *arg)
{
	struct context *context = arg;
	struct context_record record;
	struct err err;

	pthread_mutex_lock(&context->lock);
	context_record_copy(&record, &context->record);
	pthread_mutex_unlock(&context->lock);
	if (store_context_update(context->contexts->store, &record, &err) < 0)
		log_error("context %s: %s", record.id, err.message);
	context_record_fini(&record);
	context_unref(context);
}

void context_write_later(struct context *context)
{
	db_writer_put(writer_of(context), write_row, context_ref(context));
}

/* --- the list --- */

/* The one of that id that takes executions: a reference, or NULL. The handle is compared, as ids of sandboxes may be
 * given again. */
static struct context *find_live(
	struct contexts *contexts, const struct sandbox *sandbox, const char *id)
{
	struct context *found;

	for (found = contexts->live; found; found = found->next) {
		if (found->sandbox == sandbox && strcmp(found->record.id, id) == 0)
			return context_ref(found);
	}
	return NULL;
}

void context_unlist(struct context *context)
{
	struct contexts *contexts = context->contexts;
	bool found = false;

	pthread_mutex_lock(&contexts->lock);
	for (struct context **at = &contexts->live; *at; at = &(*at)->next) {
		if (*at == context) {
			*at = context->next;
			found = true;
			break;
		}
	}
	pthread_mutex_unlock(&contexts->lock);
	if (found)
		context_unref(context);
}

static int refuse_more(struct err *err)
{
	return err_explain(err, ERR_RATE, "too_many_contexts",
		"delete contexts that you do not need", "the sandbox has %d contexts already",
		CONTEXT_MAX);
}

/* Lists it, unless the sandbox has as many as it may. */
int context_list(struct context *context, struct err *err)
{
	struct contexts *contexts = context->contexts;
	unsigned count = 0;
	bool is_there = false;

	pthread_mutex_lock(&contexts->lock);
	for (struct context *one = contexts->live; one; one = one->next) {
		count += one->sandbox == context->sandbox;
		is_there |= one->sandbox == context->sandbox &&
			    strcmp(one->record.id, context->record.id) == 0;
	}
	if (count < CONTEXT_MAX && !is_there) {
		context->next = contexts->live;
		contexts->live = context_ref(context);
	}
	pthread_mutex_unlock(&contexts->lock);
	if (is_there)
		return err_explain(err, ERR_CONFLICT, "context_restarting", "try again",
			"context %s is being restarted", context->record.id);
	return count < CONTEXT_MAX ? 0 : refuse_more(err);
}
/* --- verbs --- */

/* Of those that ended only the last are remembered. */
static void forget_old(struct contexts *contexts, const char *sandbox_id)
{
	struct context_record *rows = mem_new((ROWS_MAX + 1) * sizeof(*rows));
	struct err err;
	int count = store_context_list(contexts->store, sandbox_id, "", rows, ROWS_MAX + 1, &err);

	for (int i = 0, left = count; i < count; i++) {
		if (left >= ROWS_MAX && rows[i].ended_at_ms > 0 &&
			store_context_delete(contexts->store, sandbox_id, rows[i].id, &err) == 0)
			left--;
		context_record_fini(&rows[i]);
	}
	free(rows);
}

static int check_language(const char *name, struct err *err)
{
	const struct language *language = language_find(name);

	if (language && language->has_contexts)
		return 0;
	return err_explain(err, ERR_INVALID, "invalid_field",
		"a shell that keeps its state is a terminal: \"pty\": true with exec",
		"field language must be python, javascript or typescript: %s has no contexts",
		name);
}

static int add(struct context *context, struct err *err)
{
	struct store *store = context->contexts->store;
	struct err ignored;
	int r = context_enliven(context, err);

	if (r < 0)
		return r;
	r = store_context_insert(store, &context->record, err);
	if (r == 0) {
		pthread_mutex_lock(&context->starting);
		r = context_start(context, err);
		pthread_mutex_unlock(&context->starting);
	}
	if (r < 0) {
		context_retire(context);
		(void)!store_context_delete(
			store, context->record.sandbox_id, context->record.id, &ignored);
	}
	return r;
}

int context_create(struct contexts *contexts, struct sandbox *sandbox,
	const struct context_spec *spec, struct context **ret_context, struct err *err)
{
	struct context_record record = {.idle_timeout_s = spec->idle_timeout_s,
		.created_at_ms = store_clock_ms(contexts->store)};
	struct context *context;
	int r = check_language(spec->language, err);

	if (r < 0)
		return r;
	record.used_at_ms = record.created_at_ms;
	id_new(record.created_at_ms, record.id);
	snprintf(record.sandbox_id, sizeof(record.sandbox_id), "%s", sandbox_id(sandbox));
	snprintf(record.language, sizeof(record.language), "%s", spec->language);
	snprintf(record.cwd, sizeof(record.cwd), "%s", spec->cwd ? spec->cwd : "");
	record.env = text_map_to_json(spec->env);
	forget_old(contexts, record.sandbox_id);
	context = context_make(contexts, sandbox, &record);
	r = add(context, err);
	if (r < 0)
		context_unref(context);
	else
		*ret_context = context;
	return r;
}

int context_get(struct contexts *contexts, struct sandbox *sandbox, const char *id,
	struct context **ret_context, struct err *err)
{
	struct context_record record;
	struct context *found;
	int r;

	pthread_mutex_lock(&contexts->lock);
	found = find_live(contexts, sandbox, id);
	pthread_mutex_unlock(&contexts->lock);
	if (!found) {
		r = store_context_get(contexts->store, sandbox_id(sandbox), id, &record, err);
		if (r < 0)
			return r;
		found = context_make(contexts, sandbox, &record);
	}
	*ret_context = found;
	return 0;
}

void context_read(struct context *context, struct context_view *ret_view)
{
	pthread_mutex_lock(&context->lock);
	*ret_view = (struct context_view){.waiting = context->waiting_count};
	context_record_copy(&ret_view->record, &context->record);
	if (context->current)
		memcpy(ret_view->execution, context->current->record.id, ID_LEN);
	ret_view->status = !context->is_live			    ? "ended"
			   : context->current			    ? "busy"
			   : context->process && !context->is_ready ? "starting"
								    : "idle";
	pthread_mutex_unlock(&context->lock);
}

int contexts_list(struct contexts *contexts, struct sandbox *sandbox,
	void (*each)(const struct context_view *view, void *arg), void *arg, struct err *err)
{
	struct context_record *rows = mem_new(2 * ROWS_MAX * sizeof(*rows));
	int count = store_context_list(
		contexts->store, sandbox_id(sandbox), "", rows, 2 * ROWS_MAX, err);

	for (int i = 0; i < count; i++) {
		struct context_view view = {.status = "ended"};
		struct context *live;

		pthread_mutex_lock(&contexts->lock);
		live = find_live(contexts, sandbox, rows[i].id);
		pthread_mutex_unlock(&contexts->lock);
		if (live)
			context_read(live, &view);
		else
			context_record_copy(&view.record, &rows[i]);
		each(&view, arg);
		context_record_fini(&view.record);
		context_record_fini(&rows[i]);
		context_unref(live);
	}
	free(rows);
	return count < 0 ? count : 0;
}

int context_explain_ended(struct context *context, struct err *err)
{
	return err_explain(err, ERR_CONFLICT, "context_ended",
		"restart it with POST .../restart; its state is lost", "context %s has ended: %s",
		context->record.id,
		context->record.reason[0] ? context->record.reason : "its sandbox did");
}

int context_interrupt(struct context *context, struct err *err)
{
	uint64_t until_ms = clock_steady_ms() + CONTEXT_INTERRUPT_MS + CONTEXT_KILL_MS;
	struct execution *execution;
	int r = 0;

	pthread_mutex_lock(&context->lock);
	execution = context->current ? execution_ref(context->current) : NULL;
	if (!context->is_live)
		r = context_explain_ended(context, err);
	if (execution) {
		pthread_mutex_lock(&execution->lock);
		execution->record.is_cancelling = true;
		pthread_mutex_unlock(&execution->lock);
		context_interrupt_now(context);
	}
	while (execution && context->current == execution && context_wait_until(context, until_ms))
		;
	pthread_mutex_unlock(&context->lock);
	execution_unref(execution);
	return r;
}

int context_restart(struct context *context, struct err *err)
{
	bool is_live;
	int r = 0;

	pthread_mutex_lock(&context->starting);
	context_kill_process(context);
	pthread_mutex_lock(&context->lock);
	is_live = context->is_live;
	pthread_mutex_unlock(&context->lock);
	if (!is_live)
		r = context_enliven(context, err);
	if (r == 0)
		r = context_start(context, err);
	pthread_mutex_unlock(&context->starting);
	return r;
}

int context_delete(struct context *context, struct err *err)
{
	context_retire(context);
	context_kill_process(context);
	return store_context_delete(
		context->contexts->store, context->record.sandbox_id, context->record.id, err);
}

/* --- the end of the daemon --- */

void contexts_leave(struct contexts *contexts)
{
	if (!contexts)
		return;
	atomic_store(&contexts->is_leaving, true);
	pthread_mutex_lock(&contexts->lock);
	for (struct context *context = contexts->live; context; context = context->next) {
		pthread_mutex_lock(&context->lock);
		timer_close(take_ptr(&context->timer));
		pthread_mutex_unlock(&context->lock);
	}
	pthread_mutex_unlock(&contexts->lock);
}

void contexts_free(struct contexts *contexts)
{
	struct context *context;

	if (!contexts)
		return;
	while ((context = contexts->live)) {
		contexts->live = context->next;
		execution_unref(take_ptr(&context->current));
		for (struct execution *one = context_take_waiting(context); one;) {
			struct execution *next = take_ptr(&one->after);

			execution_unref(one);
			one = next;
		}
		context_unref(context);
	}
	pthread_mutex_destroy(&contexts->lock);
	free(contexts);
}
