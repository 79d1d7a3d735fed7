/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verbs of a sandbox.
 *
 * A verb takes the life lock, settles what happened meanwhile, asks the state machine whether it may
 * do what it is for, does it through the driver, writes the new state, and only then returns. Between
 * "done" and "written" the daemon may die: reconcile.c makes rows and reality equal on the next start.
 */
#include "core/sandbox.h"

#include "base/clock.h"
#include "base/log.h"
#include "core/sandbox_handle.h"
#include "core/sandbox_link.h"
#include "core/sandbox_row.h"
#include "core/sandbox_run.h"
#include "core/starter.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

/* Begins a verb: takes the life lock and asks whether it may. On 1 or an error nothing is to be done. */
static int begin(struct sandbox *sandbox, enum sandbox_verb verb, struct err *err)
{
	pthread_mutex_lock(&sandbox->life);
	if (sandbox->gone)
		return sandbox_not_found(sandbox->id, err);
	sandbox_run_settle(sandbox);
	return sandbox_verb_check(&sandbox->record, verb, err);
}

static int finish(struct sandbox *sandbox, int r)
{
	pthread_mutex_unlock(&sandbox->life);
	return r < 0 ? r : 0;
}

/* --- verbs --- */

static const struct termination by_operator = {.reason = END_OPERATOR};

/* It was brought up: that is written down, and what it is to run is started. life is held. */
static int go_live(struct sandbox *sandbox, struct err *err)
{
	int r = sandbox_row_write_running(sandbox, err);

	if (r == 0)
		starter_apply(sandbox);
	return r;
}

/* Starts one that is stopped or in error; a failure, but for want of quota, is its new state. life is
 * held. */
static int wake(struct sandbox *sandbox, struct err *err)
{
	struct sandbox_record changed;
	struct err ignored;
	int r = store_sandbox_claim(sandbox->engine->config.store, &sandbox->record, err);

	if (r < 0)
		return r;
	r = sandbox_run_begin(sandbox, err);
	if (r == 0) {
		r = go_live(sandbox, err);
		if (r < 0 && sandbox_run_end(sandbox, false, &by_operator, &ignored) < 0)
			log_error("sandbox %s: %s", sandbox->id, ignored.message);
		return r;
	}
	sandbox_read(sandbox, &changed);
	changed.status = SANDBOX_ERROR;
	snprintf(changed.error_message, sizeof(changed.error_message), "%s", err->message);
	if (sandbox_row_write(sandbox, &changed, &ignored) < 0)
		log_error("sandbox %s: %s", sandbox->id, ignored.message);
	sandbox_record_fini(&changed);
	sandbox_announce(sandbox);
	err_prefix(err, "sandbox %s cannot be started", sandbox->id);
	return r;
}

int sandbox_start(struct sandbox *sandbox, struct err *err)
{
	int r = begin(sandbox, SANDBOX_START, err);

	if (r == 0)
		r = wake(sandbox, err);
	return finish(sandbox, r);
}

int sandbox_stop(struct sandbox *sandbox, enum end_reason reason, struct err *err)
{
	struct termination how = {.reason = reason};
	int r = begin(sandbox, SANDBOX_STOP, err);

	if (r == 0) {
		sandbox_run_read_usage(sandbox, &how);
		r = sandbox_run_end(sandbox, true, &how, err);
	} else if (r == 1) {
		return finish(sandbox, r);
	}
	if (r == 0)
		r = sandbox_row_write_status(sandbox, SANDBOX_STOPPED, &how, err);
	return finish(sandbox, r);
}

