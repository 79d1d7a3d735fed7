/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verbs of a sandbox.
 *
 * A verb takes the life lock, settles what happened meanwhile, asks the state machine whether it may
 * do what it is for, does it through the driver, writes the new state, and only then returns. Between
 * "done" and "written" the daemon may die: reconcile.c makes rows and reality equal on the next start.
 */
#include "core/sandbox/sandbox.h"

#include "base/clock.h"
#include "base/fail_point.h"
#include "base/log.h"
#include "core/dependency/dependencies.h"
#include "core/engine/capability.h"
#include "core/engine/disk_reserve.h"
#include "core/engine/run_place.h"
#include "core/engine/sandbox_handle.h"
#include "core/engine/sandbox_row.h"
#include "core/process/process_table.h"
#include "core/process/process_usage.h"
#include "core/process/ready_check.h"
#include "core/process/start_command.h"
#include "core/sandbox/baseline.h"
#include "core/sandbox/disk_count.h"
#include "core/sandbox/late_create.h"
#include "core/sandbox/member.h"
#include "core/sandbox/orphan.h"
#include "core/sandbox/sandbox_link.h"
#include "core/sandbox/sandbox_make.h"
#include "core/sandbox/sandbox_prepare.h"
#include "core/sandbox/sandbox_run.h"
#include "core/sandbox/snapshot_files.h"
#include "core/sandbox/unfinished.h"
#include "core/template/templates_request.h"
#include "store/access/store_quota.h"
#include "store/template/store_layer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

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

/* Writes down that it could not be started, and why, unless the driver serves nobody now. This also gives back what a
 * claim took. life is held. */
static void write_failure(struct sandbox *sandbox, const struct err *err)
{
	struct sandbox_record changed;
	struct err ignored;
	bool is_its_fault = driver_check(sandbox->engine->config.driver, &ignored) == 0 &&
			    strcmp(err->code, DRIVER_SERVES_NOBODY) != 0 &&
			    err->kind != ERR_NO_SPACE;

	sandbox_read(sandbox, &changed);
	if (is_its_fault) {
		changed.status = SANDBOX_ERROR;
		snprintf(changed.error_message, sizeof(changed.error_message), "%s%s%s",
			err->message, err->remedy[0] ? ": " : "", err->remedy);
	}
	if (sandbox_row_write(sandbox, &changed, &ignored) < 0)
		log_error("sandbox %s: %s", sandbox->id, ignored.message);
	sandbox_record_fini(&changed);
	if (is_its_fault)
		sandbox_announce(sandbox);
}

/* A start that failed has given its place and its share of a quota back. life is held. */
static int take_place(struct sandbox *sandbox, struct err *err)
{
	int r = disk_reserve_check(sandbox->engine, err);

	if (r == 0)
		r = run_place_take(sandbox, err);
	if (r < 0)
		return r;
	r = store_sandbox_claim(sandbox->engine->config.store, &sandbox->record, err);
	if (r < 0)
		run_place_give_back(sandbox);
	return r;
}

static bool is_pinned(const json_t *image)
{
	return json_is_true(json_object_get(json_object_get(image, "options"), "pinned"));
}

/* Makes this the version of its template that it has; the row is for the caller to write. life is held. */
static void set_image(struct sandbox *sandbox, json_t *image)
{
	json_t *old;

	pthread_mutex_lock(&sandbox->state);
	template_options_renew_start(&sandbox->record, image);
	old = sandbox->record.image;
	sandbox->record.image = json_deep_copy(image);
	pthread_mutex_unlock(&sandbox->state);
	json_decref(old);
}

/*
 * Brings it up with the newest version of its template, or with the one that it has if that fails; then *ret_refused
 * says why. What the sandbox has changed lies above the files of the template, and stays. The row has the version
 * before until it runs, so that nothing of it is removed meanwhile. life is held.
 */
static int bring_up_newest(struct sandbox *sandbox, struct err *ret_refused, struct err *err)
{
	json_auto_t *before = json_deep_copy(sandbox->record.image), *image = NULL;
	int r;

	if (!templates_is_upgradable(sandbox->engine, &sandbox->record, &image) || is_pinned(image))
		return sandbox_make_up(sandbox, err);
	set_image(sandbox, image);
	r = sandbox_make_up(sandbox, err);
	if (r == 0)
		return 0;
	*ret_refused = *err;
	set_image(sandbox, before);
	return sandbox_make_up(sandbox, err);
}

