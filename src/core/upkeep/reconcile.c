/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes rows and reality equal when the daemon starts. Afterwards
 *   - a row says running or paused only if the driver runs it and its agent answers,
 *   - the driver runs nothing that has no such row,
 *   - no directory exists of a create that never finished, nor of a purge that was begun,
 *   - a directory without a row of its workspace is kept and known as an orphan,
 *   - no snapshot exists whose making or removal was cut short.
 * Nothing is removed because a row is missing: only what is marked (unfinished.h). A row that cannot be
 * read ends it with an error. It can be interrupted at any point and run again.
 */
#include "core/upkeep/reconcile.h"
#include "base/clock.h"
#include "base/fail_point.h"
#include "base/log.h"
#include "core/engine/capability.h"
#include "core/engine/sandbox_state.h"
#include "core/process/process_table.h"
#include "core/project/projects.h"
#include "core/sandbox/baseline.h"
#include "core/sandbox/disk_count.h"
#include "core/sandbox/orphan.h"
#include "core/sandbox/sandbox_link.h"
#include "core/sandbox/snapshot_files.h"
#include "core/sandbox/unfinished.h"
#include "store/sandbox/store_pool.h"
#include "store/template/store_build.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PAGE 256

struct page {
	struct sandbox_record records[PAGE];
	size_t count;
};

static bool collect(const struct sandbox_record *record, void *arg)
{
	struct page *page = arg;

	sandbox_record_copy(&page->records[page->count++], record);
	return true;
}

/* A create that was never acknowledged: nothing of it stays, but for a workspace that was there before. */
static int drop_unfinished(
	struct engine *engine, const struct sandbox_record *record, bool kept, struct err *err)
{
	struct driver *driver = engine->config.driver;
	struct store *store = engine->config.store;
	int r = driver->ops->stop(driver, record->id, NULL, err);

	fail_point("reconcile.unfinished_stopped");
	if (r == 0)
		r = driver->ops->clean(driver, record->id,
			DRIVER_PART_ALL | (kept ? 0 : DRIVER_PART_WORKSPACE), err);
	if (r == 0 && kept)
		disk_count_reduce(engine, record->id);
	fail_point("reconcile.unfinished_cleaned");
	/* It may be a purge of a kept workspace that was cut short: there is output of earlier processes then. */
	if (r == 0 && !kept)
		engine_remove_logs(engine, record->id);
	if (r == 0)
		r = kept ? store_sandbox_delete(store, record->id, err)
			 : store_workspace_delete(store, record->id, err);
	if (r == 0)
		log_info("removed the unfinished sandbox %s", record->id);
	return r;
}

/* Whether a workspace is older than the sandbox that a row tells of. */
static int is_kept(
	struct engine *engine, const struct sandbox_record *record, bool *ret_kept, struct err *err)
{
	struct workspace_record workspace;
	int r = store_workspace_get(engine->config.store, NULL, record->id, &workspace, err);

	if (r == 0)
		*ret_kept = workspace.created_at_ms < record->created_at_ms;
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
	record->error_message[0] = '\0';
	log_info("sandbox %s is stopped: %s", record->id, why);
	r = store_sandbox_update(engine->config.store, record, err);
	fail_point("reconcile.lost_row_written");
	if (r == 0)
		r = process_table_end_rows(engine, record->id, &record->end, err);
	return r;
}

/*
 * A row that says "creating", without a mark: it only held the id for a purge; or no file was made yet; or
 * the database is a copy of that moment, and the sandbox was finished and used since.
 */
static int settle_unmarked(struct engine *engine, struct sandbox_record *record, struct err *err)
{
	struct driver *driver = engine->config.driver;
	struct store *store = engine->config.store;
	bool kept = true;
	int r;

	if (!record->template_name[0])
		return store_sandbox_delete(store, record->id, err);
	r = is_kept(engine, record, &kept, err);
	if (r < 0)
		return r;
	r = driver->ops->is_stored(driver, record->id, err);
	if (r < 0)
		return r;
	if (r == 0)
		return drop_unfinished(engine, record, kept, err);
	r = driver->ops->stop(driver, record->id, NULL, err);
	if (r < 0)
		return r;
	/* The files may all be from before: then nothing of it was made, and the workspace stays as it was kept. */
	return kept ? store_sandbox_delete(store, record->id, err)
		    : note_stopped(engine, record, "its creation was not seen to end", err);
}

