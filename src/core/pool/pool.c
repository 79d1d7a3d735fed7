/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread of the pools works in rounds. Each reads from the database which sandboxes are the pools', so nothing is
 * lost or made twice by a number that has drifted; what is in memory is which of them have a handle and may be taken.
 * A sandbox is removed only after its row says that it is being drained, which no claim accepts: a claim that comes
 * first has made it somebody's, and then it is left alone.
 */
#include "core/pool/pool.h"

#include "base/clock.h"
#include "base/fail_point.h"
#include "base/log.h"
#include "core/engine/event_bus.h"
#include "core/pool/pool_private.h"
#include "core/sandbox/sandbox.h"
#include "model/access/owner.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define ROUND_MS     1000 /* while there is nothing to do */
#define SOON_MS	     50	  /* while something is being made */
#define RETRY_MS     1000 /* after a failure; twice as long after each more, up to the next */
#define RETRY_MAX_MS 300000
#define AGAIN_MS     10000 /* between two times that one that waits is asked whether it is ready */
#define RELAPSE_MS   10000 /* until one that was ready, and is not any more, is given up */

/* --- events --- */

/* Tells whoever has the template. The pools that serve everybody have no owner to be told. */
static void tell(
	struct engine *engine, const struct pool_plan *plan, const char *type, const char *why)
{
	char now[CLOCK_TEXT_LEN];
	json_auto_t *event = NULL;
	auto_free char *text = NULL;

	if (!plan->owner.organization[0])
		return;
	clock_format(clock_wall_ms(), now);
	event = json_pack("{s:s, s:i, s:s*, s:s}", "template", plan->template_name, "size",
		(int)plan->size, "error", why, "at", now);
	text = event ? json_dumps(event, JSON_COMPACT) : NULL;
	if (text)
		event_bus_publish(
			engine->config.bus, &plan->owner, plan->template_name, type, text);
}

/* --- plans --- */

static const struct pool_state *same_pool(
	const struct pool_state *states, size_t count, const struct pool_plan *plan)
{
	for (size_t i = 0; i < count; i++) {
		if (owner_equals(&states[i].plan.owner, &plan->owner) &&
			strcmp(states[i].plan.template_name, plan->template_name) == 0)
			return &states[i];
	}
	return NULL;
}

/* Takes the plans over; a pool that was there before keeps its numbers. *ret_cut are those, *ret_cut_count of them, that have
 * less room from now on than they ask for. */
static void set_plans(struct pools *pools, struct pool_plan *plans, size_t count,
	struct pool_plan **ret_cut, size_t *ret_cut_count)
{
	struct pool_plan *cut = mem_new((count + 1) * sizeof(*cut));
	struct pool_state *states = mem_new((count + 1) * sizeof(*states)), *before;

	pthread_mutex_lock(&pools->lock);
	before = pools->states;
	for (size_t i = 0; i < count; i++) {
		const struct pool_state *old = same_pool(before, pools->state_count, &plans[i]);

		if (old) {
			bool is_other = strcmp(old->plan.stamp, plans[i].stamp) != 0;

			states[i] = *old;
			/* Another version may do better. */
			if (is_other)
				states[i].failures = states[i].retry_ms = states[i].error[0] = 0;
		}
		if (plans[i].size < plans[i].asked && (!old || old->plan.size != plans[i].size ||
							      old->plan.asked != plans[i].asked))
			cut[(*ret_cut_count)++] = plans[i];
		states[i].plan = plans[i];
	}
	*ret_cut = cut;
	pools->states = states;
	pools->state_count = count;
	pthread_mutex_unlock(&pools->lock);
	free(before);
	free(plans);
}