/* It runs with its old version, and says why. life is held. */
static void tell_downgrade(struct sandbox *sandbox, const struct err *why)
{
	struct sandbox_record changed;
	struct err err;

	log_warning("sandbox %s keeps its version: %s", sandbox->id, why->message);
	sandbox_read(sandbox, &changed);
	snprintf(changed.error_message, sizeof(changed.error_message),
		"the newest version of its template could not be started, so it has the one "
		"before: %s",
		why->message);
	if (sandbox_row_write(sandbox, &changed, &err) < 0)
		log_error("sandbox %s: %s", sandbox->id, err.message);
	else
		sandbox_publish(sandbox, "sandbox.upgrade_failed");
	sandbox_record_fini(&changed);
}

/* Starts one that is stopped or in error; a failure, but for want of quota, a place or the host's disk, is its
 * new state. life is held. */
static int wake(struct sandbox *sandbox, struct err *err)
{
	struct err ignored, refused = {0};
	int r = take_place(sandbox, err);

	if (r < 0)
		return r;
	fail_point("start.claimed");
	/* It was never made, because its image did not come. */
	if (sandbox->record.job[0])
		return late_create_try_again(sandbox, err);
	r = bring_up_newest(sandbox, &refused, err);
	if (r == 0) {
		r = sandbox_make_live(sandbox, err);
		if (r == 0 && refused.kind != ERR_NONE)
			tell_downgrade(sandbox, &refused);
		/* One that does not start says so itself. */
		if (r == 0)
			(void)!member_start_all(sandbox, false, &ignored);
		if (r == 0)
			return 0;
		if (sandbox_run_end(sandbox, false, &by_operator, &ignored) < 0)
			log_error("sandbox %s: %s", sandbox->id, ignored.message);
	}
	write_failure(sandbox, err);
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
	return sandbox_stop_because(sandbox, reason, "", err);
}

int sandbox_stop_because(
	struct sandbox *sandbox, enum end_reason reason, const char *detail, struct err *err)
{
	struct termination how = {.reason = reason};
	int r = begin(sandbox, SANDBOX_STOP, err);

	snprintf(how.detail, sizeof(how.detail), "%s", detail);
	if (r == 0) {
		sandbox_run_read_usage(sandbox, &how);
		member_end_all(sandbox, true, &how);
		r = sandbox_run_end(sandbox, true, &how, err);
	} else if (r == 1) {
		return finish(sandbox, r);
	}
	if (r == 0)
		r = fail_point_check("stop.before_row", err);
	if (r == 0)
		r = sandbox_row_write_status(sandbox, SANDBOX_STOPPED, &how, err);
	fail_point("stop.row_written");
	return finish(sandbox, r);
}

