/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store_secret.h"

#include "store/store_private.h"

static void read_record(sqlite3_stmt *stmt, struct secret_record *record)
{
	*record = (struct secret_record){.is_trusted = sqlite3_column_int(stmt, 6),
		.changed_at_ms = sqlite3_column_int64(stmt, 7)};
	store_read_text(stmt, 0, record->name, sizeof(record->name));
	store_read_text(stmt, 1, record->owner.organization, sizeof(record->owner.organization));
	store_read_text(stmt, 2, record->owner.user, sizeof(record->owner.user));
	store_read_text(stmt, 3, record->url, sizeof(record->url));
	store_read_text(stmt, 4, record->header, sizeof(record->header));
	store_read_text(stmt, 5, record->prefix, sizeof(record->prefix));
}

int store_secret_put(struct store *store, const struct secret_record *record, const void *sealed,
	size_t len, struct err *err)
{
	sqlite3_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_SECRET_PUT);
	store_bind_text(stmt, 1, record->name);
	store_bind_text(stmt, 2, record->owner.organization);
	store_bind_text(stmt, 3, record->owner.user);
	store_bind_text(stmt, 4, record->url);
	store_bind_text(stmt, 5, record->header);
	store_bind_text(stmt, 6, record->prefix);
	sqlite3_bind_int(stmt, 7, record->is_trusted);
	sqlite3_bind_int64(stmt, 8, record->changed_at_ms);
	sqlite3_bind_blob(stmt, 9, sealed, (int)len, SQLITE_TRANSIENT);
	sqlite3_bind_int(stmt, 10, STORE_SECRETS_MAX);
	r = store_run(store, stmt, "keep a secret", err);
	if (r == 0 && sqlite3_changes(store->db) == 0)
		r = err_explain(err, ERR_RATE, "too_many_secrets", "remove one that is not used",
			"there are %d secrets already", STORE_SECRETS_MAX);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_secret_list(struct store *store, const struct owner *owner,
	void (*each)(const struct secret_record *record, const void *sealed, size_t len, void *arg),
	void *arg, struct err *err)
{
	struct secret_record record;
	sqlite3_stmt *stmt;
	int code, r = 0;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_SECRET_LIST);
	store_bind_owner(stmt, owner);
	while ((code = sqlite3_step(stmt)) == SQLITE_ROW) {
		read_record(stmt, &record);
		each(&record, sqlite3_column_blob(stmt, 8), (size_t)sqlite3_column_bytes(stmt, 8),
			arg);
	}
	if (code != SQLITE_DONE)
		r = store_fail(store, "list secrets", err);
	sqlite3_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_secret_delete(
	struct store *store, const struct owner *owner, const char *name, struct err *err)
{
	sqlite3_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_SECRET_DELETE);
	store_bind_text(stmt, 1, name);
	store_bind_owner(stmt, owner);
	r = store_run(store, stmt, "remove a secret", err);
	if (r == 0 && sqlite3_changes(store->db) == 0)
		r = err_explain(err, ERR_NOT_FOUND, "secret_not_found",
			"list them with GET /v1/secrets", "there is no secret %.64s", name);
	pthread_mutex_unlock(&store->lock);
	return r;
}
