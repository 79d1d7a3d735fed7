/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What remains of a sandbox when it is deleted: its id, its owner and its uid range.
 */
#include "store/store_private.h"

#include <errno.h>
#include <string.h>

int store_workspace_load(struct store *store, struct err *err)
{
	sqlite3_stmt *stmt = store_use(store, Q_WORKSPACE_SLOTS);
	int code;

	while ((code = sqlite3_step(stmt)) == SQLITE_ROW)
		slot_set_mark(&store->slots, (uint32_t)sqlite3_column_int64(stmt, 0));
	sqlite3_reset(stmt);
	return code == SQLITE_DONE ? 0 : store_fail(store, "read uid ranges", err);
}

void store_workspace_take_turns(struct store *store)
{
	slot_set_take_turns(&store->slots);
}

uint32_t store_workspace_next_slot(struct store *store)
{
	uint32_t slot;

	pthread_mutex_lock(&store->lock);
	slot = slot_set_next(&store->slots);
	pthread_mutex_unlock(&store->lock);
	return slot;
}

static int read_workspace(struct store *store, const struct owner *owner, const char *id,
	struct workspace_record *record)
{
	sqlite3_stmt *stmt = store_use(store, Q_WORKSPACE_GET);
	int code;

	store_bind_text(stmt, 1, id);
	store_bind_owner(stmt, owner);
	code = sqlite3_step(stmt);
	if (code == SQLITE_ROW) {
		store_read_text(stmt, 0, record->id, sizeof(record->id));
		store_read_text(stmt, 1, record->owner.organization, MODEL_NAME_MAX);
		store_read_text(stmt, 2, record->owner.user, MODEL_NAME_MAX);
		record->slot = (uint32_t)sqlite3_column_int64(stmt, 3);
		record->created_at_ms = sqlite3_column_int64(stmt, 4);
	}
	sqlite3_reset(stmt);
	return code == SQLITE_ROW ? 0 : -ENOENT;
}

static int take_slot(struct store *store, uint32_t *ret_slot, struct err *err)
{
	uint32_t slot = slot_set_take(&store->slots);

	if (slot == KEEPER_SLOT_COUNT)
		return err_explain(err, ERR_UNAVAILABLE, "no_uid_range",
			"purge sandboxes that are not needed",
			"all %d uid ranges are taken by sandboxes and kept workspaces",
			KEEPER_SLOT_COUNT);
	*ret_slot = slot;
	return 0;
}

int store_workspace_claim(
	struct store *store, struct sandbox_record *record, bool *ret_fresh, struct err *err)
{
	struct workspace_record kept;
	sqlite3_stmt *stmt;
	int r;

	*ret_fresh = false;
	if (read_workspace(store, NULL, record->id, &kept) == 0) {
		if (strcmp(kept.owner.organization, record->owner.organization) != 0 ||
			strcmp(kept.owner.user, record->owner.user) != 0)
			return err_explain(err, ERR_CONFLICT, "id_taken",
				"choose another id, or none", "the id %s is taken", record->id);
		record->slot = kept.slot;
		return 0;
	}
	r = take_slot(store, &record->slot, err);
	if (r < 0)
		return r;
	*ret_fresh = true;
	stmt = store_use(store, Q_WORKSPACE_INSERT);
	store_bind_text(stmt, 1, record->id);
	store_bind_text(stmt, 2, record->owner.organization);
	store_bind_text(stmt, 3, record->owner.user);
	sqlite3_bind_int64(stmt, 4, record->slot);
	sqlite3_bind_int64(stmt, 5, record->created_at_ms);
	return store_run(store, stmt, "add a workspace", err);
}

int store_workspace_get(struct store *store, const struct owner *owner, const char *id,
	struct workspace_record *ret_record, struct err *err)
{
	int r;

	pthread_mutex_lock(&store->lock);
	r = read_workspace(store, owner, id, ret_record);
	pthread_mutex_unlock(&store->lock);
	return r < 0 ? sandbox_not_found(id, err) : 0;
}

static int delete_by_id(struct store *store, enum query query, const char *id, struct err *err)
{
	sqlite3_stmt *stmt = store_use(store, query);

	store_bind_text(stmt, 1, id);
	return store_run(store, stmt, "delete a workspace", err);
}

int store_workspace_delete(struct store *store, const char *id, struct err *err)
{
	struct workspace_record workspace;
	int r;

	pthread_mutex_lock(&store->lock);
	if (read_workspace(store, NULL, id, &workspace) < 0) {
		pthread_mutex_unlock(&store->lock);
		return 0;
	}
	r = store_run(store, store_use(store, Q_BEGIN), "begin", err);
	if (r == 0) {
		r = delete_by_id(store, Q_SANDBOX_DELETE, id, err);
		if (r == 0)
			r = delete_by_id(store, Q_PROCESS_FORGET, id, err);
		if (r == 0)
			r = delete_by_id(store, Q_WORKSPACE_DELETE, id, err);
		if (r == 0)
			r = store_run(store, store_use(store, Q_COMMIT), "commit", err);
		if (r < 0)
			(void)!store_run(store, store_use(store, Q_ROLLBACK), "roll back", NULL);
		else
			slot_set_free(&store->slots, workspace.slot);
	}
	pthread_mutex_unlock(&store->lock);
	return r;
}
