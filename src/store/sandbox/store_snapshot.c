/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sandbox/store_snapshot.h"

#include "store/store_private.h"

#include <stdio.h>
#include <string.h>

static void read_record(struct db_stmt *stmt, struct snapshot_record *record)
{
	*record = (struct snapshot_record){.status = (enum snapshot_status)db_column_int(stmt, 1),
		.is_checkpoint = db_column_int(stmt, 6) != 0,
		.bytes = (uint64_t)db_column_int(stmt, 7),
		.created_at_ms = db_column_int(stmt, 8),
		.settings = store_read_json(stmt, 9)};
	store_read_text(stmt, 0, record->id, sizeof(record->id));
	store_read_text(stmt, 2, record->owner.organization, sizeof(record->owner.organization));
	store_read_text(stmt, 3, record->owner.user, sizeof(record->owner.user));
	store_read_text(stmt, 4, record->sandbox_id, sizeof(record->sandbox_id));
	store_read_text(stmt, 5, record->name, sizeof(record->name));
}

/* --- with the lock held --- */

static int insert_row(struct store *store, const struct snapshot_record *record, struct err *err)
{
	struct db_stmt *stmt = store_use(store, Q_SNAPSHOT_INSERT);
	int r;

	db_bind_text(stmt, 1, record->id);
	db_bind_int(stmt, 2, SNAPSHOT_UNFINISHED);
	db_bind_text(stmt, 3, record->owner.organization);
	db_bind_text(stmt, 4, record->owner.user);
	db_bind_text(stmt, 5, record->sandbox_id);
	db_bind_text(stmt, 6, record->name);
	db_bind_int(stmt, 7, record->is_checkpoint);
	db_bind_int(stmt, 8, (int64_t)record->bytes);
	db_bind_int(stmt, 9, record->created_at_ms);
	store_bind_json(stmt, 10, record->settings);
	db_bind_int(stmt, 11, STORE_SNAPSHOTS_MAX);
	r = db_run(stmt, "add a snapshot", err);
	if (r == 0 && db_changes(store->db) == 0)
		r = err_explain(err, ERR_RATE, "too_many_snapshots",
			"delete some that are not needed", "there are %d snapshots already",
			STORE_SNAPSHOTS_MAX);
	return r;
}

/* Runs a statement that changes the row of an id: how many rows it changed. */
static int change(struct store *store, struct db_stmt *stmt, const char *what, struct err *err)
{
	int r = db_run(stmt, what, err);

	return r < 0 ? r : (int)db_changes(store->db);
}

/* --- for everybody --- */

int store_snapshot_insert(
	struct store *store, const struct snapshot_record *record, struct err *err)
{
	struct quota_amounts growth = {.of = {[QUOTA_DISK] = record->bytes}};
	int r;

	pthread_mutex_lock(&store->lock);
	r = db_begin(store->db, err);
	if (r == 0) {
		r = insert_row(store, record, err);
		if (r == 0)
			r = store_quota_check(store, &record->owner, &growth, err);
		if (r == 0)
			r = db_commit(store->db, err);
		if (r < 0)
			db_rollback(store->db);
	}
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_snapshot_finish(struct store *store, const char *id, uint64_t bytes, struct err *err)
{
	struct db_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_SNAPSHOT_FINISH);
	db_bind_text(stmt, 1, id);
	db_bind_int(stmt, 2, SNAPSHOT_READY);
	db_bind_int(stmt, 3, (int64_t)bytes);
	r = change(store, stmt, "finish a snapshot", err);
	pthread_mutex_unlock(&store->lock);
	return r < 0 ? r : 0;
}

int store_snapshot_get(struct store *store, const struct owner *owner, const char *id,
	struct snapshot_record *ret_record, struct err *err)
{
	struct db_stmt *stmt;
	int code, r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_SNAPSHOT_GET);
	db_bind_text(stmt, 1, id);
	db_bind_int(stmt, 2, SNAPSHOT_READY);
	store_bind_owner(stmt, owner);
	code = db_step(stmt);
	r = code == DB_ROW || code == DB_DONE ? 0 : store_fail(store, "read a snapshot", err);
	if (code == DB_ROW)
		read_record(stmt, ret_record);
	db_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	return r < 0 || code == DB_ROW ? r : snapshot_not_found(id, err);
}