int pools_read_plans(struct engine *engine, struct err *err)
{
	struct pools *pools = engine->pools;
	auto_free struct pool_plan *cut = NULL;
	struct pool_plan *plans;
	size_t count, cut_count = 0;
	char why[POOL_PLAN_TEXT];
	int r;

	pthread_mutex_lock(&pools->planning);
	r = pool_plan_read(engine, &plans, &count, err);
	if (r == 0)
		set_plans(pools, plans, count, &cut, &cut_count);
	pthread_mutex_unlock(&pools->planning);
	for (size_t i = 0; i < cut_count; i++) {
		pool_plan_explain(engine, &cut[i], why);
		tell(engine, &cut[i], "pool.failed", why);
	}
	return r;
}

/* --- what there is, and what of it is of use --- */

static void collect(const struct pooled_record *record, void *arg)
{
	struct pool_rows *rows = arg;

	if (rows->count == rows->cap) {
		rows->cap = rows->cap ? rows->cap * 2 : 64;
		rows->rows = realloc(rows->rows, rows->cap * sizeof(*rows->rows));
		if (!rows->rows)
			abort();
	}
	rows->rows[rows->count++] = *record;
}

static bool runs(struct sandbox *sandbox)
{
	bool is;

	pthread_mutex_lock(&sandbox->state);
	is = sandbox->record.status == SANDBOX_RUNNING && sandbox->link && !sandbox->ending &&
	     !sandbox->gone;
	pthread_mutex_unlock(&sandbox->state);
	return is;
}

static bool has_row(const struct pool_rows *rows, const char *id)
{
	for (size_t i = 0; i < rows->count; i++) {
		if (strcmp(rows->rows[i].id, id) == 0)
			return true;
	}
	return false;
}

/*
 * Takes off the list what no row names any more: it was given away while the list was being read, so that handle_of put
 * it there again. Only this thread adds rows, so an entry that comes meanwhile has one.
 */
static void drop_strangers(struct pools *pools, const struct pool_rows *rows)
{
	struct entry *strangers = NULL, *entry;

	pthread_mutex_lock(&pools->lock);
	for (struct entry **at = &pools->entries; (entry = *at);) {
		if (has_row(rows, entry->sandbox->id)) {
			at = &entry->next;
			continue;
		}
		*at = entry->next;
		entry->next = strangers;
		strangers = entry;
	}
	pthread_mutex_unlock(&pools->lock);
	while ((entry = strangers)) {
		strangers = entry->next;
		entry_free(entry);
	}
}

/* A reference to its handle if it is on the list; what is on disk alone is put there. */
static struct sandbox *handle_of(struct engine *engine, const struct pooled_record *row)
{
	struct pools *pools = engine->pools;
	struct sandbox *sandbox = NULL;
	struct err ignored;
	struct entry **at;

	pthread_mutex_lock(&pools->lock);
	at = pool_list_find(pools, row->id);
	if (at)
		sandbox = sandbox_ref((*at)->sandbox);
	pthread_mutex_unlock(&pools->lock);
	if (sandbox || row->state != POOLED_READY ||
		sandbox_get(engine, NULL, row->id, &sandbox, &ignored) < 0)
		return sandbox;
	/* A daemon before us made it: whether it is still ready is being asked (ready_check.h). Or it was given away just
	 * now: no claim gets it then, and the next round drops it. */
	pool_list_add(pools, row->stamp, sandbox_ref(sandbox), NULL, false);
	return sandbox;
}

/* Removes one for good, unless it was given away. */
static void drain(struct engine *engine, const char *id)
{
	struct store *store = engine->config.store;
	struct err err;
	int r = store_pool_drain(store, id, &err);

	fail_point("pool.drained");
	pool_list_drop(engine->pools, id);
	if (r == 1)
		return;
	if (r == 0)
		r = sandbox_purge(engine, NULL, id, &err);
	if (r == 0 || r == -ENOENT)
		r = store_pool_delete(store, id, &err);
	if (r < 0)
		log_error("sandbox %s of a pool is not removed: %s", id, err.message);
}

