/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reaper: one thread that ends sandboxes no client ends. It settles those whose agent vanished,
 * at once; every second it stops those that were idle for too long, and deletes those that reached
 * the end of their lifetime; and it purges the workspaces of those that were removed long ago. What the host needs does not wait for it: see host_watch.h.
 */
#include "core/upkeep/reaper.h"
#include "base/clock.h"
#include "base/log.h"
#include "core/engine/sandbox_network.h"
#include "core/engine/sandbox_state.h"
#include "core/process/process_table.h"
#include "core/process/process_usage.h"
#include "core/sandbox/disk_count.h"
#include "core/sandbox/late_create.h"
#include "core/sandbox/sandbox.h"
#include "core/sandbox/sandbox_run.h"
#include "core/upkeep/heap.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define ROUND_S		1
#define HEAP_ROUNDS	2  /* between two looks at free memory */
#define ROUND_MAX	64 /* sandboxes dealt with in one round */
#define EXPIRE_EVERY_MS 5000

static void settle_lost(struct engine *engine)
{
	for (;;) {
		struct sandbox *sandbox = NULL;

		pthread_mutex_lock(&engine->lock);
		if (engine->lost_count > 0)
			sandbox = engine->lost[--engine->lost_count];
		pthread_mutex_unlock(&engine->lock);
		if (!sandbox)
			return;
		sandbox_settle(sandbox);
		sandbox_unref(sandbox);
	}
}

static int stop_idle(struct sandbox *sandbox, const struct sandbox_record *record, struct err *err)
{
	char detail[64];

	snprintf(detail, sizeof(detail), "nobody used it for %lld s",
		(long long)record->idle_timeout_s);
	log_info("sandbox %s is stopped: %s", record->id, detail);
	return sandbox_stop_because(sandbox, END_IDLE, detail, err);
}

/* One whose background processes work is not idle. To know that may take a moment: then the next round decides. */
static int stop_unless_busy(
	struct sandbox *sandbox, const struct sandbox_record *record, struct err *err)
{
	switch (process_usage_check(sandbox)) {
	case PROCESS_ACTIVITY_BUSY:
		sandbox_note_use(sandbox);
		return store_sandbox_touch(sandbox->engine->config.store, record->id,
			store_clock_ms(sandbox->engine->config.store), err);
	case PROCESS_ACTIVITY_ASKED:
		return 0;
	default:
		return stop_idle(sandbox, record, err);
	}
}

static void sample(struct sandbox *sandbox, void *arg)
{
	(void)arg;
	process_usage_sample(sandbox);
}

static void sample_all(struct engine *engine)
{
	uint64_t now_ms = clock_steady_ms();

	if (now_ms - engine->sampled_ms < PROCESS_USAGE_ROUND_MS)
		return;
	engine->sampled_ms = now_ms;
	engine_visit(engine, sample, NULL);
}

/* The row of one that is used all the time says otherwise, because a use is not written each time:
 * then it is written now, and the row is no longer due. */
static void look_after(struct engine *engine, const char *id)
{
	auto_(sandbox_unrefp) struct sandbox *sandbox = NULL;
	struct sandbox_record record;
	int64_t now = store_clock_ms(engine->config.store);
	struct err err;
	int r = sandbox_get(engine, NULL, id, &sandbox, &err);

	if (r < 0)
		return;
	sandbox_read(sandbox, &record);
	if (record.expires_at_ms && now >= record.expires_at_ms) {
		log_info("sandbox %s reached the end of its lifetime of %lld s", id,
			(long long)record.lifetime_s);
		r = sandbox_delete(sandbox, END_LIFETIME, &err);
	} else if (sandbox_is_occupied(sandbox)) {
		r = store_sandbox_touch(engine->config.store, id, now, &err);
	} else if (now - record.last_active_at_ms < record.idle_timeout_s * 1000) {
		r = store_sandbox_touch(engine->config.store, id, record.last_active_at_ms, &err);
	} else {
		r = stop_unless_busy(sandbox, &record, &err);
	}
	sandbox_record_fini(&record);
	if (r < 0 && r != -ENOENT)
		log_error("sandbox %s: %s", id, err.message);
}