static int set_frozen(struct sandbox *sandbox, bool frozen, struct err *err)
{
	struct driver *driver = sandbox->engine->config.driver;
	int r = begin(sandbox, frozen ? SANDBOX_PAUSE : SANDBOX_RESUME, err);
	struct err ignored;

	if (r == 0)
		r = capability_need(driver, DRIVER_FREEZE, err);
	if (r != 0)
		return finish(sandbox, r);
	r = member_freeze_all(sandbox, frozen, err);
	if (r == 0)
		r = driver->ops->freeze(driver, sandbox->id, frozen, err);
	if (r < 0) {
		(void)!member_freeze_all(sandbox, !frozen, &ignored);
		return finish(sandbox, r);
	}
	r = fail_point_check("pause.before_row", err);
	if (r == 0)
		r = sandbox_row_write_status(sandbox, frozen ? SANDBOX_PAUSED : SANDBOX_RUNNING,
			&(struct termination){0}, err);
	fail_point("pause.row_written");
	/* One that is frozen and said to run would never answer. */
	if (r < 0 && (driver->ops->freeze(driver, sandbox->id, !frozen, &ignored) < 0 ||
			     member_freeze_all(sandbox, !frozen, &ignored) < 0))
		log_error("sandbox %s: %s", sandbox->id, ignored.message);
	if (r == 0 && !frozen)
		start_command_resume(sandbox);
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

/*
 * Its system was emptied: it gets the newest version of its template, pinned or not, and what that promises is made
 * anew. life is held.
 */
static int renew(struct sandbox *sandbox, struct err *err)
{
	struct sandbox_record changed;
	json_t *image;
	int r;

	sandbox_read(sandbox, &changed);
	sandbox_prepare_again(changed.image);
	if (templates_is_upgradable(sandbox->engine, &changed, &image)) {
		template_options_renew_start(&changed, image);
		json_decref(changed.image);
		changed.image = image;
	}
	r = sandbox_row_write(sandbox, &changed, err);
	/* A version newer still may have come, and this one gone, before the row was written. */
	if (r == 0)
		r = store_layer_check_image(sandbox->engine->config.store, changed.image, err);
	sandbox_record_fini(&changed);
	return r;
}

int sandbox_reset(struct sandbox *sandbox, struct err *err)
{
	struct termination how = {.reason = END_OPERATOR, .detail = "reset"};
	int r = begin(sandbox, SANDBOX_RESET, err);
	bool ran = sandbox_seems_up(sandbox);

	if (r == 0) {
		member_end_all(sandbox, false, &how);
		r = sandbox_run_end(sandbox, false, &how, err);
	}
	/* Written first: a crash from here on leaves a stopped sandbox, emptied or not, never half of
	 * one that claims to run. */
	if (r == 0)
		r = sandbox_row_write_status(sandbox, SANDBOX_STOPPED, &how, err);
	fail_point("reset.row_written");
	if (r == 0)
		r = sandbox_run_clean(sandbox, DRIVER_PART_SYSTEM | DRIVER_PART_SCRATCH, err);
	if (r == 0)
		r = fail_point_check("reset.cleaned", err);
	if (r == 0)
		member_renew_all(sandbox);
	if (r == 0)
		r = renew(sandbox, err);
	if (r == 0 && ran)
		r = wake(sandbox, err);
	return finish(sandbox, r);
}

int sandbox_restore(struct sandbox *sandbox, const char *snapshot, struct err *err)
{
	struct termination how = {.reason = END_OPERATOR, .detail = "restored"};
	struct driver *driver = sandbox->engine->config.driver;
	int r = begin(sandbox, SANDBOX_RESET, err);
	bool ran = sandbox_seems_up(sandbox);
	struct err ignored;

	if (r == 0 && sandbox->record.job[0])
		r = err_explain(err, ERR_CONFLICT, "wrong_state", "start it first",
			"sandbox %s was not made yet, since its image did not come", sandbox->id);
	if (r == 0) {
		member_end_all(sandbox, false, &how);
		r = sandbox_run_end(sandbox, false, &how, err);
	}
	if (r == 0)
		r = sandbox_row_write_status(sandbox, SANDBOX_STOPPED, &how, err);
	fail_point("restore.row_written");
	if (r < 0)
		return finish(sandbox, r);
	r = driver->ops->load_snapshot(driver, sandbox->id, snapshot, false, err);
	/* On failure it has the files that it had, and goes on with them. */
	if (ran && wake(sandbox, r < 0 ? &ignored : err) < 0 && r == 0)
		r = -err_class((enum err_kind)err->kind)->errnum;
	return finish(sandbox, r);
}

int sandbox_lend(struct sandbox *sandbox, const struct owner *owner, struct err *err)
{
	const struct resources *resources = &sandbox->record.resources;
	const struct quota_amounts amounts = {.of = {[QUOTA_SANDBOXES] = 1,
						      [QUOTA_RUNNING] = 1,
						      [QUOTA_WORKSPACES] = 1,
						      [QUOTA_CPU] = resources->cpu_millis,
						      [QUOTA_MEMORY] = resources->memory_bytes,
						      [QUOTA_DISK] = resources->disk_bytes}};
	struct quota_claim *claim = mem_new(sizeof(*claim));
	int r = store_quota_claim(sandbox->engine->config.store, owner, &amounts, claim, err);

	if (r < 0) {
		free(claim);
		return r;
	}
	atomic_store(&sandbox->claim, claim);
	atomic_store(&sandbox->is_unowned, false);
	pthread_mutex_lock(&sandbox->state);
	sandbox->record.owner = *owner;
	pthread_mutex_unlock(&sandbox->state);
	return 0;
}

int sandbox_disown(struct sandbox *sandbox, struct err *err)
{
	static const struct owner nobody;
	int r;

	if (sandbox_handle_give_back_claim(sandbox))
		return 0;
	pthread_mutex_lock(&sandbox->life);
	r = sandbox->gone ? sandbox_not_found(sandbox->id, err)
			  : store_sandbox_give(
				    sandbox->engine->config.store, &sandbox->record, &nobody, err);
	return finish(sandbox, r);
}

/* life is held. The row goes last: until then nobody can make another one of its id. */
static int remove_one(struct sandbox *sandbox, enum end_reason reason, struct err *err)
{
	struct termination how = {.reason = reason};
	struct err ignored;
	int r = member_kill_all(sandbox, err);

	if (r == 0)
		r = sandbox_run_end(sandbox, false, &how, err);
	if (r < 0)
		return r;
	dependencies_cancel(sandbox);
	/* For the event that tells of it; the row goes. */
	pthread_mutex_lock(&sandbox->state);
	sandbox->record.end = how;
	pthread_mutex_unlock(&sandbox->state);
	/* It is not to fail the call: what stays is marked, and removed on the next start. */
	if (sandbox_run_clean(sandbox, DRIVER_PART_ALL, &ignored) < 0) {
		log_error("sandbox %s: %s", sandbox->id, ignored.message);
		r = unfinished_mark(sandbox->engine, sandbox->id, UNFINISHED_DELETE, err);
		if (r < 0)
			return r;
	}
	fail_point("delete.cleaned");
	r = sandbox_handle_forget(sandbox, store_sandbox_delete, err);
	fail_point("delete.row_deleted");
	if (r == 0) {
		member_forget_all(sandbox);
		sandbox_announce(sandbox);
	}
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
	int r = member_kill_all(sandbox, err);

	if (r == 0)
		r = sandbox_run_end(sandbox, false, &by_operator, err);
	if (r < 0)
		return r;
	dependencies_cancel(sandbox);
	/* From here on it is carried through, if need be by the next start, which then does not find half a
	 * workspace. Without room for a mark it is done all the same: a purge makes room. */
	if (unfinished_mark(sandbox->engine, sandbox->id, UNFINISHED_PURGE, &ignored) < 0)
		log_warning("%s", ignored.message);
	fail_point("purge.marked");
	r = driver->ops->clean(driver, sandbox->id, DRIVER_PART_ALL | DRIVER_PART_WORKSPACE, err);
	if (r == 0)
		r = fail_point_check("purge.cleaned", err);
	/* Before the id is free: a new sandbox of it must not find what the old one wrote. */
	if (r == 0)
		sandbox_remove_logs(sandbox);
	if (r == 0)
		baseline_drop(sandbox->engine, sandbox->id);
	fail_point("purge.logs_removed");
	if (r == 0)
		r = sandbox_handle_forget(sandbox, store_workspace_delete, err);
	fail_point("purge.rows_deleted");
	if (r == 0)
		snapshot_files_purge(sandbox->engine, sandbox->id);
	if (r == 0)
		unfinished_clear(sandbox->engine, sandbox->id);
	/* What could not be removed is not found by the next sandbox of its id: see mark_create(). */
	if (r < 0 && sandbox_handle_forget(sandbox, store_sandbox_delete, &ignored) < 0)
		log_error("sandbox %s: %s", sandbox->id, ignored.message);
	if (sandbox->gone) {
		member_forget_all(sandbox);
		sandbox_announce(sandbox);
	}
	return r;
}

int sandbox_purge(
	struct engine *engine, const struct owner *owner, const char *ref, struct err *err)
{
	auto_(sandbox_unrefp) struct sandbox *named = NULL;
	struct workspace_record workspace;
	const char *id = ref;
	int r;

	/* A sandbox that was deleted has lost its name, but it keeps the workspace of its id. */
	if (sandbox_name_is_valid(ref)) {
		r = sandbox_get(engine, owner, ref, &named, err);
		if (r < 0)
			return r;
		id = named->id;
	}
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
		fail_point("purge.held");
		if (r == -EEXIST)
			continue;
		if (r < 0)
			return r;
		r = sandbox->gone ? sandbox_not_found(id, err) : purge(sandbox, err);
		if (finish(sandbox, r) != -ENOENT)
			return r;
	}
	/* It is there, but nothing that clients know: a member of a sandbox, say. */
	return r == -EEXIST ? sandbox_not_found(id, err) : r;
}