void pool_note_failure(struct engine *engine, const char *stamp, const char *why)
{
	struct pools *pools = engine->pools;
	struct pool_state *state;
	struct pool_plan plan = {0};
	uint64_t pause_ms = RETRY_MS;

	log_warning("a sandbox for a pool could not be made: %s", why);
	pthread_mutex_lock(&pools->lock);
	state = pool_list_state(pools, stamp);
	if (state) {
		for (unsigned i = 0; i < state->failures && pause_ms < RETRY_MAX_MS; i++)
			pause_ms *= 2;
		state->failures++;
		state->retry_ms = clock_steady_ms() + pause_ms;
		snprintf(state->error, sizeof(state->error), "%s", why);
		plan = state->plan;
	}
	pthread_mutex_unlock(&pools->lock);
	tell(engine, &plan, "pool.failed", why);
}

static void mark_ready(
	struct engine *engine, const char *id, const char *stamp, const struct pool_mark *mark)
{
	struct pools *pools = engine->pools;
	struct pool_plan plan = {0};
	struct pool_state *state;
	struct entry **at;

	pthread_mutex_lock(&pools->lock);
	at = pool_list_find(pools, id);
	if (at) {
		(*at)->is_ready = (*at)->was_ready = true;
		(*at)->mark = *mark;
		(*at)->since_ms = (*at)->asked_ms = clock_steady_ms();
	}
	state = pool_list_state(pools, stamp);
	if (state) {
		state->failures = state->retry_ms = state->error[0] = 0;
		plan = state->plan;
	}
	pthread_mutex_unlock(&pools->lock);
	tell(engine, &plan, "pool.ready", NULL);
}

/* A copy of its place on the list; false if it has none. */
static bool copy_entry(struct pools *pools, const char *id, struct entry *ret_entry)
{
	struct entry **at;

	pthread_mutex_lock(&pools->lock);
	at = pool_list_find(pools, id);
	if (at)
		*ret_entry = **at;
	pthread_mutex_unlock(&pools->lock);
	return at;
}

/* If it is still on the list. */
static void note_look(struct pools *pools, const char *id, const struct entry *seen)
{
	struct entry **at;

	pthread_mutex_lock(&pools->lock);
	at = pool_list_find(pools, id);
	if (at) {
		(*at)->is_ready = seen->is_ready;
		(*at)->mark = seen->mark;
		(*at)->since_ms = seen->since_ms;
		(*at)->asked_ms = seen->asked_ms;
	}
	pthread_mutex_unlock(&pools->lock);
}

static void ask_again(struct sandbox *sandbox, bool is_doubtful)
{
	pthread_mutex_lock(&sandbox->life);
	if (runs(sandbox))
		ready_check_again(sandbox, is_doubtful);
	pthread_mutex_unlock(&sandbox->life);
}

/* Whether one that was ready stays: what it ran may have ended, and a server may answer no more. */
static bool look_again(struct engine *engine, const struct pooled_record *row,
	struct sandbox *sandbox, struct entry *seen)
{
	uint64_t now_ms = clock_steady_ms();
	bool is_to_be_asked;
	enum pool_verdict verdict = pool_ready_judge(sandbox, &seen->mark, &is_to_be_asked);

	seen->is_ready = verdict == POOL_WELL;
	if (verdict == POOL_ILL ||
		(verdict == POOL_DOUBTFUL && now_ms - seen->since_ms > RELAPSE_MS)) {
		pool_note_failure(engine, row->stamp, "it was ready, and is not any more");
		return false;
	}
	if (verdict == POOL_WELL)
		seen->since_ms = now_ms;
	if (is_to_be_asked || (seen->is_ready && now_ms - seen->asked_ms > AGAIN_MS)) {
		seen->asked_ms = now_ms;
		ask_again(sandbox, is_to_be_asked);
	}
	note_look(engine->pools, row->id, seen);
	return true;
}