static int settle_creating(
	struct engine *engine, struct sandbox_record *record, enum unfinished what, struct err *err)
{
	switch (what) {
	case UNFINISHED_CREATE:
		return drop_unfinished(engine, record, false, err);
	case UNFINISHED_RECREATE:
		return drop_unfinished(engine, record, true, err);
	default:
		return settle_unmarked(engine, record, err);
	}
}

/*
 * A claim or a change that was cut short has written what the limits and the name are to be, and may not have set them;
 * or has set them, and not written them. (Disks get theirs in the first round of disk_reserve.h.) One that was given
 * away since it was started may lack the files of its project, too. Its life is held.
 */
static void set_as_written(struct sandbox *sandbox)
{
	struct driver *driver = sandbox->engine->config.driver;
	const struct sandbox_record *record = &sandbox->record;
	struct err err;
	int r = 0;

	if (record->status != SANDBOX_RUNNING)
		return;
	if (driver_can(driver, DRIVER_LIVE_RESIZE))
		r = driver->ops->set_limits(
			driver, sandbox->id, &record->resources, record->is_waiting, &err);
	if (r == 0)
		r = driver_give_name(driver, sandbox->id, record->name, &err);
	if (r == 0 && record->created_at_ms > record->started_at_ms)
		r = projects_show(sandbox, &err);
	if (r < 0)
		log_warning("sandbox %s: %s", sandbox->id, err.message);
}

/* Takes up one that should run. If it does not, or its agent does not answer, it is stopped. */
static int take_up(struct engine *engine, struct sandbox_record *record, struct err *err)
{
	struct driver *driver = engine->config.driver;
	struct sandbox_record copy;
	struct sandbox *sandbox;
	struct err ignored;
	struct driver_link link;
	struct walls walls;
	enum pooled_state pooled;
	int r;

	record->is_waiting =
		store_pool_has(engine->config.store,
			record->parent[0] ? record->parent : record->id, &pooled, &ignored) == 1;
	/* A pause that was cut short before it was written down is undone. */
	if (record->status == SANDBOX_RUNNING && driver_can(driver, DRIVER_FREEZE))
		(void)!driver->ops->freeze(driver, record->id, false, &ignored);
	r = capability_need(driver, DRIVER_ADOPT, err);
	if (r == 0)
		r = driver->ops->adopt(driver, record->id, &link, &walls, err);
	fail_point("reconcile.link_made");
	if (r == 0) {
		sandbox_record_copy(&copy, record);
		/* Not written at each use: it gets its time anew. */
		copy.last_active_at_ms = store_clock_ms(engine->config.store);
		sandbox = sandbox_attach(engine, &copy);
		pthread_mutex_lock(&sandbox->life);
		/* First: start commands that begin anew are to find it so. */
		set_as_written(sandbox);
		r = sandbox_adopt(sandbox, &link, &walls, err);
		pthread_mutex_unlock(&sandbox->life);
		sandbox_unref(sandbox);
	}
	fail_point("reconcile.adopted");
	if (r == 0) {
		log_info("took up sandbox %s", record->id);
		return 0;
	}
	r = driver->ops->stop(driver, record->id, NULL, err);
	return r < 0 ? r : note_stopped(engine, record, "it was gone when the daemon started", err);
}

/* Goes on with a purge that was cut short: its owner wants nothing to stay, and some of it may be gone. */
static int go_on_with_purge(struct engine *engine, const char *id, struct err *err)
{
	struct driver *driver = engine->config.driver;
	int r = driver->ops->clean(driver, id, DRIVER_PART_ALL | DRIVER_PART_WORKSPACE, err);

	fail_point("reconcile.purge_cleaned");
	if (r < 0)
		return r;
	engine_remove_logs(engine, id);
	r = store_workspace_delete(engine->config.store, id, err);
	if (r == 0)
		log_info("finished the purge of sandbox %s", id);
	return r;
}

/* One that cannot be purged, as when its files cannot be removed, must not keep all others from being served. */
static int settle_purged(struct engine *engine, struct sandbox_record *record, struct err *err)
{
	struct driver *driver = engine->config.driver;
	int r = driver->ops->stop(driver, record->id, NULL, err);

	if (r < 0 || go_on_with_purge(engine, record->id, err) == 0)
		return r;
	log_error("sandbox %s is not purged: %s", record->id, err->message);
	return note_stopped(engine, record, "its purge was begun and could not be ended", err);
}

