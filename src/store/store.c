/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store.h"

#include "store/schema.h"
#include "store/store_private.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* --- statements --- */

int store_fail(struct store *store, const char *what, struct err *err)
{
	int code = sqlite3_extended_errcode(store->db);

	if ((code & 0xff) == SQLITE_FULL || code == SQLITE_IOERR_WRITE)
		return err_explain(err, ERR_NO_SPACE, NULL, "free space below the data directory",
			"%s: the disk that holds the state is full", what);
	return err_set(err, ERR_INTERNAL, "%s: %s", what, sqlite3_errmsg(store->db));
}

sqlite3_stmt *store_use(struct store *store, enum query query)
{
	sqlite3_stmt *stmt = store->stmts[query];

	sqlite3_reset(stmt);
	sqlite3_clear_bindings(stmt);
	return stmt;
}

int store_run(struct store *store, sqlite3_stmt *stmt, const char *what, struct err *err)
{
	int code = sqlite3_step(stmt);

	sqlite3_reset(stmt);
	return code == SQLITE_DONE ? 0 : store_fail(store, what, err);
}

void store_bind_text(sqlite3_stmt *stmt, int at, const char *text)
{
	sqlite3_bind_text(stmt, at, text, -1, SQLITE_TRANSIENT);
}

void store_bind_optional(sqlite3_stmt *stmt, int at, const char *text)
{
	if (text && text[0])
		store_bind_text(stmt, at, text);
}

void store_bind_owner(sqlite3_stmt *stmt, const struct owner *owner)
{
	if (!owner)
		return;
	store_bind_text(stmt, 31, owner->organization);
	store_bind_text(stmt, 32, owner->user);
}

void store_bind_json(sqlite3_stmt *stmt, int at, const json_t *value)
{
	char *text = json_dumps(value, JSON_COMPACT);

	assert(text);
	sqlite3_bind_text(stmt, at, text, -1, free);
}

void store_read_text(sqlite3_stmt *stmt, int column, char *text, size_t size)
{
	const unsigned char *value = sqlite3_column_text(stmt, column);

	snprintf(text, size, "%s", value ? (const char *)value : "");
}

json_t *store_read_json(sqlite3_stmt *stmt, int column)
{
	const char *text = (const char *)sqlite3_column_text(stmt, column);
	json_t *value = text ? json_loads(text, 0, NULL) : NULL;

	return value ? value : json_null();
}

/* --- opening --- */

static int prepare_all(struct store *store, struct err *err)
{
	for (int q = 0; q < Q_COUNT; q++) {
		const char *text = sql_text((enum query)q);

		if (sqlite3_prepare_v3(store->db, text, -1, SQLITE_PREPARE_PERSISTENT,
			    &store->stmts[q], NULL) != SQLITE_OK)
			return store_fail(store, text, err);
	}
	return 0;
}

/* A start that a daemon before us did not finish holds nothing any more. */
static int forget_claims(struct store *store, struct err *err)
{
	if (sqlite3_exec(store->db, "UPDATE sandboxes SET starting = 0 WHERE starting", NULL, NULL,
		    NULL) != SQLITE_OK)
		return store_fail(store, "forget unfinished starts", err);
	return 0;
}

int store_open(const char *path, struct store **ret_store, struct err *err)
{
	struct store *store = mem_new(sizeof(*store));
	int r = 0;

	pthread_mutex_init(&store->lock, NULL);
	pthread_mutex_init(&store->reader_lock, NULL);
	store->path = mem_strdup(path);
	quota_clear(&store->default_quotas[0]);
	quota_clear(&store->default_quotas[1]);
	if (sqlite3_open_v2(path, &store->db,
		    SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
		    NULL) != SQLITE_OK) {
		r = err_set(err, ERR_INTERNAL, "open the database %s: %s", path,
			store->db ? sqlite3_errmsg(store->db) : "out of memory");
		store_close(store);
		return r;
	}
	sqlite3_busy_timeout(store->db, STORE_BUSY_MS);
	/* NORMAL: no fsync at each commit; the log is synced before it is folded into the database. */
	if (sqlite3_exec(store->db,
		    "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = "
		    "ON;"
		    "PRAGMA cache_size = -2048; PRAGMA journal_size_limit = 8388608;",
		    NULL, NULL, NULL) != SQLITE_OK)
		r = store_fail(store, "configure the database", err);
	if (r == 0)
		r = schema_migrate(store->db, err);
	if (r == 0)
		r = prepare_all(store, err);
	if (r == 0)
		r = store_workspace_load(store, err);
	if (r == 0)
		r = forget_claims(store, err);
	if (r == 0)
		r = store_audit_load(store, err);
	if (r < 0) {
		store_close(store);
		return r;
	}
	*ret_store = store;
	return 0;
}

void store_close(struct store *store)
{
	if (!store)
		return;
	for (int q = 0; q < Q_COUNT; q++)
		sqlite3_finalize(store->stmts[q]);
	sqlite3_close(store->db);
	pthread_mutex_destroy(&store->reader_lock);
	free(store->path);
	pthread_mutex_destroy(&store->lock);
	free(store);
}
