/* SPDX-License-Identifier: Apache-2.0 */
/* What is made next for the pools, and when: requests go first. */
#include "core/pool/pool_private.h"

#include "base/clock.h"
#include "base/fail_point.h"
#include "core/engine/disk_reserve.h"
#include "core/engine/host_memory.h"
#include "core/pool/pool.h"
#include "core/sandbox/sandbox.h"
#include "core/template/templates.h"
#include "model/access/owner.h"

#include <string.h>

#define QUIET_MS    250	 /* without a claim, before one is made; but */
#define PATIENCE_MS 1000 /* one in so long is made in any case */
#define REST_MS	    50	 /* between two that are made or removed; thrice what one took; or */
#define BUSY_MS	    500 /* while commands run: each delays some, and of a hundred one may be late */
#define WARMING_MAX 2	/* at a time, of a pool; and of all, but for those that take longer than */
#define WARMING_MS  5000

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

bool pool_must_rest(struct engine *engine, uint64_t now_ms)
{
	const struct pools *pools = engine->pools;
	uint64_t since_ms = now_ms - pools->worked_ms;
	bool is_busy =
		store_clock_ms(engine->config.store) - atomic_load(&engine->used_ms) < QUIET_MS;

	if (since_ms < (is_busy ? BUSY_MS : REST_MS) + 3 * pools->work_took_ms)
		return true;
	return now_ms - pools->claimed_ms < QUIET_MS && since_ms < PATIENCE_MS;
}

void pool_note_work(struct pools *pools, uint64_t begun_ms)
{
	uint64_t now_ms = clock_steady_ms();

	pthread_mutex_lock(&pools->lock);
	pools->worked_ms = now_ms;
	pools->work_took_ms = now_ms - begun_ms;
	pthread_mutex_unlock(&pools->lock);
}

static unsigned count_of(const struct pool_rows *rows, const char *stamp)
{
	unsigned count = 0;

	for (size_t i = 0; i < rows->count; i++)
		count += rows->rows[i].id[0] && strcmp(rows->rows[i].stamp, stamp) == 0;
	return count;
}

/* How many are being made: of a pool, of all pools of an owner, and of all, but for those that take long. */
struct warming {
	unsigned of_pool, of_owner, brief;
};

/* The lock is held. */
static struct warming count_warming(
	const struct pools *pools, const struct pool_plan *plan, uint64_t now_ms)
{
	struct warming warming = {0};

	for (const struct entry *entry = pools->entries; entry; entry = entry->next) {
		const struct pool_state *state = pool_list_state(pools, entry->stamp);

		if (entry->was_ready)
			continue;
		warming.brief += now_ms - entry->since_ms < WARMING_MS;
		warming.of_pool += strcmp(entry->stamp, plan->stamp) == 0;
		warming.of_owner += state && owner_equals(&state->plan.owner, &plan->owner);
	}
	return warming;
}

/*
 * What is to be made next: of the pool that lacks most of what it should have, of an owner for whom few are being made.
 * What never becomes ready takes its pool up until its time is over, and the others a moment.
 */
static enum pool_next choose(
	struct engine *engine, const struct pool_rows *rows, struct pool_plan *ret_plan)
{
	struct pools *pools = engine->pools;
	const char *held_because = hold_of(engine);
	uint64_t now_ms = clock_steady_ms();
	enum pool_next next = POOL_NOTHING;
	unsigned best = 0;

	pthread_mutex_lock(&pools->lock);
	pools->held_because = held_because;
	for (size_t i = 0; i < pools->state_count; i++) {
		const struct pool_state *state = &pools->states[i];
		struct warming warming = count_warming(pools, &state->plan, now_ms);
		unsigned count = count_of(rows, state->plan.stamp), lack;

		if (next == POOL_NOTHING && warming.of_pool > 0)
			next = POOL_LATER;
		if (count >= state->plan.size || now_ms < state->retry_ms ||
			warming.of_pool >= WARMING_MAX)
			continue;
		lack = 1 + 1000 * (state->plan.size - count) / state->plan.size /
				   (1 + warming.of_owner);
		if (lack <= best)
			continue;
		best = lack;
		*ret_plan = state->plan;
		next = warming.brief < WARMING_MAX && !pool_must_rest(engine, now_ms) ? POOL_MADE
										      : POOL_LATER;
	}
	if (held_because || pools->is_stopping || pools->sheds)
		next = POOL_NOTHING;
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
			pool_list_add(engine->pools, row.stamp, sandbox, NULL, false);
		else
			(void)!store_pool_sweep(store, &ignored); /* unless it is not undone yet */
	}
	sandbox_record_fini(&draft);
	return r;
}

static void fill_one(struct engine *engine, const struct pool_plan *plan)
{
	uint64_t begun_ms = clock_steady_ms();
	struct err err;

	templates_begin_use(engine);
	if (make(engine, plan, &err) < 0)
		pool_note_failure(engine, plan->stamp, err.message);
	templates_end_use(engine);
	pool_note_work(engine->pools, begun_ms);
}

enum pool_next pool_fill(struct engine *engine, const struct pool_rows *rows)
{
	struct pool_plan plan;
	enum pool_next next = choose(engine, rows, &plan);

	if (next == POOL_MADE)
		fill_one(engine, &plan);
	return next;
}