int sandbox_purge_left(struct engine *engine, const char *id, struct err *err)
{
	auto_(sandbox_unrefp) struct sandbox *sandbox = NULL;
	struct workspace_record workspace;
	int r = store_workspace_get(engine->config.store, NULL, id, &workspace, err);

	/* Whoever takes the workspace up meanwhile has its id, and we get none. */
	if (r == 0)
		r = claim(engine, &workspace, &sandbox, err);
	return r < 0 ? r : finish(sandbox, purge(sandbox, err));
}

/* Nothing of a create that failed may stay, but a workspace from before does. life is held. */
static int undo_create(struct sandbox *sandbox, struct err *err)
{
	bool keeps = sandbox->record.is_on_kept;
	int r = member_remove_all(sandbox, err);

	if (r == 0)
		r = sandbox_make_undo(sandbox, err);
	if (r == 0)
		r = sandbox_handle_forget(
			sandbox, keeps ? store_sandbox_delete : store_workspace_delete, err);
	if (r == 0)
		unfinished_clear(sandbox->engine, sandbox->id);
	return r;
}

/* What cannot be undone now is left to the reaper, and to the next start of the daemon. life is held. */
static void undo_now_or_later(struct sandbox *sandbox)
{
	struct err err;

	if (undo_create(sandbox, &err) == 0)
		return;
	log_error("undo the creation of sandbox %s, later: %s", sandbox->id, err.message);
	sandbox_ref(sandbox);
	atomic_store(&sandbox->is_undo_due, true);
}

