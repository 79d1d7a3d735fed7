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
#include "core/engine/disk_reserve.h"
#include "core/engine/event_bus.h"
#include "core/engine/host_memory.h"
#include "core/engine/sandbox_state.h"
#include "core/process/ready_check.h"
#include "core/sandbox/member.h"
#include "core/sandbox/sandbox.h"
#include "core/sandbox/sandbox_request.h"
#include "core/template/templates.h"
#include "model/access/owner.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define ROUND_MS     1000 /* while there is nothing to do */
#define SOON_MS	     50	  /* while something is being made */
#define QUIET_MS     250  /* without a claim, before one is made; but */
#define PATIENCE_MS  1000 /* one in so long is made in any case */
#define REST_MS	     50	  /* between two that are made; and three times what the last took */
#define WARMING_MAX  2	  /* at a time */
#define RETRY_MS     1000 /* after a failure; twice as long after each more, up to the next */
#define RETRY_MAX_MS 300000

struct entry {
	struct entry *next;
	struct sandbox *sandbox;
	char stamp[STORE_POOL_STAMP_LEN + 1];
	bool is_ready;
};

struct pools {
	pthread_mutex_t lock; /* a leaf */
	pthread_cond_t changed;
	struct entry *entries;
	struct pool_state *states; /* of the plans, in their order */
	size_t state_count;
	unsigned draining;
	const char *held_because;
	uint64_t claimed_ms, filled_ms, fill_took_ms;
	bool is_stopping, is_due, sheds;
};

struct pools *pools_new(void)
{
	struct pools *pools = mem_new(sizeof(*pools));
	pthread_condattr_t attr;

	pthread_mutex_init(&pools->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&pools->changed, &attr);
	pthread_condattr_destroy(&attr);
	return pools;
}

static void entry_free(struct entry *entry)
{
	if (!entry)
		return;
	sandbox_unref(entry->sandbox);
	free(entry);
}

void pools_let_go(struct pools *pools)
{
	struct entry *entry;

	do {
		pthread_mutex_lock(&pools->lock);
		entry = pools->entries;
		if (entry)
			pools->entries = entry->next;
		pthread_mutex_unlock(&pools->lock);
		entry_free(entry);
	} while (entry);
}

void pools_free(struct pools *pools)
{
	if (!pools)
		return;
	pools_let_go(pools);
	free(pools->states);
	pthread_mutex_destroy(&pools->lock);
	pthread_cond_destroy(&pools->changed);
	free(pools);
}

void pools_stop(struct pools *pools)
{
	pthread_mutex_lock(&pools->lock);
	pools->is_stopping = true;
	pthread_cond_broadcast(&pools->changed);
	pthread_mutex_unlock(&pools->lock);
}

/* --- what is in memory --- */

static struct pool_state *state_of(const struct pools *pools, const char *stamp)
{
	for (size_t i = 0; i < pools->state_count; i++) {
		if (strcmp(pools->states[i].plan.stamp, stamp) == 0)
			return &pools->states[i];
	}
	return NULL;
}

static struct entry **find(struct pools *pools, const char *id)
{
	for (struct entry **at = &pools->entries; *at; at = &(*at)->next) {
		if (strcmp((*at)->sandbox->id, id) == 0)
			return at;
	}
	return NULL;
}

/* Takes the reference over. */
static void add(struct pools *pools, const char *stamp, struct sandbox *sandbox, bool is_ready)
{
	struct entry *entry = mem_new(sizeof(*entry));

	entry->sandbox = sandbox;
	entry->is_ready = is_ready;
	memcpy(entry->stamp, stamp, sizeof(entry->stamp));
	pthread_mutex_lock(&pools->lock);
	entry->next = pools->entries;
	pools->entries = entry;
	pthread_mutex_unlock(&pools->lock);
}

static void drop(struct pools *pools, const char *id)
{
	struct entry **at, *entry = NULL;

	pthread_mutex_lock(&pools->lock);
	at = find(pools, id);
	if (at) {
		entry = *at;
		*at = entry->next;
	}
	pthread_mutex_unlock(&pools->lock);
	entry_free(entry);
}