/* --- what a driver that could not serve has left to do --- */

static bool is_lost(struct sandbox *sandbox)
{
	bool lost;

	pthread_mutex_lock(&sandbox->state);
	lost = sandbox_seems_up(sandbox) && !sandbox->link && !sandbox->ending && !sandbox->gone;
	pthread_mutex_unlock(&sandbox->state);
	return lost;
}

static void catch_up(struct engine *engine)
{
	struct sandbox **sandboxes;
	struct err ignored;
	size_t count;

	if (driver_check(engine->config.driver, &ignored) < 0)
		return;
	sandboxes = engine_list(engine, &count);
	for (size_t i = 0; i < count; i++) {
		if (atomic_load(&sandboxes[i]->is_undo_due))
			sandbox_undo_again(sandboxes[i]);
		else if (is_lost(sandboxes[i]))
			sandbox_settle(sandboxes[i]);
		else
			sandbox_network_save(sandboxes[i]);
		sandbox_unref(sandboxes[i]);
	}
	free(sandboxes);
}

static bool is_closing(struct engine *engine)
{
	bool closing;

	pthread_mutex_lock(&engine->lock);
	closing = engine->closing;
	pthread_mutex_unlock(&engine->lock);
	return closing;
}

/* Purges the workspaces that removed sandboxes left too long ago. */
static void expire_workspaces(struct engine *engine)
{
	struct store *store = engine->config.store;
	int64_t now_ms = store_clock_ms(store);
	int64_t keep_s = engine->config.workspace_retention_s;
	char ids[ROUND_MAX][ID_LEN + 1];
	struct err err;
	int count;

	if (keep_s == 0 || now_ms < engine->next_expiry_ms)
		return;
	engine->next_expiry_ms = now_ms + EXPIRE_EVERY_MS;
	count = store_workspace_due(store, now_ms, now_ms - keep_s * 1000, ids, ROUND_MAX, &err);
	if (count < 0)
		log_error("reaper: %s", err.message);
	/* There may be more. */
	if (count == ROUND_MAX)
		engine->next_expiry_ms = 0;
	for (int i = 0; i < count && !is_closing(engine); i++) {
		int r = sandbox_purge_left(engine, ids[i], &err);

		if (r == 0)
			log_info("the workspace of the removed sandbox %s is purged after %lld s",
				ids[i], (long long)keep_s);
		else if (r != -ENOENT && r != -EEXIST)
			log_error("sandbox %s: %s", ids[i], err.message);
		settle_lost(engine);
	}
}

static void make_round(struct engine *engine)
{
	char ids[ROUND_MAX][ID_LEN + 1];
	struct err err;
	struct store *store = engine->config.store;
	int count = store_sandbox_due(store, store_clock_ms(store), ids, ROUND_MAX, &err);

	if (count < 0)
		log_error("reaper: %s", err.message);
	for (int i = 0; i < count && !is_closing(engine); i++) {
		look_after(engine, ids[i]);
		/* That may have taken long. */
		settle_lost(engine);
	}
	if (store_clock_follow(store, &err) < 0)
		log_error("reaper: %s", err.message);
	catch_up(engine);
	sample_all(engine);
	expire_workspaces(engine);
}

void *reaper_run(void *arg)
{
	struct engine *engine = arg;
	struct heap_look heap = {0};
	unsigned int rounds = 0;

	pthread_setname_np(pthread_self(), "reaper");
	late_create_settle_left(engine, is_closing);
	disk_count_measure_all(engine, is_closing);
	while (!is_closing(engine)) {
		struct timespec deadline;
		int waited = 0;

		clock_gettime(CLOCK_MONOTONIC, &deadline);
		deadline.tv_sec += ROUND_S;
		pthread_mutex_lock(&engine->lock);
		while (!engine->closing && engine->lost_count == 0 && waited == 0)
			waited = pthread_cond_timedwait(&engine->work, &engine->lock, &deadline);
		pthread_mutex_unlock(&engine->lock);
		settle_lost(engine);
		if (waited != ETIMEDOUT)
			continue;
		make_round(engine);
		if (++rounds % HEAP_ROUNDS == 0)
			heap_give_back(&heap);
	}
	return NULL;
}
