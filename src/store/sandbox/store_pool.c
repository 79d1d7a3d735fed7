/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sandbox/store_pool.h"

#include "base/fail_point.h"
#include "store/store_private.h"

#include <string.h>

#define POOLED_MAX                                                                                 \
	1024 /* rows of a list; there are fewer, because they are all running sandboxes */

static int run_with_id(
	struct store *store, enum query query, const char *id, const char *what, struct err *err)
{
	struct db_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, query);
	db_bind_text(stmt, 1, id);
	r = db_run(stmt, what, err);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_pool_add(struct store *store, const struct pooled_record *record, struct err *err)
{
	struct db_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_POOLED_ADD);
	db_bind_text(stmt, 1, record->id);
	db_bind_text(stmt, 2, record->owner.organization);
	db_bind_text(stmt, 3, record->owner.user);
	db_bind_text(stmt, 4, record->template_name);
	db_bind_text(stmt, 5, record->stamp);
	db_bind_int(stmt, 6, record->state);
	db_bind_int(stmt, 7, record->created_at_ms);
	r = db_run(stmt, "note a sandbox of a pool", err);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_pool_note_ready(struct store *store, const char *id, struct err *err)
{
	return run_with_id(store, Q_POOLED_READY, id, "note that a sandbox is ready", err);
}

int store_pool_drain(struct store *store, const char *id, struct err *err)
{
	struct db_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_POOLED_DRAIN);
	db_bind_text(stmt, 1, id);
	r = db_run(stmt, "drain a sandbox of a pool", err);
	if (r == 0)
		r = db_changes(store->db) == 0;
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_pool_delete(struct store *store, const char *id, struct err *err)
{
	return run_with_id(store, Q_POOLED_DELETE, id, "forget a sandbox of a pool", err);
}

int store_pool_has(
	struct store *store, const char *id, enum pooled_state *ret_state, struct err *err)
{
	struct db_stmt *stmt;
	int code, r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_POOLED_HAS);
	db_bind_text(stmt, 1, id);
	code = db_step(stmt);
	if (code == DB_ROW)
		*ret_state = (enum pooled_state)db_column_int(stmt, 0);
	db_reset(stmt);
	r = code == DB_ROW    ? 1
	    : code == DB_DONE ? 0
			      : store_fail(store, "find a sandbox of a pool", err);
	pthread_mutex_unlock(&store->lock);
	return r;
}

static void read_pooled(struct db_stmt *stmt, struct pooled_record *record)
{
	store_read_text(stmt, 0, record->id, sizeof(record->id));
	store_read_text(stmt, 1, record->owner.organization, MODEL_NAME_MAX);
	store_read_text(stmt, 2, record->owner.user, MODEL_NAME_MAX);
	store_read_text(stmt, 3, record->template_name, sizeof(record->template_name));
	store_read_text(stmt, 4, record->stamp, sizeof(record->stamp));
	record->state = (enum pooled_state)db_column_int(stmt, 5);
	record->created_at_ms = db_column_int(stmt, 6);
}

int store_pool_list(struct store *store,
	void (*each)(const struct pooled_record *record, void *arg), void *arg, struct err *err)
{
	auto_free struct pooled_record *rows = mem_new(POOLED_MAX * sizeof(*rows));
	struct db_stmt *stmt;
	size_t count = 0;
	int code, r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_POOLED_LIST);
	db_bind_int(stmt, 1, POOLED_MAX);
	while ((code = db_step(stmt)) == DB_ROW)
		read_pooled(stmt, &rows[count++]);
	r = code == DB_DONE ? 0 : store_fail(store, "list the sandboxes of pools", err);
	db_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	for (size_t i = 0; r == 0 && i < count; i++)
		each(&rows[i], arg);
	return r;
}

int store_pool_sweep(struct store *store, struct err *err)
{
	int r;

	pthread_mutex_lock(&store->lock);
	r = db_run(store_use(store, Q_POOLED_SWEEP), "forget what pools had", err);
	pthread_mutex_unlock(&store->lock);
	return r;
}

/* --- giving one away; in a transaction, with the lock held --- */

/* 1: it is not there any more, or not as it should be. */
static int take(struct store *store, const char *id, const char *stamp, struct err *err)
{
	struct db_stmt *stmt = store_use(store, Q_POOLED_TAKE);
	int r;

	db_bind_text(stmt, 1, id);
	db_bind_text(stmt, 2, stamp);
	r = db_run(stmt, "take a sandbox of a pool", err);
	return r < 0 ? r : db_changes(store->db) == 0;
}

static int give_workspace(struct store *store, const struct sandbox_record *record, struct err *err)
{
	struct db_stmt *stmt = store_use(store, Q_POOLED_GIVE_WORKSPACE);

	db_bind_text(stmt, 1, record->id);
	db_bind_text(stmt, 2, record->owner.organization);
	db_bind_text(stmt, 3, record->owner.user);
	db_bind_int(stmt, 4, record->created_at_ms);
	db_bind_int(stmt, 5, (int64_t)record->resources.disk_bytes);
	return db_run(stmt, "give a workspace away", err);
}

static int name_in_key(
	struct store *store, const struct sandbox_record *record, const char *key, struct err *err)
{
	struct db_stmt *stmt = store_use(store, Q_REPLAY_MOVE);

	db_bind_text(stmt, 1, record->owner.organization);
	db_bind_text(stmt, 2, record->owner.user);
	db_bind_text(stmt, 3, key);
	db_bind_text(stmt, 4, record->id);
	return db_run(stmt, "note what an idempotency key stands for", err);
}

/* No start command knows its process by that row any more: a daemon that takes the sandbox up begins them anew. */
static int disown_starts(struct store *store, const char *id, struct err *err)
{
	struct db_stmt *stmt = store_use(store, Q_PROCESS_DISOWN);

	db_bind_text(stmt, 1, id);
	return db_run(stmt, "note that start commands are to begin anew", err);
}

static int give_one(struct store *store, const struct sandbox_record *record, struct err *err)
{
	const struct workspace_claim fresh = {
		.is_fresh = true, .disk_growth = record->resources.disk_bytes};
	int r = store_sandbox_update_row(store, record, err);

	if (r == 0)
		r = give_workspace(store, record, err);
	if (r == 0 && record->restarts_start)
		r = disown_starts(store, record->id, err);
	return r < 0 ? r : store_sandbox_check_create(store, record, &fresh, err);
}

static int give(struct store *store, const struct sandbox_record records[], size_t count,
	const char *stamp, const char *key, struct err *err)
{
	int r = take(store, records[0].id, stamp, err);

	for (size_t i = 0; r == 0 && i < count; i++)
		r = give_one(store, &records[i], err);
	if (r == 0 && key)
		r = name_in_key(store, &records[0], key, err);
	return r != 0 ? r : fail_point_check("claim.row_written", err);
}

int store_pool_claim(struct store *store, const struct sandbox_record records[], size_t count,
	const char *stamp, const char *key, struct err *err)
{
	int r;

	pthread_mutex_lock(&store->lock);
	r = db_begin(store->db, err);
	if (r == 0) {
		r = give(store, records, count, stamp, key, err);
		if (r == 0)
			r = db_commit(store->db, err);
		if (r != 0)
			db_rollback(store->db);
	}
	pthread_mutex_unlock(&store->lock);
	return r;
}