bool pools_are_there(struct pools *pools)
{
	bool are;

	pthread_mutex_lock(&pools->lock);
	are = pools->state_count > 0;
	pthread_mutex_unlock(&pools->lock);
	return are;
}

struct sandbox *pools_take(struct pools *pools, const char *stamp, bool *ret_is_pooled)
{
	struct sandbox *sandbox = NULL;

	pthread_mutex_lock(&pools->lock);
	*ret_is_pooled = state_of(pools, stamp);
	for (struct entry **at = &pools->entries; *ret_is_pooled && *at; at = &(*at)->next) {
		struct entry *entry = *at;

		if (entry->is_ready && strcmp(entry->stamp, stamp) == 0) {
			*at = entry->next;
			sandbox = take_ptr(&entry->sandbox);
			free(entry);
			break;
		}
	}
	pthread_mutex_unlock(&pools->lock);
	return sandbox;
}

/* The thread of the pools may have missed it meanwhile and put it on the list by itself. */
void pools_put_back(struct pools *pools, const char *stamp, struct sandbox *sandbox)
{
	drop(pools, sandbox->id);
	add(pools, stamp, sandbox, true);
}

void pools_count(struct pools *pools, const char *stamp, bool is_hit)
{
	struct pool_state *state;

	pthread_mutex_lock(&pools->lock);
	state = state_of(pools, stamp);
	if (state && is_hit)
		state->hits++;
	else if (state)
		state->misses++;
	pools->claimed_ms = clock_steady_ms();
	pthread_mutex_unlock(&pools->lock);
}

bool pools_shed(struct engine *engine)
{
	struct pools *pools = engine->pools;
	bool has_some;

	pthread_mutex_lock(&pools->lock);
	has_some = pools->entries;
	pools->sheds = pools->is_due = has_some;
	if (has_some)
		pthread_cond_broadcast(&pools->changed);
	pthread_mutex_unlock(&pools->lock);
	return has_some;
}

size_t pools_read(
	struct engine *engine, struct pool_state **ret_states, struct pool_totals *ret_totals)
{
	struct pools *pools = engine->pools;
	struct pool_state *states;
	size_t count;

	pthread_mutex_lock(&pools->lock);
	count = pools->state_count;
	states = mem_new((count + 1) * sizeof(*states));
	for (size_t i = 0; i < count; i++) {
		states[i] = pools->states[i];
		states[i].ready = states[i].warming = 0;
		for (struct entry *e = pools->entries; e; e = e->next) {
			bool is_of = strcmp(e->stamp, states[i].plan.stamp) == 0;

			states[i].ready += is_of && e->is_ready;
			states[i].warming += is_of && !e->is_ready;
		}
	}
	*ret_totals = (struct pool_totals){pools->draining, pools->held_because};
	pthread_mutex_unlock(&pools->lock);
	*ret_states = states;
	return count;
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

/* Takes the plans over; a pool that was there before keeps its numbers. */
static void set_plans(struct pools *pools, struct pool_plan *plans, size_t count)
{
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
		states[i].plan = plans[i];
	}
	pools->states = states;
	pools->state_count = count;
	pthread_mutex_unlock(&pools->lock);
	free(before);
	free(plans);
}

static int read_plans(struct engine *engine, struct err *err)
{
	struct pool_plan *plans;
	size_t count;
	int r = pool_plan_read(engine, &plans, &count, err);

	if (r == 0)
		set_plans(engine->pools, plans, count);
	return r;
}

/* --- what there is, and what of it is of use --- */

struct rows {
	struct pooled_record *rows;
	size_t count, cap;
};

