/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes rows and reality equal when the daemon starts. Afterwards
 *   - a row says running or paused only if the driver runs it and its agent answers,
 *   - the driver runs nothing that has no such row,
 *   - no directory exists without a row of its workspace, and none of a create that never finished.
 * It can be interrupted at any point and run again.
 */
#include "base/clock.h"
#include "base/log.h"
#include "core/roll.h"
#include "core/sandbox_state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PAGE 256

struct page {
	struct sandbox_record records[PAGE];
	size_t count;
};

static void collect(const struct sandbox_record *record, void *arg)
{
	struct page *page = arg;

	sandbox_record_copy(&page->records[page->count++], record);
}

/* A create that was never acknowledged: nothing of it stays. A workspace that was there before it,
 * kept from an earlier sandbox of that id, does. */
static int drop_unfinished(
	struct engine *engine, const struct sandbox_record *record, struct err *err)
{
	struct driver *driver = engine->config.driver;
	struct store *store = engine->config.store;
	struct workspace_record workspace;
	bool kept;
	int r = store_workspace_get(store, NULL, record->id, &workspace, err);

	if (r < 0)
		return r;
	kept = workspace.created_at_ms < record->created_at_ms;
	r = driver->ops->stop(driver, record->id, NULL, err);
	if (r == 0)
		r = driver->ops->clean(driver, record->id, record->slot,
			DRIVER_PART_ALL | (kept ? 0 : DRIVER_PART_WORKSPACE), err);
	if (r == 0)
		r = kept ? store_sandbox_delete(store, record->id, err)
			 : store_workspace_delete(store, record->id, err);
	if (r == 0)
		log_info("removed the unfinished sandbox %s", record->id);
	return r;
}

static int note_stopped(
	struct engine *engine, struct sandbox_record *record, const char *why, struct err *err)
{
	int r;

	record->status = SANDBOX_STOPPED;
	record->end.reason = END_AGENT_LOST;
	snprintf(record->end.detail, sizeof(record->end.detail), "%s", why);
	record->end.signal = 0;
	log_info("sandbox %s is stopped: %s", record->id, why);
	r = store_sandbox_update(engine->config.store, record, err);
	if (r == 0)
		r = roll_end_rows(engine, record->id, &record->end, err);
	return r;
}

/* Takes up one that should run. If it does not, or its agent does not answer, it is stopped. */
static int take_up(struct engine *engine, struct sandbox_record *record, struct err *err)
{
	struct driver *driver = engine->config.driver;
	struct sandbox_record copy;
	struct sandbox *sandbox;
	struct err ignored;
	struct walls walls;
	int link_fd = -1, r;

	/* A pause that was cut short before it was written down is undone. */
	if (record->status == SANDBOX_RUNNING)
		(void)!driver->ops->freeze(driver, record->id, false, &ignored);
	r = driver->ops->adopt(driver, record->id, &link_fd, &walls, err);
	if (r == 0) {
		sandbox_record_copy(&copy, record);
		copy.last_active_at_ms =
			clock_wall_ms(); /* not written at each use; give it its time */
		sandbox = sandbox_attach(engine, &copy);
		pthread_mutex_lock(&sandbox->life);
		r = sandbox_adopt(sandbox, link_fd, &walls, err);
		pthread_mutex_unlock(&sandbox->life);
		sandbox_unref(sandbox);
	}
	if (r == 0) {
		log_info("took up sandbox %s", record->id);
		return 0;
	}
	r = driver->ops->stop(driver, record->id, NULL, err);
	return r < 0 ? r : note_stopped(engine, record, "it was gone when the daemon started", err);
}

static int settle_row(struct engine *engine, struct sandbox_record *record, struct err *err)
{
	struct driver *driver = engine->config.driver;

	switch (record->status) {
	case SANDBOX_CREATING:
		return drop_unfinished(engine, record, err);
	case SANDBOX_RUNNING:
	case SANDBOX_PAUSED:
		return take_up(engine, record, err);
	default:
		/* A start or stop that was cut short: the row is what was acknowledged. */
		return driver->ops->stop(driver, record->id, NULL, err);
	}
}

static int settle_rows(struct engine *engine, struct err *err)
{
	auto_free struct page *page = mem_new(sizeof(*page));
	char after[ID_LEN + 1] = "";
	int r = 0;

	do {
		struct store_filter filter = {.after = after, .limit = PAGE};

		page->count = 0;
		r = store_sandbox_list(engine->config.store, &filter, collect, page, err);
		for (size_t i = 0; i < page->count; i++) {
			memcpy(after, page->records[i].id, sizeof(after));
			if (r == 0)
				r = settle_row(engine, &page->records[i], err);
			sandbox_record_fini(&page->records[i]);
		}
	} while (r == 0 && page->count == PAGE);
	return r;
}

/* One that runs, or has directories, without a row. */
static int drop_stranger(struct engine *engine, const char *id, bool stored, struct err *err)
{
	struct driver *driver = engine->config.driver;
	struct workspace_record workspace = {0};
	struct sandbox_record record;
	struct err ignored;
	unsigned parts = DRIVER_PART_ALL;
	int r;

	if (store_sandbox_get(engine->config.store, NULL, id, &record, &ignored) == 0) {
		sandbox_record_fini(&record);
		return 0;
	}
	r = driver->ops->stop(driver, id, NULL, err);
	if (r < 0 || !stored)
		return r;
	/* A deleted sandbox keeps its workspace; without that row too, nobody can ever reach it. */
	if (store_workspace_get(engine->config.store, NULL, id, &workspace, &ignored) < 0)
		parts |= DRIVER_PART_WORKSPACE;
	return driver->ops->clean(driver, id, workspace.slot, parts, err);
}

static int drop_strangers(struct engine *engine, bool stored, struct err *err)
{
	struct driver *driver = engine->config.driver;
	char ids[DRIVER_PAGE][ID_LEN + 1];
	char after[ID_LEN + 1] = "";
	int count;

	do {
		count = driver->ops->list(driver, stored, after, ids, err);
		for (int i = 0; i < count; i++) {
			int r = drop_stranger(engine, ids[i], stored, err);

			if (r < 0)
				return r;
			memcpy(after, ids[i], sizeof(after));
		}
	} while (count == DRIVER_PAGE);
	return count < 0 ? count : 0;
}

int reconcile(struct engine *engine, struct err *err)
{
	int r = settle_rows(engine, err);

	if (r == 0)
		r = drop_strangers(engine, false, err);
	if (r == 0)
		r = drop_strangers(engine, true, err);
	if (r < 0)
		err_prefix(err, "make the database and what runs equal");
	return r;
}
