/* SPDX-License-Identifier: Apache-2.0 */
#include "store/template/store_dependency_file.h"

#include "store/store_clock.h"
#include "store/store_private.h"

#include <string.h>

/* From when a file is put until a record names it there are seconds; a job may be some time in the queue. */
#define UNUSED_MS (60 * 60 * 1000)

static struct db_stmt *use(
	struct store *store, enum query query, const struct owner *owner, const char *sha256)
{
	struct db_stmt *stmt = store_use(store, query);

	db_bind_text(stmt, 1, owner->organization);
	db_bind_text(stmt, 2, owner->user);
	db_bind_text(stmt, 3, sha256);
	return stmt;
}

/* How many it put: 1, or 0 if there is no room. With the lock held. */
static int put(struct store *store, const struct owner *owner, const char *sha256,
	const void *content, size_t len, struct err *err)
{
	struct db_stmt *stmt = use(store, Q_DEPENDENCY_FILE_PUT, owner, sha256);
	int r;

	db_bind_blob(stmt, 4, content, len);
	db_bind_int(stmt, 5, (int64_t)len);
	db_bind_int(stmt, 6, store_clock_ms(store));
	db_bind_int(stmt, 7, STORE_DEPENDENCY_FILES_MAX);
	r = db_run(stmt, "keep a file that names packages", err);
	return r < 0 ? r : (int)db_changes(store->db);
}

static int expire(struct store *store, struct err *err)
{
	struct db_stmt *stmt = store_use(store, Q_DEPENDENCY_FILE_EXPIRE);

	db_bind_int(stmt, 1, store_clock_ms(store) - UNUSED_MS);
	return db_run(stmt, "forget files that name packages", err);
}

int store_dependency_file_put(struct store *store, const struct owner *owner, const char *sha256,
	const void *content, size_t len, struct err *err)
{
	int r;

	pthread_mutex_lock(&store->lock);
	r = put(store, owner, sha256, content, len, err);
	if (r == 0) {
		r = expire(store, err);
		if (r == 0)
			r = put(store, owner, sha256, content, len, err);
		if (r == 0)
			r = err_explain(err, ERR_TOO_LARGE, "too_many_files",
				"remove sandboxes and snapshots that have such files, or make a "
				"template of the packages",
				"files that name packages of your sandboxes take at most %u MiB",
				STORE_DEPENDENCY_FILES_MAX >> 20);
	}
	pthread_mutex_unlock(&store->lock);
	return r < 0 ? r : 0;
}

int store_dependency_file_get(struct store *store, const struct owner *owner, const char *sha256,
	char **ret_content, size_t *ret_len, struct err *err)
{
	struct db_stmt *stmt;
	int code, r = 0;

	pthread_mutex_lock(&store->lock);
	stmt = use(store, Q_DEPENDENCY_FILE_GET, owner, sha256);
	code = db_step(stmt);
	if (code == DB_ROW) {
		size_t len;
		const void *content = db_column_blob(stmt, 0, &len);

		*ret_content = mem_new(len + 1);
		memcpy(*ret_content, content, len);
		*ret_len = len;
	}
	db_reset(stmt);
	if (code == DB_DONE)
		r = err_set(err, ERR_NOT_FOUND, "there is no such file");
	else if (code != DB_ROW)
		r = store_fail(store, "read a file that names packages", err);
	pthread_mutex_unlock(&store->lock);
	return r;
}
