/* SPDX-License-Identifier: Apache-2.0 */
#include "store/template/store_build.h"

#include "store/store_clock.h"
#include "store/store_private.h"

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

int store_builder_add(struct store *store, const char *id, struct err *err)
{
	return run_with_id(store, Q_BUILDER_ADD, id, "note a builder", err);
}

int store_builder_delete(struct store *store, const char *id, struct err *err)
{
	return run_with_id(store, Q_BUILDER_DELETE, id, "forget a builder", err);
}

int store_builder_has(struct store *store, const char *id, bool *ret_has, struct err *err)
{
	struct db_stmt *stmt;
	int code;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_BUILDER_HAS);
	db_bind_text(stmt, 1, id);
	code = db_step(stmt);
	db_reset(stmt);
	*ret_has = code == DB_ROW;
	code = code == DB_ROW || code == DB_DONE ? 0 : store_fail(store, "find a builder", err);
	pthread_mutex_unlock(&store->lock);
	return code;
}

int store_builder_sweep(struct store *store, struct err *err)
{
	int r;

	pthread_mutex_lock(&store->lock);
	r = db_run(store_use(store, Q_BUILDER_SWEEP), "forget builders", err);
	pthread_mutex_unlock(&store->lock);
	return r;
}

static struct db_stmt *use_cache(
	struct store *store, enum query query, const struct owner *owner, const char *key)
{
	struct db_stmt *stmt = store_use(store, query);

	db_bind_text(stmt, 1, owner->organization);
	db_bind_text(stmt, 2, owner->user);
	db_bind_text(stmt, 3, key);
	return stmt;
}

int store_build_cache_get(struct store *store, const struct owner *owner, const char *key,
	struct build_cache_entry *ret_entry, struct err *err)
{
	struct db_stmt *stmt;
	int code, r;

	pthread_mutex_lock(&store->lock);
	stmt = use_cache(store, Q_BUILD_CACHE_GET, owner, key);
	code = db_step(stmt);
	if (code == DB_ROW) {
		store_read_text(stmt, 0, ret_entry->diff_id, sizeof(ret_entry->diff_id));
		ret_entry->bytes = (uint64_t)db_column_int(stmt, 1);
		ret_entry->note = store_read_json(stmt, 2);
	}
	db_reset(stmt);
	if (code == DB_ROW) {
		stmt = use_cache(store, Q_BUILD_CACHE_TOUCH, owner, key);
		db_bind_int(stmt, 4, store_clock_ms(store));
		r = db_run(stmt, "note the use of a built layer", err);
		if (r < 0)
			json_decref(ret_entry->note);
	} else {
		r = code == DB_DONE ? err_set(err, ERR_NOT_FOUND, "the step was not built before")
				    : store_fail(store, "look for a built layer", err);
	}
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_build_cache_put(struct store *store, const struct owner *owner, const char *key,
	const struct build_cache_entry *entry, struct err *err)
{
	json_auto_t *none = json_object();
	struct db_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = use_cache(store, Q_BUILD_CACHE_PUT, owner, key);
	db_bind_text(stmt, 4, entry->diff_id);
	db_bind_int(stmt, 5, (int64_t)entry->bytes);
	db_bind_int(stmt, 6, store_clock_ms(store));
	store_bind_json(stmt, 7, entry->note ? entry->note : none);
	r = db_run(stmt, "note a built layer", err);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_build_cache_delete(
	struct store *store, const struct owner *owner, const char *key, struct err *err)
{
	int r;

	pthread_mutex_lock(&store->lock);
	r = db_run(use_cache(store, Q_BUILD_CACHE_DELETE, owner, key), "forget a built layer", err);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_build_cache_clear(struct store *store, const struct owner *owner, struct err *err)
{
	struct db_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_BUILD_CACHE_CLEAR);
	store_bind_owner(stmt, owner);
	r = db_run(stmt, "forget built layers", err);
	if (r == 0)
		r = (int)db_changes(store->db);
	pthread_mutex_unlock(&store->lock);
	return r;
}