static int set_frozen(struct sandbox *sandbox, bool frozen, struct err *err)
{
	struct driver *driver = sandbox->engine->config.driver;
	int r = begin(sandbox, frozen ? SANDBOX_PAUSE : SANDBOX_RESUME, err);
	struct err ignored;

	if (r != 0)
		return finish(sandbox, r);
	r = driver->ops->freeze(driver, sandbox->id, frozen, err);
	if (r < 0)
		return finish(sandbox, r);
	r = sandbox_row_write_status(
		sandbox, frozen ? SANDBOX_PAUSED : SANDBOX_RUNNING, &(struct termination){0}, err);
	/* One that is frozen and said to run would never answer. */
	if (r < 0 && driver->ops->freeze(driver, sandbox->id, !frozen, &ignored) < 0)
		log_error("sandbox %s: %s", sandbox->id, ignored.message);
	if (r == 0 && !frozen)
		starter_resume(sandbox);
	return finish(sandbox, r);
}

int sandbox_pause(struct sandbox *sandbox, struct err *err)
{
	return set_frozen(sandbox, true, err);
}

int sandbox_resume(struct sandbox *sandbox, struct err *err)
{
	return set_frozen(sandbox, false, err);
}

int sandbox_reset(struct sandbox *sandbox, struct err *err)
{
	struct driver *driver = sandbox->engine->config.driver;
	struct termination how = {.reason = END_OPERATOR, .detail = "reset"};
	int r = begin(sandbox, SANDBOX_RESET, err);
	bool ran = sandbox_seems_up(sandbox);

	if (r == 0)
		r = sandbox_run_end(sandbox, false, &how, err);
	/* Written first: a crash from here on leaves a stopped sandbox, emptied or not, never half of
	 * one that claims to run. */
	if (r == 0)
		r = sandbox_row_write_status(sandbox, SANDBOX_STOPPED, &how, err);
	if (r == 0)
		r = driver->ops->clean(driver, sandbox->id, sandbox->record.slot,
			DRIVER_PART_SYSTEM | DRIVER_PART_SCRATCH, err);
	if (r == 0 && ran)
		r = wake(sandbox, err);
	return finish(sandbox, r);
}

/* life is held. The row goes last: until then nobody can make another one of its id. */
static int remove_one(struct sandbox *sandbox, enum end_reason reason, struct err *err)
{
	struct driver *driver = sandbox->engine->config.driver;
	struct err ignored;
	int r = sandbox_run_end(sandbox, false, &(struct termination){.reason = reason}, err);

	if (r < 0)
		return r;
	/* It is not to fail the call: what stays is removed on the next start. */
	if (driver->ops->clean(
		    driver, sandbox->id, sandbox->record.slot, DRIVER_PART_ALL, &ignored) < 0)
		log_error("sandbox %s: %s", sandbox->id, ignored.message);
	r = sandbox_handle_forget(sandbox, store_sandbox_delete, err);
	if (r == 0)
		sandbox_announce(sandbox);
	return r;
}

int sandbox_delete(struct sandbox *sandbox, enum end_reason reason, struct err *err)
{
	int r;

	pthread_mutex_lock(&sandbox->life);
	r = sandbox->gone ? sandbox_not_found(sandbox->id, err) : remove_one(sandbox, reason, err);
	return finish(sandbox, r);
}

/* A sandbox that is there only so that nobody takes up its workspace; its life lock is held. */
static int claim(struct engine *engine, const struct workspace_record *workspace,
	struct sandbox **ret_sandbox, struct err *err)
{
	struct sandbox_record record;

	sandbox_record_init(&record);
	memcpy(record.id, workspace->id, sizeof(record.id));
	record.owner = workspace->owner;
	record.status = SANDBOX_CREATING;
	record.idle_timeout_s = record.lifetime_s = SANDBOX_NO_LIMIT;
	return sandbox_handle_new(engine, &record, store_sandbox_hold, ret_sandbox, err);
}

