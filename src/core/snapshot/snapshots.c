/* SPDX-License-Identifier: Apache-2.0 */
#include "core/snapshot/snapshots.h"

#include "base/clock.h"
#include "base/fail_point.h"
#include "base/log.h"
#include "core/engine/capability.h"
#include "core/engine/disk_reserve.h"
#include "core/engine/sandbox_state.h"
#include "core/sandbox/baseline.h"
#include "core/sandbox/member.h"
#include "core/sandbox/sandbox.h"
#include "core/sandbox/sandbox_run.h"
#include "core/sandbox/snapshot_files.h"
#include "store/sandbox/store_snapshot.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* --- making --- */

static int read_size(struct sandbox *sandbox, uint64_t *ret_bytes, struct err *err)
{
	struct driver *driver = sandbox->engine->config.driver;
	struct driver_usage usage;
	int r = driver->ops->usage(driver, sandbox->id, &usage, err);

	if (r == 0)
		*ret_bytes = usage.bytes;
	return r;
}

/* The row, whose size is not known exactly before the copy is made. life is held. */
static int begin(
	struct sandbox *sandbox, const char *name, struct snapshot_record *record, struct err *err)
{
	struct engine *engine = sandbox->engine;
	int r = capability_need(engine->config.driver, DRIVER_SNAPSHOTS, err);

	if (r == 0)
		r = read_size(sandbox, &record->bytes, err);
	if (r == 0)
		r = disk_reserve_check_more(engine, record->bytes, err);
	if (r < 0)
		return r;
	id_new(clock_wall_ms(), record->id);
	record->owner = sandbox->record.owner;
	memcpy(record->sandbox_id, sandbox->id, sizeof(record->sandbox_id));
	snprintf(record->name, sizeof(record->name), "%s", name);
	record->created_at_ms = store_clock_ms(engine->config.store);
	record->settings = snapshot_record_describe(&sandbox->record);
	json_object_set_new(record->settings, "members", member_describe(sandbox));
	r = store_snapshot_insert(engine->config.store, record, err);
	if (r < 0)
		snapshot_record_fini(record);
	fail_point("snapshot.row_written");
	return r;
}

enum purpose { TO_KEEP, FOR_AN_UNDO, FOR_A_FORK, FOR_FORKS };

/* A sandbox whose files are listed under the id of the snapshot that is made of it. */
struct listing {
	struct sandbox *sandbox;
	const char *snapshot;
};

static void *list_files(void *arg)
{
	const struct listing *listing = arg;
	struct sandbox *sandbox = listing->sandbox;

	baseline_note(sandbox->engine, sandbox->id, sandbox->record.image, listing->snapshot);
	return NULL;
}

/*
 * For a fork, what its sandboxes begin with is listed while it is copied: then nobody waits for that.
 * What the sandbox changes before its disk is frozen may be on one side alone. life is held.
 */
static int copy(struct sandbox *sandbox, struct snapshot_record *record, enum purpose purpose,
	struct err *err)
{
	static const enum driver_copy copies[] = {[TO_KEEP] = DRIVER_COPY_KEPT,
		[FOR_AN_UNDO] = DRIVER_COPY_KEPT,
		[FOR_A_FORK] = DRIVER_COPY_NEXT,
		[FOR_FORKS] = DRIVER_COPY_TEMPORARY};
	struct listing listing = {sandbox, record->id};
	pthread_t thread;
	bool is_beside = copies[purpose] != DRIVER_COPY_KEPT &&
			 pthread_create(&thread, NULL, list_files, &listing) == 0;
	int r = sandbox_run_take_snapshot(
		sandbox, record->id, copies[purpose], &record->bytes, err);

	if (is_beside)
		pthread_join(thread, NULL);
	return r;
}

/* A snapshot that nobody sees yet. */
static int make(struct sandbox *sandbox, const char *name, enum purpose purpose,
	struct snapshot_record *ret_record, struct err *err)
{
	struct snapshot_record record = {
		.status = SNAPSHOT_UNFINISHED, .is_checkpoint = purpose == FOR_AN_UNDO};
	int r;

	pthread_mutex_lock(&sandbox->life);
	sandbox_run_settle(sandbox);
	r = sandbox->gone ? sandbox_not_found(sandbox->id, err)
			  : begin(sandbox, name, &record, err);
	if (r == 0) {
		r = copy(sandbox, &record, purpose, err);
		fail_point("snapshot.taken");
		if (r < 0) {
			snapshot_files_drop(sandbox->engine, record.id);
			snapshot_record_fini(&record);
			err_prefix(err, "no snapshot of sandbox %s", sandbox->id);
		}
	}
	pthread_mutex_unlock(&sandbox->life);
	if (r == 0)
		*ret_record = record;
	return r;
}