void sandbox_undo_again(struct sandbox *sandbox)
{
	struct err err;

	pthread_mutex_lock(&sandbox->life);
	/* Somebody may have deleted it meanwhile. */
	if (sandbox->gone || undo_create(sandbox, &err) == 0)
		sandbox_cancel_undo(sandbox);
	pthread_mutex_unlock(&sandbox->life);
}

void sandbox_cancel_undo(struct sandbox *sandbox)
{
	if (atomic_exchange(&sandbox->is_undo_due, false))
		sandbox_unref(sandbox);
}

/* Writes the row of a new one, whose life lock is held then; *ret_drafts are those of its members. */
static int add_row(struct engine *engine, const struct sandbox_record *draft,
	struct sandbox **ret_sandbox, json_t **ret_drafts, struct err *err)
{
	struct workspace_record workspace;
	struct sandbox_record record;
	bool kept = false;
	int r = capability_check_record(engine->config.driver, draft, err);

	if (r == 0)
		r = disk_reserve_check(engine, err);
	if (r < 0)
		return r;
	/* Its files would be found by whoever creates one of that id. */
	if (orphan_exists(engine, draft->id))
		return err_explain(err, ERR_CONFLICT, "id_taken", "choose another id, or none",
			"the id %s is taken", draft->id);
	if (draft->id[0]) {
		r = store_workspace_get(
			engine->config.store, &draft->owner, draft->id, &workspace, err);
		if (r < 0 && r != -ENOENT)
			return r;
		kept = r == 0;
	}
	sandbox_record_copy(&record, draft);
	record.status = SANDBOX_CREATING;
	record.reserved_by = NULL;
	record.created_at_ms = record.last_active_at_ms = store_clock_ms(engine->config.store);
	if (record.lifetime_s != SANDBOX_NO_LIMIT)
		record.expires_at_ms = record.created_at_ms + record.lifetime_s * 1000;
	if (!record.id[0])
		id_new(clock_wall_ms(), record.id);
	if (kept && workspace.disk_bytes < 0)
		disk_count_measure(engine, record.id);
	*ret_drafts = member_take_drafts(&record);
	r = sandbox_handle_new(engine, &record, store_sandbox_insert, ret_sandbox, err);
	fail_point("create.row_committed");
	return r;
}

int sandbox_create(struct engine *engine, const struct sandbox_record *draft,
	struct sandbox **ret_sandbox, struct err *err)
{
	json_auto_t *drafts = NULL;
	struct sandbox *sandbox;
	int r = engine->verbs->claim(engine, draft, ret_sandbox, err);

	if (r <= 0)
		return r;
	r = add_row(engine, draft, &sandbox, &drafts, err);
	if (r < 0)
		return r;
	/* It may have come or gone since it was looked for. */
	if (sandbox->record.is_on_kept)
		disk_count_settle(sandbox);
	if (draft->job[0]) {
		/* Whoever asked for it is told at once; it is made when its image is there. */
		sandbox_announce(sandbox);
		late_create_settle_locked(sandbox);
	} else {
		r = member_add(sandbox, drafts, err);
		if (r == 0)
			r = sandbox_make(sandbox, err);
		if (r == 0)
			r = member_start_all(sandbox, true, err);
		if (r < 0)
			undo_now_or_later(sandbox);
	}
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
	if (!draft->project[0] && !draft->session[0])
		return draft->name[0]
			       ? sandbox_get(engine, &draft->owner, draft->name, ret_sandbox, err)
			       : -ENOENT;
	pthread_mutex_lock(&engine->rows_lock);
	r = store_sandbox_find(
		engine->config.store, &draft->owner, draft->project, draft->session, &record, err);
	if (r == 0)
		*ret_sandbox = sandbox_attach(engine, &record);
	pthread_mutex_unlock(&engine->rows_lock);
	return r;
}

