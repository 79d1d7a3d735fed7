/* SPDX-License-Identifier: Apache-2.0 */
#include "store/access/store_idempotency.h"

#include "store/store_clock.h"
#include "store/store_private.h"

#include <string.h>

#define PRUNE_EVERY 64 /* keys; to count those of an owner takes a moment */

static struct db_stmt *use_for(
	struct store *store, enum query query, const struct owner *owner, const char *key)
{
	struct db_stmt *stmt = store_use(store, query);

	db_bind_text(stmt, 1, owner->organization);
	db_bind_text(stmt, 2, owner->user);
	db_bind_text(stmt, 3, key);
	return stmt;
}

/* 1 if it is there. The lock is held, here and below. */
static int find(struct store *store, const struct owner *owner, const char *key,
	struct idempotency_record *record, struct err *err)
{
	struct db_stmt *stmt = use_for(store, Q_REPLAY_GET, owner, key);
	int code, r = 0;

	db_bind_int(stmt, 4, store_clock_ms(store) - IDEMPOTENCY_KEPT_MS);
	code = db_step(stmt);
	if (code == DB_ROW) {
		const char *answer = db_column_text(stmt, 3);
		size_t len;
		const void *print = db_column_blob(stmt, 0, &len);

		if (print && len == IDEMPOTENCY_PRINT_LEN)
			memcpy(record->print, print, IDEMPOTENCY_PRINT_LEN);
		store_read_text(stmt, 1, record->object, sizeof(record->object));
		record->created_at_ms = db_column_int(stmt, 2);
		record->answer = answer ? mem_strdup(answer) : NULL;
		r = 1;
	} else if (code != DB_DONE) {
		r = store_fail(store, "look for an idempotency key", err);
	}
	db_reset(stmt);
	return r;
}

static int prune(struct store *store, const struct owner *owner, int64_t now, struct err *err)
{
	struct db_stmt *stmt = store_use(store, Q_REPLAY_EXPIRE);
	int r;

	db_bind_int(stmt, 1, now - IDEMPOTENCY_KEPT_MS);
	r = db_run(stmt, "forget old idempotency keys", err);
	if (r < 0 || store->idempotency_keys_noted++ % PRUNE_EVERY != 0)
		return r;
	stmt = store_use(store, Q_REPLAY_PRUNE);
	db_bind_text(stmt, 1, owner->organization);
	db_bind_text(stmt, 2, owner->user);
	db_bind_int(stmt, 3, IDEMPOTENCY_KEPT_MAX);
	return db_run(stmt, "forget surplus idempotency keys", err);
}

static int add(struct store *store, const struct owner *owner, const char *key,
	struct idempotency_record *record, struct err *err)
{
	struct db_stmt *stmt;
	int r;

	record->created_at_ms = store_clock_ms(store);
	record->answer = NULL;
	r = db_begin(store->db, err);
	if (r < 0)
		return r;
	r = prune(store, owner, record->created_at_ms, err);
	if (r == 0) {
		stmt = use_for(store, Q_REPLAY_PUT, owner, key);
		db_bind_blob(stmt, 4, record->print, IDEMPOTENCY_PRINT_LEN);
		db_bind_text(stmt, 5, record->object);
		db_bind_int(stmt, 6, record->created_at_ms);
		r = db_run(stmt, "note an idempotency key", err);
	}
	if (r == 0)
		r = db_commit(store->db, err);
	if (r < 0)
		db_rollback(store->db);
	return r;
}

int store_idempotency_begin(struct store *store, const struct owner *owner, const char *key,
	struct idempotency_record *record, struct err *err)
{
	int r;

	pthread_mutex_lock(&store->lock);
	r = find(store, owner, key, record, err);
	if (r == 0)
		r = add(store, owner, key, record, err);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_idempotency_finish(struct store *store, const struct owner *owner, const char *key,
	const char *answer, struct err *err)
{
	struct db_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = use_for(store, Q_REPLAY_ANSWER, owner, key);
	db_bind_text(stmt, 4, answer);
	r = db_run(stmt, "keep an answer", err);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_idempotency_forget(
	struct store *store, const struct owner *owner, const char *key, struct err *err)
{
	int r;

	pthread_mutex_lock(&store->lock);
	r = db_run(use_for(store, Q_REPLAY_DELETE, owner, key), "forget an idempotency key", err);
	pthread_mutex_unlock(&store->lock);
	return r;
}