/* Whether it is of no use: a build begins its step anew in another one, and so does a pool whose was not ready. */
static int is_left_over(struct engine *engine, const char *id, bool *ret_is, struct err *err)
{
	enum pooled_state state = POOLED_READY;
	bool is_builder = false;
	int r = store_builder_has(engine->config.store, id, &is_builder, err);

	if (r == 0)
		r = store_pool_has(engine->config.store, id, &state, err);
	if (r >= 0)
		*ret_is = is_builder || state != POOLED_READY;
	return r < 0 ? r : 0;
}

static int settle_row(struct engine *engine, struct sandbox_record *record, struct err *err)
{
	struct driver *driver = engine->config.driver;
	enum unfinished what;
	bool is_useless = false;
	int r = unfinished_read(engine, record->id, &what, err);

	if (r == 0)
		r = is_left_over(engine, record->id, &is_useless, err);
	if (r < 0)
		return r;
	if (what == UNFINISHED_PURGE || is_useless)
		return settle_purged(engine, record, err);
	switch (record->status) {
	case SANDBOX_CREATING:
		/* Its owner was told of it; it is made when its image is there (late_create.h). */
		if (record->job[0])
			return driver->ops->stop(driver, record->id, NULL, err);
		return settle_creating(engine, record, what, err);
	case SANDBOX_RUNNING:
	case SANDBOX_PAUSED:
		return take_up(engine, record, err);
	default:
		/* A start or stop that was cut short: the row is what was acknowledged. */
		return driver->ops->stop(driver, record->id, NULL, err);
	}
}

static bool names_member(const struct sandbox_record *primary, const char *id)
{
	json_t *entry;
	size_t i;

	json_array_foreach(primary->members, i, entry)
	{
		const char *named = json_string_value(json_object_get(entry, "id"));

		if (named && strcmp(named, id) == 0)
			return true;
	}
	return false;
}

/* A member without a sandbox that names it is what is left of a create, join or removal that was cut short. */
static int drop_member(struct engine *engine, const struct sandbox_record *record, struct err *err)
{
	struct driver *driver = engine->config.driver;
	int r = driver->ops->stop(driver, record->id, NULL, err);

	if (r < 0)
		return r;
	engine_remove_logs(engine, record->id);
	r = store_workspace_delete(engine->config.store, record->id, err);
	if (r == 0)
		log_info("removed what was left of the member %s of sandbox %s", record->role,
			record->parent);
	return r;
}

/* Its sandbox is settled: it runs with that, or not at all. One that is gone is started again by the watch. */
static int settle_member(struct engine *engine, struct sandbox_record *record, struct err *err)
{
	struct driver *driver = engine->config.driver;
	struct sandbox_record primary;
	bool is_up, is_named;
	int r = store_sandbox_get(engine->config.store, NULL, record->parent, &primary, err);

	if (r == -ENOENT)
		return drop_member(engine, record, err);
	if (r < 0)
		return r;
	is_up = primary.status == SANDBOX_RUNNING || primary.status == SANDBOX_PAUSED;
	is_named = names_member(&primary, record->id);
	sandbox_record_fini(&primary);
	if (!is_named)
		return drop_member(engine, record, err);
	if (is_up && (record->status == SANDBOX_RUNNING || record->status == SANDBOX_PAUSED)) {
		if (primary.status == SANDBOX_RUNNING)
			record->status = SANDBOX_RUNNING;
		return take_up(engine, record, err);
	}
	r = driver->ops->stop(driver, record->id, NULL, err);
	/* One that could not start is tried again while its sandbox runs, and has ended with it otherwise. */
	if (r < 0 || record->status == SANDBOX_STOPPED ||
		(is_up && record->status == SANDBOX_ERROR))
		return r;
	return note_stopped(engine, record, "its sandbox was gone when the daemon started", err);
}