static void collect(const struct pooled_record *record, void *arg)
{
	struct rows *rows = arg;

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

static bool has_row(const struct rows *rows, const char *id)
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
static void drop_strangers(struct pools *pools, const struct rows *rows)
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
	at = find(pools, row->id);
	if (at)
		sandbox = sandbox_ref((*at)->sandbox);
	pthread_mutex_unlock(&pools->lock);
	if (sandbox || row->state != POOLED_READY ||
		sandbox_get(engine, NULL, row->id, &sandbox, &ignored) < 0)
		return sandbox;
	/* A daemon before us made it: whether it is still ready is being asked (ready_check.h). Or it was given away just
	 * now: no claim gets it then, and the next round drops it. */
	add(pools, row->stamp, sandbox_ref(sandbox), false);
	return sandbox;
}

/* Removes one for good, unless it was given away. */
static void drain(struct engine *engine, const char *id)
{
	struct store *store = engine->config.store;
	struct err err;
	int r = store_pool_drain(store, id, &err);

	fail_point("pool.drained");
	drop(engine->pools, id);
	if (r == 1)
		return;
	if (r == 0)
		r = sandbox_purge(engine, NULL, id, &err);
	if (r == 0 || r == -ENOENT)
		r = store_pool_delete(store, id, &err);
	if (r < 0)
		log_error("sandbox %s of a pool is not removed: %s", id, err.message);
}

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

