/* SPDX-License-Identifier: Apache-2.0 */
#include "core/snapshot/checkpoints.h"

#include "core/engine/sandbox_state.h"
#include "core/snapshot/changes.h"
#include "store/sandbox/store_snapshot.h"

#include <stdio.h>
#include <string.h>

/* The checkpoints of a sandbox, the oldest first. */
struct checkpoint_list {
	char ids[STORE_SNAPSHOTS_MAX][ID_LEN + 1];
	size_t count;
};

static bool note(const struct snapshot_record *record, void *arg)
{
	struct checkpoint_list *list = arg;

	if (record->is_checkpoint && list->count < array_len(list->ids))
		memcpy(list->ids[list->count++], record->id, sizeof(record->id));
	return true;
}

static int read_list(
	struct sandbox *sandbox, struct owner *owner, struct checkpoint_list *list, struct err *err)
{
	struct sandbox_record record;

	sandbox_read(sandbox, &record);
	*owner = record.owner;
	sandbox_record_fini(&record);
	return store_snapshot_list(sandbox->engine->config.store, owner, sandbox->id, "",
		STORE_SNAPSHOTS_MAX, note, list, err);
}

/* --- making --- */

static bool stop_at_first(const struct change *change, void *arg)
{
	(void)change;
	*(bool *)arg = true;
	return false;
}

/* What cannot be compared counts as changed: one copy too many harms less than one too few. */
static bool has_changed(struct sandbox *sandbox, const struct owner *owner, const char *id)
{
	struct snapshot_record last;
	bool is_changed = false;
	struct err ignored;
	int r;

	if (store_snapshot_get(sandbox->engine->config.store, owner, id, &last, &ignored) < 0)
		return true;
	r = changes_find(sandbox,
		&(struct changes_query){
			.since = &last, .after = "", .each = stop_at_first, .arg = &is_changed},
		&ignored);
	snapshot_record_fini(&last);
	return r < 0 || is_changed;
}

static void drop_oldest(
	struct sandbox *sandbox, const struct owner *owner, const struct checkpoint_list *list)
{
	struct err ignored;

	/* One that goes meanwhile by itself is no matter. */
	for (size_t i = 0; i + CHECKPOINTS_MAX <= list->count; i++)
		(void)!snapshots_remove(sandbox->engine, owner, list->ids[i], &ignored);
}

int checkpoints_take(struct sandbox *sandbox, char ret_id[ID_LEN + 1], struct err *err)
{
	auto_free struct checkpoint_list *list = mem_new(sizeof(*list));
	struct snapshot_record made;
	struct owner owner;
	int r = read_list(sandbox, &owner, list, err);

	if (r < 0)
		return r;
	if (list->count > 0 && !has_changed(sandbox, &owner, list->ids[list->count - 1])) {
		memcpy(ret_id, list->ids[list->count - 1], ID_LEN + 1);
		return 0;
	}
	r = snapshots_take(sandbox, "", true, &made, err);
	if (r < 0)
		return r;
	memcpy(ret_id, made.id, sizeof(made.id));
	snapshot_record_fini(&made);
	drop_oldest(sandbox, &owner, list);
	return 0;
}

/* --- going back --- */

int checkpoints_undo(struct sandbox *sandbox, char ret_id[ID_LEN + 1], struct err *err)
{
	auto_free struct checkpoint_list *list = mem_new(sizeof(*list));
	struct owner owner;
	const char *last;
	int r = read_list(sandbox, &owner, list, err);

	if (r < 0)
		return r;
	if (list->count == 0)
		return err_explain(err, ERR_CONFLICT, "no_checkpoint",
			"run commands with checkpoint: true, or restore a snapshot",
			"sandbox %s has no checkpoint to go back to", sandbox->id);
	last = list->ids[list->count - 1];
	r = snapshots_restore(sandbox, &owner, last, err);
	/* If the daemon dies here, the next undo does the same again. */
	if (r == 0)
		r = snapshots_remove(sandbox->engine, &owner, last, err);
	if (r == 0)
		memcpy(ret_id, last, ID_LEN + 1);
	return r;
}
