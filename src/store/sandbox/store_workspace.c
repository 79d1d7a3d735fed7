/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What remains of a sandbox when it is deleted: its id, its owner, and what its disk counts.
 *
 * A disk counts the highest limit that it had, because that much may be on it. The number becomes smaller only
 * when somebody has measured what is on the disk.
 */
#include "base/fail_point.h"
#include "store/store_private.h"

#include <stdio.h>
#include <string.h>

static void read_workspace(struct db_stmt *stmt, struct workspace_record *record)
{
	store_read_text(stmt, 0, record->id, sizeof(record->id));
	store_read_text(stmt, 1, record->owner.organization, MODEL_NAME_MAX);
	store_read_text(stmt, 2, record->owner.user, MODEL_NAME_MAX);
	record->created_at_ms = db_column_int(stmt, 3);
	record->disk_bytes = db_column_int(stmt, 4);
	record->output_bytes = db_column_int(stmt, 5);
	record->removed_at_ms = db_column_int(stmt, 6);
	store_read_text(stmt, 7, record->name, sizeof(record->name));
}

/* 1 if it is there, 0 if there is no such row. The lock is held. */
static int find_workspace(struct store *store, const struct owner *owner, const char *id,
	struct workspace_record *record, struct err *err)
{
	struct db_stmt *stmt = store_use(store, Q_WORKSPACE_GET);
	int code, r;

	db_bind_text(stmt, 1, id);
	store_bind_owner(stmt, owner);
	code = db_step(stmt);
	if (code == DB_ROW)
		read_workspace(stmt, record);
	if (code == DB_ROW || code == DB_DONE)
		r = code == DB_ROW;
	else
		r = store_fail(store, "read a workspace", err);
	db_reset(stmt);
	return r;
}

static int insert_workspace(
	struct store *store, const struct sandbox_record *record, struct err *err)
{
	struct db_stmt *stmt = store_use(store, Q_WORKSPACE_INSERT);

	db_bind_text(stmt, 1, record->id);
	db_bind_text(stmt, 2, record->owner.organization);
	db_bind_text(stmt, 3, record->owner.user);
	db_bind_int(stmt, 4, record->created_at_ms);
	db_bind_int(stmt, 5, (int64_t)record->resources.disk_bytes);
	return db_run(stmt, "add a workspace", err);
}

/* How much more a disk counts when its limit is `to`. One that was not measured yet counts nothing. */
static uint64_t growth_of(int64_t from, uint64_t to)
{
	uint64_t counted = from > 0 ? (uint64_t)from : 0;

	return to > counted ? to - counted : 0;
}

int store_workspace_grow(struct store *store, const char *id, uint64_t disk_bytes, struct err *err)
{
	struct db_stmt *stmt = store_use(store, Q_WORKSPACE_GROW);

	db_bind_text(stmt, 1, id);
	db_bind_int(stmt, 2, (int64_t)disk_bytes);
	return db_run(stmt, "grow a workspace", err);
}

int store_workspace_claim(struct store *store, struct sandbox_record *record,
	struct workspace_claim *ret_claim, struct err *err)
{
	uint64_t disk_bytes = record->resources.disk_bytes;
	struct workspace_record kept;
	int r;

	*ret_claim = (struct workspace_claim){.disk_growth = disk_bytes};
	r = find_workspace(store, NULL, record->id, &kept, err);
	if (r < 0)
		return r;
	if (r == 1) {
		if (strcmp(kept.owner.organization, record->owner.organization) != 0 ||
			strcmp(kept.owner.user, record->owner.user) != 0)
			return err_explain(err, ERR_CONFLICT, "id_taken",
				"choose another id, or none", "the id %s is taken", record->id);
		ret_claim->disk_growth = growth_of(kept.disk_bytes, disk_bytes);
		return store_workspace_grow(store, record->id, disk_bytes, err);
	}
	ret_claim->is_fresh = true;
	return insert_workspace(store, record, err);
}

int store_workspace_get(struct store *store, const struct owner *owner, const char *id,
	struct workspace_record *ret_record, struct err *err)
{
	int r;

	pthread_mutex_lock(&store->lock);
	r = find_workspace(store, owner, id, ret_record, err);
	pthread_mutex_unlock(&store->lock);
	if (r < 0)
		return r;
	return r == 0 ? sandbox_not_found(id, err) : 0;
}

/* Copies the next rows: how many. */
static int read_page(struct store *store, const struct owner *owner, const char *after,
	unsigned limit, struct workspace_record page[STORE_PAGE], struct err *err)
{
	struct db_stmt *stmt;
	int code, count = 0;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_WORKSPACE_LIST);
	db_bind_text(stmt, 1, after);
	db_bind_int(stmt, 2, store_page(limit));
	store_bind_owner(stmt, owner);
	while ((code = db_step(stmt)) == DB_ROW)
		read_workspace(stmt, &page[count++]);
	if (code != DB_DONE)
		count = store_fail(store, "list workspaces", err);
	db_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	return count;
}