static void note_failure(struct engine *engine, const char *stamp, const char *why)
{
	struct pools *pools = engine->pools;
	struct pool_state *state;
	struct pool_plan plan = {0};
	uint64_t pause_ms = RETRY_MS;

	log_warning("a sandbox for a pool could not be made: %s", why);
	pthread_mutex_lock(&pools->lock);
	state = state_of(pools, stamp);
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

static void mark_ready(struct engine *engine, const char *id, const char *stamp)
{
	struct pools *pools = engine->pools;
	struct pool_plan plan = {0};
	struct pool_state *state;
	struct entry **at;

	pthread_mutex_lock(&pools->lock);
	at = find(pools, id);
	if (at)
		(*at)->is_ready = true;
	state = state_of(pools, stamp);
	if (state) {
		state->failures = state->retry_ms = state->error[0] = 0;
		plan = state->plan;
	}
	pthread_mutex_unlock(&pools->lock);
	tell(engine, &plan, "pool.ready", NULL);
}

static bool is_marked(struct pools *pools, const char *id)
{
	struct entry **at;
	bool is;

	pthread_mutex_lock(&pools->lock);
	at = find(pools, id);
	is = at && (*at)->is_ready;
	pthread_mutex_unlock(&pools->lock);
	return is;
}

/* How far its members are: those that depend on others have been let go on, and all are healthy. */
static enum ready_state members_state(struct sandbox *sandbox)
{
	struct member_view views[MEMBERS_MAX];
	struct sandbox_record record;
	size_t count;

	sandbox_read(sandbox, &record);
	count = member_read_all(sandbox->engine, &record, views);
	sandbox_record_fini(&record);
	for (size_t i = 0; i < count; i++) {
		if (strcmp(views[i].health, "unhealthy") == 0)
			return READY_GIVEN_UP;
		if (strcmp(views[i].health, "starting") == 0 ||
			strcmp(views[i].status, "waiting") == 0 ||
			strcmp(views[i].status, "stopped") == 0 ||
			strcmp(views[i].status, "error") == 0)
			return READY_NOT_YET;
	}
	return READY_YES;
}

/* Whether it stays; and if its ready check has passed meanwhile, it may be given away. */
static bool look_after(struct engine *engine, const struct pooled_record *row)
{
	struct pools *pools = engine->pools;
	auto_(sandbox_unrefp) struct sandbox *sandbox = handle_of(engine, row);
	enum ready_state state;
	struct err err;

	if (!sandbox || !runs(sandbox)) {
		if (sandbox && row->state == POOLED_MAKING)
			note_failure(engine, row->stamp, "it ended before it was ready");
		return false;
	}
	if (is_marked(pools, row->id))
		return true;
	state = ready_check_state(sandbox);
	if (state == READY_YES)
		state = members_state(sandbox);
	switch (state) {
	case READY_NOT_YET:
		return true;
	case READY_GIVEN_UP:
		note_failure(engine, row->stamp, "it did not become ready in time");
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
	mark_ready(engine, row->id, row->stamp);
	return true;
}

/* How many of a pool there may be. */
static unsigned size_of(struct pools *pools, const char *stamp)
{
	const struct pool_state *state;
	unsigned size;

	pthread_mutex_lock(&pools->lock);
	state = state_of(pools, stamp);
	size = state && !pools->sheds ? state->plan.size : 0;
	pthread_mutex_unlock(&pools->lock);
	return size;
}

static unsigned count_before(const struct rows *rows, size_t end)
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

/* Removes what is of no use: of the wrong stamp, too many, or ended. What stays has its id in the list then. */
static void sort_out(struct engine *engine, struct rows *rows)
{
	char(*useless)[ID_LEN + 1] = mem_new((rows->count + 1) * sizeof(*useless));
	unsigned count = 0;

	for (size_t i = 0; i < rows->count; i++) {
		struct pooled_record *row = &rows->rows[i];

		if (count_before(rows, i) < size_of(engine->pools, row->stamp) &&
			row->state != POOLED_DRAINING && look_after(engine, row))
			continue;
		memcpy(useless[count++], row->id, sizeof(*useless));
		row->id[0] = '\0';
	}
	for (unsigned i = 0; i < count; i++) {
		set_draining(engine->pools, count - i);
		drain(engine, useless[i]);
	}
	set_draining(engine->pools, 0);
	free(useless);
}

/* --- making --- */

/* Why none is made now; NULL: one may be. */
static const char *hold_of(struct engine *engine)
{
	struct err ignored;

	if (host_memory_available() < engine->config.memory_reserve + engine->config.pool_reserve)
		return "the host is short of memory";
	if (disk_reserve_check(engine, &ignored) < 0)
		return "the host is short of disk space";
	if (driver_check(engine->config.driver, &ignored) < 0)
		return "the driver does not serve";
	return NULL;
}

/* Requests go first. */
static bool must_rest(const struct pools *pools, uint64_t now_ms)
{
	uint64_t since_fill_ms = now_ms - pools->filled_ms;

	if (since_fill_ms < REST_MS + 3 * pools->fill_took_ms)
		return true;
	return now_ms - pools->claimed_ms < QUIET_MS && since_fill_ms < PATIENCE_MS;
}

static unsigned count_of(const struct rows *rows, const char *stamp)
{
	unsigned count = 0;

	for (size_t i = 0; i < rows->count; i++)
		count += rows->rows[i].id[0] && strcmp(rows->rows[i].stamp, stamp) == 0;
	return count;
}

enum next { NEXT_NOTHING, NEXT_LATER, NEXT_NOW };

/* What is to be made next: of the pool that lacks most of what it should have. */
static enum next choose(struct engine *engine, const struct rows *rows, struct pool_plan *ret_plan)
{
	struct pools *pools = engine->pools;
	const char *held_because = hold_of(engine);
	uint64_t now_ms = clock_steady_ms();
	enum next next = NEXT_NOTHING;
	unsigned warming = 0, best = 0;

	pthread_mutex_lock(&pools->lock);
	pools->held_because = held_because;
	for (struct entry *entry = pools->entries; entry; entry = entry->next)
		warming += !entry->is_ready;
	for (size_t i = 0; i < pools->state_count; i++) {
		const struct pool_state *state = &pools->states[i];
		unsigned count = count_of(rows, state->plan.stamp);
		unsigned lack = count < state->plan.size
					? 1000 * (state->plan.size - count) / state->plan.size
					: 0;

		if (lack <= best || now_ms < state->retry_ms)
			continue;
		best = lack;
		*ret_plan = state->plan;
		next = NEXT_NOW;
	}
	if (next == NEXT_NOW && (warming >= WARMING_MAX || must_rest(pools, now_ms)))
		next = NEXT_LATER;
	if (next == NEXT_NOTHING && warming > 0)
		next = NEXT_LATER;
	if (held_because || pools->is_stopping)
		next = NEXT_NOTHING;
	pthread_mutex_unlock(&pools->lock);
	return next;
}

/* 1: the template is another one by now. */
static int make(struct engine *engine, const struct pool_plan *plan, struct err *err)
{
	struct store *store = engine->config.store;
	struct pooled_record row = {.owner = plan->owner, .created_at_ms = store_clock_ms(store)};
	struct sandbox_record draft;
	struct sandbox *sandbox;
	json_auto_t *image = NULL;
	struct err ignored;
	int r = pool_plan_image(engine, plan, &image, err);

	if (r < 0)
		return r;
	r = pool_plan_draft(engine, plan, image, &draft, row.stamp, err);
	if (r < 0)
		return r;
	if (strcmp(row.stamp, plan->stamp) != 0) {
		sandbox_record_fini(&draft);
		return 1;
	}
	id_new(clock_wall_ms(), row.id);
	memcpy(row.template_name, plan->template_name, sizeof(row.template_name));
	memcpy(draft.id, row.id, sizeof(draft.id));
	r = store_pool_add(store, &row, err);
	fail_point("pool.row_added");
	if (r == 0) {
		r = sandbox_create(engine, &draft, &sandbox, err);
		fail_point("pool.sandbox_made");
		if (r == 0)
			add(engine->pools, row.stamp, sandbox, false);
		else
			(void)!store_pool_delete(store, row.id, &ignored);
	}
	sandbox_record_fini(&draft);
	return r;
}

static void fill(struct engine *engine, const struct pool_plan *plan)
{
	struct pools *pools = engine->pools;
	uint64_t begun_ms = clock_steady_ms(), now_ms;
	struct err err;

	templates_begin_use(engine);
	if (make(engine, plan, &err) < 0)
		note_failure(engine, plan->stamp, err.message);
	templates_end_use(engine);
	now_ms = clock_steady_ms();
	pthread_mutex_lock(&pools->lock);
	pools->filled_ms = now_ms;
	pools->fill_took_ms = now_ms - begun_ms;
	pthread_mutex_unlock(&pools->lock);
}

/* --- rounds --- */

/* How long until the next. */
static unsigned make_round(struct engine *engine)
{
	struct rows rows = {0};
	struct pool_plan plan;
	enum next next = NEXT_NOTHING;
	struct err err;
	int r = read_plans(engine, &err);

	if (r == 0)
		r = store_pool_list(engine->config.store, collect, &rows, &err);
	if (r == 0) {
		drop_strangers(engine->pools, &rows);
		sort_out(engine, &rows);
		next = choose(engine, &rows, &plan);
	} else {
		log_error("pools: %s", err.message);
	}
	if (next == NEXT_NOW)
		fill(engine, &plan);
	free(rows.rows);
	return next == NEXT_NOTHING ? ROUND_MS : SOON_MS;
}

/* False when it is to end. */
static bool wait_round(struct pools *pools, unsigned pause_ms)
{
	uint64_t due_ms = clock_steady_ms() + pause_ms;
	struct timespec deadline = {
		.tv_sec = (time_t)(due_ms / 1000), .tv_nsec = (long)(due_ms % 1000) * 1000000};
	bool goes_on;
	int waited = 0;

	pthread_mutex_lock(&pools->lock);
	pools->sheds = false;
	while (!pools->is_stopping && !pools->is_due && waited == 0)
		waited = pthread_cond_timedwait(&pools->changed, &pools->lock, &deadline);
	pools->is_due = false;
	goes_on = !pools->is_stopping;
	pthread_mutex_unlock(&pools->lock);
	return goes_on;
}

void *pools_run(void *arg)
{
	struct engine *engine = arg;
	unsigned pause_ms = 0;

	pthread_setname_np(pthread_self(), "pool");
	while (wait_round(engine->pools, pause_ms))
		pause_ms = make_round(engine);
	return NULL;
}