static int settle_rows(struct engine *engine, bool of_members, struct err *err)
{
	auto_free struct page *page = mem_new(sizeof(*page));
	char after[ID_LEN + 1] = "";
	int r = 0;

	do {
		struct store_filter filter = {
			.after = after, .limit = PAGE, .of_members = of_members};

		page->count = 0;
		r = store_sandbox_list(engine->config.store, &filter, collect, page, err);
		for (size_t i = 0; i < page->count; i++) {
			memcpy(after, page->records[i].id, sizeof(after));
			if (r == 0)
				r = of_members ? settle_member(engine, &page->records[i], err)
					       : settle_row(engine, &page->records[i], err);
			sandbox_record_fini(&page->records[i]);
		}
	} while (r == 0 && page->count == PAGE);
	return r;
}

/*
 * What a delete or purge could not remove goes now; of a delete the workspace stays. 1: it is still there. One that
 * cannot be cleaned, as on a full disk, must not keep all others from being served.
 */
static int finish_removal(
	struct engine *engine, const char *id, enum unfinished what, struct err *err)
{
	struct driver *driver = engine->config.driver;
	struct workspace_record workspace;
	struct sandbox_record record;
	int r = store_sandbox_get(engine->config.store, NULL, id, &record, err);

	if (r == 0) { /* it was created again since, or its purge failed just now */
		sandbox_record_fini(&record);
		return what == UNFINISHED_PURGE;
	}
	if (r != -ENOENT)
		return r;
	r = store_workspace_get(engine->config.store, NULL, id, &workspace, err);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	r = what == UNFINISHED_PURGE ? go_on_with_purge(engine, id, err)
				     : driver->ops->clean(driver, id, DRIVER_PART_ALL, err);
	if (r == 0)
		return 0;
	log_error(
		"sandbox %s: what is left of it stays until the next start: %s", id, err->message);
	return 1;
}

/* Marks of creates have no meaning any more: their rows are settled. */
static int settle_mark(struct engine *engine, const char *id, enum unfinished what, struct err *err)
{
	bool is_removal = what == UNFINISHED_DELETE || what == UNFINISHED_PURGE;
	int r = is_removal ? finish_removal(engine, id, what, err) : 0;

	if (r == 0)
		unfinished_clear(engine, id);
	return r < 0 ? r : 0;
}

/* What runs without a row cannot be reached by anybody. */
static int end_unknown(struct engine *engine, const char *id, struct err *err)
{
	struct driver *driver = engine->config.driver;
	struct sandbox_record record;
	int r = store_sandbox_get(engine->config.store, NULL, id, &record, err);

	if (r == 0)
		sandbox_record_fini(&record);
	return r == -ENOENT ? driver->ops->stop(driver, id, NULL, err) : r;
}

static int look_for_row(struct engine *engine, const char *id, struct err *err)
{
	struct workspace_record workspace;
	int r = store_workspace_get(engine->config.store, NULL, id, &workspace, err);

	if (r != -ENOENT)
		return r;
	orphan_note(engine, id);
	return 0;
}

static int for_each_listed(struct engine *engine, bool stored,
	int (*each)(struct engine *engine, const char *id, struct err *err), struct err *err)
{
	struct driver *driver = engine->config.driver;
	char ids[DRIVER_PAGE][ID_LEN + 1];
	char after[ID_LEN + 1] = "";
	int count;

	do {
		count = driver->ops->list(driver, stored, after, ids, err);
		for (int i = 0; i < count; i++) {
			int r = each(engine, ids[i], err);

			if (r < 0)
				return r;
			memcpy(after, ids[i], sizeof(after));
		}
	} while (count == DRIVER_PAGE);
	return count < 0 ? count : 0;
}

int reconcile(struct engine *engine, struct err *err)
{
	int r = settle_rows(engine, false, err);

	if (r == 0)
		r = settle_rows(engine, true, err);

	fail_point("reconcile.rows_settled");
	if (r == 0)
		r = store_builder_sweep(engine->config.store, err);
	if (r == 0)
		r = store_pool_sweep(engine->config.store, err);
	if (r == 0)
		r = unfinished_each(engine, settle_mark, err);
	if (r == 0)
		r = for_each_listed(engine, false, end_unknown, err);
	if (r == 0)
		r = for_each_listed(engine, true, look_for_row, err);
	if (r == 0)
		r = snapshot_files_settle(engine, err);
	if (r == 0)
		baseline_settle(engine);
	fail_point("reconcile.strangers_dropped");
	if (r < 0)
		err_prefix(err, "make the database and what runs equal");
	return r;
}