static int read_page(struct store *store, const struct owner *owner, const char *sandbox_id,
	const char *after, unsigned limit, struct snapshot_record *page, struct err *err)
{
	struct db_stmt *stmt;
	int code, count = 0, r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_SNAPSHOT_LIST);
	db_bind_text(stmt, 1, after);
	db_bind_int(stmt, 2, SNAPSHOT_READY);
	store_bind_optional(stmt, 3, sandbox_id ? sandbox_id : "");
	db_bind_int(stmt, 4, limit);
	store_bind_owner(stmt, owner);
	while ((code = db_step(stmt)) == DB_ROW)
		read_record(stmt, &page[count++]);
	r = code == DB_DONE ? count : store_fail(store, "list snapshots", err);
	db_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	for (int i = 0; r < 0 && i < count; i++)
		snapshot_record_fini(&page[i]);
	return r;
}

int store_snapshot_list(struct store *store, const struct owner *owner, const char *sandbox_id,
	const char *after, unsigned limit,
	bool (*each)(const struct snapshot_record *record, void *arg), void *arg, struct err *err)
{
	auto_free struct snapshot_record *page = mem_new(STORE_PAGE * sizeof(*page));
	char last[ID_LEN + 1];
	unsigned left = limit, asked;
	bool wants_more = true;
	int count;

	snprintf(last, sizeof(last), "%s", after);
	do {
		asked = store_page(left);
		count = read_page(store, owner, sandbox_id, last, asked, page, err);
		for (int i = 0; i < count; i++) {
			wants_more = wants_more && each(&page[i], arg);
			memcpy(last, page[i].id, sizeof(last));
			snapshot_record_fini(&page[i]);
		}
		left -= count > 0 ? (unsigned)count : 0;
	} while (wants_more && count > 0 && (unsigned)count == asked && left > 0);
	return count < 0 ? count : 0;
}

int store_snapshot_hide(
	struct store *store, const struct owner *owner, const char *id, struct err *err)
{
	struct db_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_SNAPSHOT_HIDE);
	db_bind_text(stmt, 1, id);
	db_bind_int(stmt, 2, SNAPSHOT_UNFINISHED);
	db_bind_int(stmt, 3, SNAPSHOT_READY);
	store_bind_owner(stmt, owner);
	r = change(store, stmt, "remove a snapshot", err);
	pthread_mutex_unlock(&store->lock);
	return r < 0 ? r : r > 0 ? 0 : snapshot_not_found(id, err);
}

int store_snapshot_delete(struct store *store, const char *id, struct err *err)
{
	struct db_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_SNAPSHOT_DELETE);
	db_bind_text(stmt, 1, id);
	r = db_run(stmt, "delete a snapshot", err);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_snapshot_unfinished(struct store *store, const char *sandbox_id, const char *after,
	char ids[][ID_LEN + 1], unsigned max, struct err *err)
{
	struct db_stmt *stmt;
	int code, count = 0;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_SNAPSHOT_UNFINISHED);
	db_bind_text(stmt, 1, after);
	db_bind_int(stmt, 2, SNAPSHOT_UNFINISHED);
	db_bind_int(stmt, 3, max);
	store_bind_optional(stmt, 4, sandbox_id ? sandbox_id : "");
	while ((code = db_step(stmt)) == DB_ROW)
		store_read_text(stmt, 0, ids[count++], ID_LEN + 1);
	if (code != DB_DONE)
		count = store_fail(store, "look for unfinished snapshots", err);
	db_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	return count;
}

int store_snapshot_is_known(struct store *store, const char *id, struct err *err)
{
	struct db_stmt *stmt;
	int code;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_SNAPSHOT_IS_KNOWN);
	db_bind_text(stmt, 1, id);
	code = db_step(stmt);
	db_reset(stmt);
	if (code != DB_ROW && code != DB_DONE)
		code = store_fail(store, "look for a snapshot", err);
	else
		code = code == DB_ROW;
	pthread_mutex_unlock(&store->lock);
	return code;
}