/* What is left of one whose start failed is not trusted: its system layer is made anew. Its workspace,
 * id and settings stay. life is held. */
static int rebuild(struct sandbox *sandbox, struct err *err)
{
	int r;

	member_end_all(sandbox, false, &by_operator);
	r = sandbox_run_end(sandbox, false, &by_operator, err);
	if (r == 0)
		r = sandbox_run_clean(sandbox, DRIVER_PART_SYSTEM, err);
	if (r == 0)
		member_renew_all(sandbox);
	if (r == 0)
		r = renew(sandbox, err);
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
			/* It waits for its image, as this draft would. */
			if (late_create_settle(sandbox) && draft->job[0]) {
				*ret_sandbox = take_ptr(&sandbox);
				return 0;
			}
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

static bool runs_now(struct sandbox *sandbox)
{
	bool runs;

	pthread_mutex_lock(&sandbox->state);
	runs = sandbox->record.status == SANDBOX_RUNNING && sandbox->link && !sandbox->ending;
	pthread_mutex_unlock(&sandbox->state);
	return runs;
}

/* A member runs with its sandbox, which is woken with all of them, and alone if it died or could not be started. */
static int wake_member(struct sandbox *member, struct err *err)
{
	auto_(sandbox_unrefp) struct sandbox *primary = member_primary(member);
	int r;

	if (!primary)
		return sandbox_not_found(member->id, err);
	sandbox_note_use(primary);
	if (runs_now(member) && runs_now(primary))
		return 0;
	r = begin(primary, SANDBOX_USE, err);
	if (r == 0)
		r = wake(primary, err);
	if (r >= 0) {
		pthread_mutex_lock(&member->life);
		r = member->gone ? sandbox_not_found(member->id, err) : member_start(member, err);
		pthread_mutex_unlock(&member->life);
	}
	return finish(primary, r);
}

int sandbox_wake_and_use(struct sandbox *sandbox, struct agent_link **ret_link, struct err *err)
{
	int r = 0;

	sandbox_note_use(sandbox);
	if (sandbox->record.parent[0]) {
		r = wake_member(sandbox, err);
	} else if (!runs_now(sandbox)) {
		r = begin(sandbox, SANDBOX_USE, err);
		if (r == 0)
			r = wake(sandbox, err);
		r = finish(sandbox, r);
	}
	return r < 0 ? r : sandbox_link_await(sandbox, ret_link, err);
}

bool sandbox_is_ready(struct sandbox *sandbox)
{
	return ready_check_state(sandbox) == READY_YES;
}

static bool is_occupied(struct sandbox *sandbox)
{
	return atomic_load(&sandbox->visitors) > 0 || process_table_is_watched(sandbox);
}

bool sandbox_is_occupied(struct sandbox *sandbox)
{
	char ids[MEMBERS_MAX][ID_LEN + 1];
	bool occupied = is_occupied(sandbox);
	size_t count = member_list_ids(sandbox, ids);

	/* Who uses a member uses its sandbox. */
	for (size_t i = 0; i < count && !occupied; i++) {
		struct sandbox *member = sandbox_handle_find(sandbox->engine, ids[i]);

		occupied = member && is_occupied(member);
		sandbox_unref(member);
	}
	return occupied;
}

bool sandbox_explain_awake(struct sandbox *sandbox, char text[SANDBOX_AWAKE_MAX])
{
	long long timeout_s;
	bool runs;

	pthread_mutex_lock(&sandbox->state);
	runs = sandbox->record.status == SANDBOX_RUNNING;
	timeout_s = sandbox->record.idle_timeout_s;
	pthread_mutex_unlock(&sandbox->state);
	if (!runs)
		return false;
	if (timeout_s == SANDBOX_NO_LIMIT)
		snprintf(text, SANDBOX_AWAKE_MAX, "it has no idle timeout");
	else if (sandbox_is_occupied(sandbox))
		snprintf(text, SANDBOX_AWAKE_MAX, "a client is connected");
	else if (!process_usage_explain(sandbox, text))
		snprintf(text, SANDBOX_AWAKE_MAX, "it was used less than %lld s ago", timeout_s);
	return true;
}