int store_workspace_list(struct store *store, const struct owner *owner, const char *after,
	unsigned limit, bool (*each)(const struct workspace_record *record, void *arg), void *arg,
	struct err *err)
{
	char last[ID_LEN + 1];

	snprintf(last, sizeof(last), "%s", after ? after : "");
	while (limit > 0) {
		struct workspace_record page[STORE_PAGE];
		int count = read_page(store, owner, last, limit, page, err);

		for (int i = 0; i < count; i++) {
			if (!each(&page[i], arg))
				return 0;
		}
		if (count < 0)
			return count;
		if (count < (int)store_page(limit))
			return 0;
		limit -= (unsigned)count;
		memcpy(last, page[count - 1].id, sizeof(last));
	}
	return 0;
}

int store_workspace_due(struct store *store, int64_t now_ms, int64_t until_ms,
	char ids[][ID_LEN + 1], unsigned max, struct err *err)
{
	struct db_stmt *stmt;
	int code, count;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_WORKSPACE_NOTE_REMOVED);
	db_bind_int(stmt, 1, now_ms);
	count = db_run(stmt, "note when workspaces were left", err);
	if (count == 0) {
		stmt = store_use(store, Q_WORKSPACE_DUE);
		db_bind_int(stmt, 1, until_ms);
		db_bind_int(stmt, 2, max);
		while ((code = db_step(stmt)) == DB_ROW)
			store_read_text(stmt, 0, ids[count++], ID_LEN + 1);
		if (code != DB_DONE)
			count = store_fail(store, "look for workspaces that are due", err);
		db_reset(stmt);
	}
	pthread_mutex_unlock(&store->lock);
	return count;
}

static int write_disk(
	struct store *store, enum query query, const char *id, uint64_t disk_bytes, struct err *err)
{
	struct db_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, query);
	db_bind_text(stmt, 1, id);
	db_bind_int(stmt, 2, (int64_t)disk_bytes);
	r = db_run(stmt, "note the size of a workspace", err);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_workspace_set_disk(
	struct store *store, const char *id, uint64_t disk_bytes, struct err *err)
{
	return write_disk(store, Q_WORKSPACE_SET_DISK, id, disk_bytes, err);
}

int store_workspace_note_measured(
	struct store *store, const char *id, uint64_t disk_bytes, struct err *err)
{
	return write_disk(store, Q_WORKSPACE_MEASURED, id, disk_bytes, err);
}

int store_workspace_set_output(
	struct store *store, const char *id, uint64_t output_bytes, struct err *err)
{
	return write_disk(store, Q_WORKSPACE_SET_OUTPUT, id, output_bytes, err);
}

int store_workspace_unmeasured(struct store *store, const char *after, char ids[][ID_LEN + 1],
	unsigned max, struct err *err)
{
	struct db_stmt *stmt;
	int code, count = 0;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_WORKSPACE_UNMEASURED);
	db_bind_text(stmt, 1, after);
	db_bind_int(stmt, 2, max);
	while ((code = db_step(stmt)) == DB_ROW)
		store_read_text(stmt, 0, ids[count++], ID_LEN + 1);
	if (code != DB_DONE)
		count = store_fail(store, "look for workspaces of unknown size", err);
	db_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	return count;
}

static int delete_by_id(struct store *store, enum query query, const char *id, struct err *err)
{
	struct db_stmt *stmt = store_use(store, query);

	db_bind_text(stmt, 1, id);
	return db_run(stmt, "delete a workspace", err);
}

int store_workspace_delete(struct store *store, const char *id, struct err *err)
{
	struct workspace_record workspace;
	int r;

	pthread_mutex_lock(&store->lock);
	r = find_workspace(store, NULL, id, &workspace, err);
	if (r <= 0) {
		pthread_mutex_unlock(&store->lock);
		return r;
	}
	r = db_begin(store->db, err);
	if (r == 0) {
		r = delete_by_id(store, Q_SANDBOX_DELETE, id, err);
		if (r == 0)
			r = delete_by_id(store, Q_PROCESS_FORGET, id, err);
		if (r == 0)
			r = fail_point_check("purge.rows_half_deleted", err);
		if (r == 0)
			r = delete_by_id(store, Q_WORKSPACE_DELETE, id, err);
		/* They go with the workspace; from now on nobody sees them. */
		if (r == 0)
			r = delete_by_id(store, Q_CHECKPOINTS_HIDE, id, err);
		if (r == 0)
			r = db_commit(store->db, err);
		if (r < 0)
			db_rollback(store->db);
		else
			store_stamp(store);
	}
	pthread_mutex_unlock(&store->lock);
	return r;
}