/* Whether it stays; and if its ready check has passed meanwhile, it may be given away. */
static bool look_after(struct engine *engine, const struct pooled_record *row)
{
	struct pools *pools = engine->pools;
	auto_(sandbox_unrefp) struct sandbox *sandbox = handle_of(engine, row);
	struct pool_mark mark;
	struct entry seen;
	struct err err;

	if (!sandbox || !runs(sandbox)) {
		if (sandbox && row->state == POOLED_MAKING)
			pool_note_failure(engine, row->stamp, "it ended before it was ready");
		return false;
	}
	if (!copy_entry(pools, row->id, &seen))
		return true;
	if (seen.was_ready)
		return look_again(engine, row, sandbox, &seen);
	switch (pool_ready_state(sandbox, &mark)) {
	case READY_NOT_YET:
		return true;
	case READY_GIVEN_UP:
		pool_note_failure(engine, row->stamp, "it did not become ready in time");
		return false;
	default:
		break;
	}
	if (row->state == POOLED_MAKING &&
		store_pool_note_ready(engine->config.store, row->id, &err) < 0) {
		log_error("sandbox %s of a pool: %s", row->id, err.message);
		return true;
	}
	fail_point("pool.ready_written");
	mark_ready(engine, row->id, row->stamp, &mark);
	return true;
}

static unsigned count_before(const struct pool_rows *rows, size_t end)
{
	unsigned count = 0;

	for (size_t i = 0; i < end; i++)
		count += rows->rows[i].id[0] &&
			 strcmp(rows->rows[i].stamp, rows->rows[end].stamp) == 0;
	return count;
}

static void set_draining(struct pools *pools, unsigned count)
{
	pthread_mutex_lock(&pools->lock);
	pools->draining = count;
	pthread_mutex_unlock(&pools->lock);
}

/* How many of those that are of no use go now: so that requests have the processors between them one, and all where memory
 * is short. */
static unsigned count_now(struct engine *engine, unsigned useless)
{
	struct pools *pools = engine->pools;
	bool rests;

	if (useless == 0 || pools->sheds)
		return useless;
	pthread_mutex_lock(&pools->lock);
	rests = pool_must_rest(engine, clock_steady_ms());
	pthread_mutex_unlock(&pools->lock);
	return rests ? 0 : 1;
}

/* Removes what is of no use: of the wrong stamp, too many, or ended. What stays has its id in the list then. How many are
 * left. */
static unsigned sort_out(struct engine *engine, struct pool_rows *rows)
{
	char(*useless)[ID_LEN + 1] = mem_new((rows->count + 1) * sizeof(*useless));
	uint64_t begun_ms;
	unsigned count = 0, now;

	for (size_t i = 0; i < rows->count; i++) {
		struct pooled_record *row = &rows->rows[i];

		if (count_before(rows, i) < pool_list_size(engine->pools, row->stamp) &&
			row->state != POOLED_DRAINING && look_after(engine, row))
			continue;
		memcpy(useless[count++], row->id, sizeof(*useless));
		row->id[0] = '\0';
	}
	now = count_now(engine, count);
	begun_ms = clock_steady_ms();
	for (unsigned i = 0; i < now; i++) {
		set_draining(engine->pools, count - i);
		drain(engine, useless[i]);
	}
	if (now > 0)
		pool_note_work(engine->pools, begun_ms);
	set_draining(engine->pools, count - now);
	free(useless);
	return count - now;
}

/* --- rounds --- */

/* How long until the next. */
static unsigned make_round(struct engine *engine)
{
	struct pool_rows rows = {0};
	enum pool_next next = POOL_NOTHING;
	struct err err;
	int r = pools_read_plans(engine, &err);

	if (r == 0)
		r = store_pool_list(engine->config.store, collect, &rows, &err);
	if (r == 0) {
		drop_strangers(engine->pools, &rows);
		next = sort_out(engine, &rows) > 0 ? POOL_LATER : pool_fill(engine, &rows);
	} else {
		log_error("pools: %s", err.message);
	}
	free(rows.rows);
	return next == POOL_NOTHING ? ROUND_MS : SOON_MS;
}

void *pools_run(void *arg)
{
	struct engine *engine = arg;
	unsigned pause_ms = 0;

	pthread_setname_np(pthread_self(), "pool");
	while (pool_list_await(engine->pools, pause_ms))
		pause_ms = make_round(engine);
	return NULL;
}