/* life is held. */
static int purge(struct sandbox *sandbox, struct err *err)
{
	struct driver *driver = sandbox->engine->config.driver;
	struct err ignored;
	int r = sandbox_run_end(sandbox, false, &by_operator, err);

	if (r < 0)
		return r;
	r = driver->ops->clean(driver, sandbox->id, sandbox->record.slot,
		DRIVER_PART_ALL | DRIVER_PART_WORKSPACE, err);
	/* Before the id is free: a new sandbox of it must not find what the old one wrote. */
	if (r == 0)
		engine_remove_logs(sandbox->engine, sandbox->id);
	if (r == 0)
		r = sandbox_handle_forget(sandbox, store_workspace_delete, err);
	if (r < 0 && sandbox_handle_forget(sandbox, store_sandbox_delete, &ignored) < 0)
		log_error("sandbox %s: %s", sandbox->id, ignored.message);
	if (sandbox->gone)
		sandbox_announce(sandbox);
	return r;
}

int sandbox_purge(struct engine *engine, const struct owner *owner, const char *id, struct err *err)
{
	struct workspace_record workspace;
	int r;

	if (!id_is_valid(id))
		return sandbox_not_found(id, err);
	/* Somebody may create or delete it between our look and our try; then we look again. */
	for (int attempt = 0; attempt < 3; attempt++) {
		auto_(sandbox_unrefp) struct sandbox *sandbox = NULL;

		r = store_workspace_get(engine->config.store, owner, id, &workspace, err);
		if (r < 0)
			return r;
		r = sandbox_get(engine, owner, id, &sandbox, err);
		if (r == 0)
			pthread_mutex_lock(&sandbox->life);
		else if (r == -ENOENT)
			r = claim(engine, &workspace, &sandbox, err);
		if (r == -EEXIST)
			continue;
		if (r < 0)
			return r;
		r = sandbox->gone ? sandbox_not_found(id, err) : purge(sandbox, err);
		if (finish(sandbox, r) != -ENOENT)
			return r;
	}
	return r;
}

/* Undoes a create that failed: nothing of it may stay, but a workspace from before does. */
static void undo_create(struct sandbox *sandbox, bool kept_workspace)
{
	struct driver *driver = sandbox->engine->config.driver;
	unsigned parts = DRIVER_PART_ALL | (kept_workspace ? 0 : DRIVER_PART_WORKSPACE);
	struct err err;
	int r = driver->ops->stop(driver, sandbox->id, NULL, &err);

	sandbox_link_close(sandbox, &by_operator);
	if (r == 0)
		r = driver->ops->clean(driver, sandbox->id, sandbox->record.slot, parts, &err);
	if (r == 0)
		r = sandbox_handle_forget(sandbox,
			kept_workspace ? store_sandbox_delete : store_workspace_delete, &err);
	if (r < 0) {
		log_error("undo the creation of sandbox %s: %s", sandbox->id, err.message);
		sandbox_handle_detach(sandbox);
	}
}

/* Disks are sparse: what they promise together may be more than there is. */
static int check_room(const struct engine *engine, struct err *err)
{
	struct statvfs disk;

	if (fstatvfs(engine->config.logs_fd, &disk) < 0 ||
		(uint64_t)disk.f_bavail * disk.f_frsize >= engine->config.disk_reserve)
		return 0;
	return err_explain(err, ERR_NO_SPACE, NULL,
		"purge workspaces that nobody needs, or make the file system of the data directory "
		"larger",
		"the host has less free disk space than its reserve");
}

int sandbox_create(struct engine *engine, const struct sandbox_record *draft,
	struct sandbox **ret_sandbox, struct err *err)
{
	struct workspace_record workspace;
	struct sandbox_record record;
	struct sandbox *sandbox;
	struct err ignored;
	bool kept;
	int r = check_room(engine, err);