static void announce(struct sandbox *sandbox, const char *type, const char *id)
{
	json_auto_t *event = json_pack("{s:s, s:s}", "sandbox", sandbox->id, "snapshot", id);
	auto_free char *text = event ? json_dumps(event, JSON_COMPACT) : NULL;

	if (text)
		sandbox_tell(sandbox, type, text);
}

int snapshots_take(struct sandbox *sandbox, const char *name, bool is_checkpoint,
	struct snapshot_record *ret_record, struct err *err)
{
	struct engine *engine = sandbox->engine;
	struct snapshot_record record;
	int r = make(sandbox, name, is_checkpoint ? FOR_AN_UNDO : TO_KEEP, &record, err);

	if (r < 0)
		return r;
	r = store_snapshot_finish(engine->config.store, record.id, record.bytes, err);
	if (r < 0) {
		snapshot_files_drop(engine, record.id);
		snapshot_record_fini(&record);
		return r;
	}
	record.status = SNAPSHOT_READY;
	announce(sandbox, "sandbox.snapshot", record.id);
	*ret_record = record;
	return 0;
}

int snapshots_remove(
	struct engine *engine, const struct owner *owner, const char *id, struct err *err)
{
	int r = store_snapshot_hide(engine->config.store, owner, id, err);

	fail_point("snapshot.hidden");
	if (r == 0)
		snapshot_files_drop(engine, id);
	return r;
}

/* --- using --- */

const char *snapshots_stack(const json_t *image)
{
	const char *stack = json_string_value(json_object_get(image, "stack"));

	return stack ? stack : "";
}

int snapshots_check_fit(
	struct sandbox *sandbox, const struct snapshot_record *snapshot, struct err *err)
{
	const json_t *settings = snapshot->settings;
	const char *template = json_string_value(json_object_get(settings, "template"));
	struct sandbox_record record;
	bool fits;

	sandbox_read(sandbox, &record);
	fits = strcmp(snapshots_stack(record.image),
		       snapshots_stack(json_object_get(settings, "image"))) == 0 &&
	       (snapshots_stack(record.image)[0] ||
		       (template && strcmp(template, record.template_name) == 0));
	sandbox_record_fini(&record);
	if (fits)
		return 0;
	return err_explain(err, ERR_CONFLICT, "snapshot_of_another_template",
		"create a sandbox from the snapshot instead",
		"snapshot %s was made of template %s, in another version or not that of sandbox %s",
		snapshot->id, template ? template : "host", sandbox->id);
}

int snapshots_restore(
	struct sandbox *sandbox, const struct owner *owner, const char *id, struct err *err)
{
	struct engine *engine = sandbox->engine;
	struct snapshot_record snapshot;
	int r = capability_need(engine->config.driver, DRIVER_SNAPSHOTS, err);

	if (r == 0)
		r = store_snapshot_get(engine->config.store, owner, id, &snapshot, err);
	if (r < 0)
		return r;
	r = snapshots_check_fit(sandbox, &snapshot, err);
	if (r == 0)
		r = disk_reserve_check_more(engine, snapshot.bytes, err);
	if (r == 0)
		r = sandbox_restore(sandbox, snapshot.id, err);
	if (r == 0)
		announce(sandbox, "sandbox.restored", snapshot.id);
	snapshot_record_fini(&snapshot);
	return r;
}

/* The last one needs no copy of its own: it takes the snapshot. */
static int fork_one(struct engine *engine, const struct snapshot_record *snapshot, bool is_last,
	struct sandbox **ret_sandbox, struct err *err)
{
	struct sandbox_record draft;
	int r = is_last ? 0 : disk_reserve_check_more(engine, snapshot->bytes, err);

	if (r < 0)
		return r;
	snapshot_record_draft(snapshot, engine->config.driver->ops->name, &draft);
	draft.takes_snapshot = is_last;
	r = sandbox_create(engine, &draft, ret_sandbox, err);
	sandbox_record_fini(&draft);
	return r;
}

int snapshots_fork(
	struct sandbox *sandbox, unsigned count, struct snapshots_fork *ret_fork, struct err *err)
{
	struct snapshots_fork fork = {0};
	struct snapshot_record snapshot;
	int r = make(sandbox, "", count == 1 ? FOR_A_FORK : FOR_FORKS, &snapshot, err);

	if (r < 0)
		return r;
	for (unsigned i = 0; i < count; i++) {
		struct err *failure = &fork.failures[fork.failure_count];
		int made = fork_one(sandbox->engine, &snapshot, i + 1 == count,
			&fork.made[fork.made_count], failure);

		if (made == 0)
			fork.made_count++;
		else
			fork.failure_count++;
		r = made < 0 ? made : r;
	}
	snapshot_files_drop(sandbox->engine, snapshot.id);
	snapshot_record_fini(&snapshot);
	if (fork.made_count == 0) {
		*err = fork.failures[0];
		return r;
	}
	*ret_fork = fork;
	return 0;
}
