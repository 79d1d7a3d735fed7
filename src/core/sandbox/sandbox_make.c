/* SPDX-License-Identifier: Apache-2.0 */
#include "core/sandbox/sandbox_make.h"

#include "base/fail_point.h"
#include "base/log.h"
#include "core/engine/sandbox_row.h"
#include "core/process/ready_check.h"
#include "core/process/start_command.h"
#include "core/sandbox/baseline.h"
#include "core/sandbox/disk_count.h"
#include "core/sandbox/sandbox_link.h"
#include "core/sandbox/sandbox_prepare.h"
#include "core/sandbox/sandbox_run.h"
#include "core/sandbox/unfinished.h"

int sandbox_make_up(struct sandbox *sandbox, struct err *err)
{
	static const struct termination by_operator = {.reason = END_OPERATOR};
	struct err ignored;
	int r = sandbox_run_begin(sandbox, err);

	if (r < 0)
		return r;
	r = sandbox_prepare(sandbox, err);
	fail_point("run.prepared");
	if (r < 0 && sandbox_run_end(sandbox, false, &by_operator, &ignored) < 0)
		log_error("sandbox %s: %s", sandbox->id, ignored.message);
	return r;
}

/* What is made before it is asked for stays out of the way of what was asked for. life is held. */
static void step_back(struct sandbox *sandbox)
{
	struct driver *driver = sandbox->engine->config.driver;
	struct err err;

	if (sandbox->record.is_waiting && driver_can(driver, DRIVER_LIVE_RESIZE) &&
		driver->ops->set_limits(
			driver, sandbox->id, &sandbox->record.resources, true, &err) < 0)
		log_warning("sandbox %s: %s", sandbox->id, err.message);
}

int sandbox_make_live(struct sandbox *sandbox, struct err *err)
{
	int r = fail_point_check("run.before_row", err);

	if (r == 0)
		r = sandbox_row_write_running(sandbox, err);
	fail_point("run.row_written");
	if (r == 0) {
		step_back(sandbox);
		start_command_apply(sandbox);
		ready_check_begin(sandbox);
	}
	fail_point("run.commands_started");
	return r;
}

/*
 * The row has made the id ours, and no file was made yet: those that come are removed if we do not finish.
 * What a delete or purge could not remove goes before the new sandbox would find it. life is held.
 */
static int mark_create(struct sandbox *sandbox, struct err *err)
{
	enum unfinished before = UNFINISHED_NOTHING;
	bool is_on_kept = sandbox->record.is_on_kept;
	int r = 0;

	if (is_on_kept)
		r = unfinished_read(sandbox->engine, sandbox->id, &before, err);
	if (r == 0 && before == UNFINISHED_DELETE)
		r = sandbox_run_clean(sandbox, DRIVER_PART_ALL, err);
	if (r == 0 && before == UNFINISHED_PURGE) {
		r = sandbox_run_clean(sandbox, DRIVER_PART_ALL | DRIVER_PART_WORKSPACE, err);
		is_on_kept = r < 0;
	}
	pthread_mutex_lock(&sandbox->state);
	sandbox->record.is_on_kept = is_on_kept;
	pthread_mutex_unlock(&sandbox->state);
	if (r < 0)
		return r;
	/* Of a system from before, or all of an earlier one of this id that was cut short. */
	if (is_on_kept)
		baseline_drop_system(sandbox->engine, sandbox->id);
	else
		baseline_drop(sandbox->engine, sandbox->id);
	return unfinished_mark(sandbox->engine, sandbox->id,
		is_on_kept ? UNFINISHED_RECREATE : UNFINISHED_CREATE, err);
}

static void *note_files(void *arg)
{
	struct sandbox *sandbox = arg;

	baseline_note_snapshot(
		sandbox->engine, sandbox->record.snapshot, sandbox->record.image, sandbox->id);
	return NULL;
}

/* The files of a snapshot are listed while they are copied; before, if the snapshot becomes the copy. */
static int load_and_note(struct sandbox *sandbox, struct err *err)
{
	struct driver *driver = sandbox->engine->config.driver;
	const struct sandbox_record *record = &sandbox->record;
	bool is_known = baseline_share(sandbox->engine, record->snapshot, sandbox->id);
	pthread_t thread;
	bool is_beside = !is_known && !record->takes_snapshot &&
			 pthread_create(&thread, NULL, note_files, sandbox) == 0;
	int r;

	if (!is_known && !is_beside)
		note_files(sandbox);
	r = driver->ops->load_snapshot(
		driver, sandbox->id, record->snapshot, record->takes_snapshot, err);
	if (is_beside)
		pthread_join(thread, NULL);
	return r;
}

/* Before its first start: a workspace from before is not given up for a snapshot. life is held. */
static int load_files(struct sandbox *sandbox, struct err *err)
{
	if (sandbox->record.is_on_kept)
		return err_explain(err, ERR_CONFLICT, "workspace_exists",
			"choose another id, or none; or create it without a snapshot, then restore "
			"it",
			"sandbox %s has a workspace from before", sandbox->id);
	return load_and_note(sandbox, err);
}

int sandbox_make(struct sandbox *sandbox, struct err *err)
{
	int r = mark_create(sandbox, err);

	if (r == 0 && sandbox->record.snapshot[0])
		r = load_files(sandbox, err);
	if (r == 0)
		r = sandbox_make_up(sandbox, err);
	if (r == 0)
		r = sandbox_make_live(sandbox, err);
	if (r == 0)
		unfinished_clear(sandbox->engine, sandbox->id);
	return r;
}

int sandbox_make_undo(struct sandbox *sandbox, struct err *err)
{
	static const struct termination by_operator = {.reason = END_OPERATOR};
	struct driver *driver = sandbox->engine->config.driver;
	bool keeps = sandbox->record.is_on_kept;
	int r = driver->ops->stop(driver, sandbox->id, NULL, err);

	fail_point("create.undo_stopped");
	sandbox_link_close(sandbox, &by_operator);
	if (r == 0)
		r = driver->ops->clean(driver, sandbox->id,
			DRIVER_PART_ALL | (keeps ? 0 : DRIVER_PART_WORKSPACE), err);
	fail_point("create.undo_cleaned");
	if (r == 0 && !keeps)
		baseline_drop(sandbox->engine, sandbox->id);
	if (r == 0 && keeps)
		disk_count_reduce(sandbox->engine, sandbox->id);
	return r;
}