	if (r < 0)
		return r;
	sandbox_record_copy(&record, draft);
	record.status = SANDBOX_CREATING;
	record.created_at_ms = record.last_active_at_ms = clock_wall_ms();
	if (record.lifetime_s != SANDBOX_NO_LIMIT)
		record.expires_at_ms = record.created_at_ms + record.lifetime_s * 1000;
	if (!record.id[0])
		id_new(record.created_at_ms, record.id);
	kept = draft->id[0] && store_workspace_get(engine->config.store, &record.owner, record.id,
				       &workspace, &ignored) == 0;
	r = sandbox_handle_new(engine, &record, store_sandbox_insert, &sandbox, err);
	if (r < 0)
		return r;
	r = sandbox_run_begin(sandbox, err);
	if (r == 0)
		r = go_live(sandbox, err);
	if (r < 0)
		undo_create(sandbox, kept);
	pthread_mutex_unlock(&sandbox->life);
	if (r < 0) {
		sandbox_unref(sandbox);
		return r;
	}
	*ret_sandbox = sandbox;
	return 0;
}

static int find_existing(struct engine *engine, const struct sandbox_record *draft,
	struct sandbox **ret_sandbox, struct err *err)
{
	struct sandbox_record record;
	int r;

	if (draft->id[0])
		return sandbox_get(engine, &draft->owner, draft->id, ret_sandbox, err);
	if (!draft->project[0])
		return -ENOENT;
	pthread_mutex_lock(&engine->births);
	r = store_sandbox_find(engine->config.store, &draft->owner, draft->project, &record, err);
	if (r == 0)
		*ret_sandbox = sandbox_attach(engine, &record);
	pthread_mutex_unlock(&engine->births);
	return r;
}

/* What is left of one whose start failed is not trusted: its system layer is made anew. Its workspace,
 * id and settings stay. life is held. */
static int rebuild(struct sandbox *sandbox, struct err *err)
{
	struct driver *driver = sandbox->engine->config.driver;
	int r = sandbox_run_end(sandbox, false, &by_operator, err);

	if (r == 0)
		r = driver->ops->clean(
			driver, sandbox->id, sandbox->record.slot, DRIVER_PART_SYSTEM, err);
	return r < 0 ? r : wake(sandbox, err);
}

static int make_healthy(struct sandbox *sandbox, bool *ret_rebuilt, struct err *err)
{
	int r = begin(sandbox, SANDBOX_USE, err);

	if (r == 0 && sandbox->record.status == SANDBOX_ERROR) {
		r = rebuild(sandbox, err);
		*ret_rebuilt = r == 0;
	} else if (r == 0) {
		r = wake(sandbox, err);
	}
	return finish(sandbox, r);
}

int sandbox_ensure(struct engine *engine, const struct sandbox_record *draft,
	struct sandbox **ret_sandbox, bool *ret_created, struct err *err)
{
	auto_(sandbox_unrefp) struct sandbox *sandbox = NULL;
	int r;

	*ret_created = false;
	/* Somebody may create it between our look and our try; then the second look finds it. */
	for (int attempt = 0; attempt < 3; attempt++) {
		r = find_existing(engine, draft, &sandbox, err);
		if (r == 0) {
			r = make_healthy(sandbox, ret_created, err);
			if (r == -ENOENT) { /* deleted under us */
				sandbox_unref(take_ptr(&sandbox));
				continue;
			}
			if (r == 0)
				*ret_sandbox = take_ptr(&sandbox);
			return r;
		}
		if (r != -ENOENT)
			return r;
		r = sandbox_create(engine, draft, ret_sandbox, err);
		if (r == 0)
			*ret_created = true;
		if (r != -EEXIST)
			return r;
	}
	return r;
}

/* --- use --- */

int sandbox_use(struct sandbox *sandbox, struct link **ret_link, struct err *err)
{
	bool runs;
	int r = 0;

	atomic_store(&sandbox->last_active_ms, clock_wall_ms());
	pthread_mutex_lock(&sandbox->state);
	runs = sandbox->record.status == SANDBOX_RUNNING && sandbox->link && !sandbox->ending;
	pthread_mutex_unlock(&sandbox->state);
	if (!runs) {
		r = begin(sandbox, SANDBOX_USE, err);
		if (r == 0)
			r = wake(sandbox, err);
		r = finish(sandbox, r);
	}
	return r < 0 ? r : sandbox_link_await(sandbox, ret_link, err);
}
