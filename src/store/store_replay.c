/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store_replay.h"

#include "base/clock.h"
#include "store/store_private.h"

#include <string.h>

#define PRUNE_EVERY 64 /* keys; to count those of an owner takes a moment */

static sqlite3_stmt *use_for(
	struct store *store, enum query query, const struct owner *owner, const char *key)
{
	sqlite3_stmt *stmt = store_use(store, query);

	store_bind_text(stmt, 1, owner->organization);
	store_bind_text(stmt, 2, owner->user);
	store_bind_text(stmt, 3, key);
	return stmt;
}

/* 1 if it is there. The lock is held, here and below. */
static int find(struct store *store, const struct owner *owner, const char *key,
	struct replay_record *record, struct err *err)
{
	sqlite3_stmt *stmt = use_for(store, Q_REPLAY_GET, owner, key);
	int code, r = 0;

	sqlite3_bind_int64(stmt, 4, clock_wall_ms() - REPLAY_KEPT_MS);
	code = sqlite3_step(stmt);
	if (code == SQLITE_ROW) {
		const char *answer = (const char *)sqlite3_column_text(stmt, 3);
		const void *print = sqlite3_column_blob(stmt, 0);

		if (print && sqlite3_column_bytes(stmt, 0) == REPLAY_PRINT_LEN)
			memcpy(record->print, print, REPLAY_PRINT_LEN);
		store_read_text(stmt, 1, record->object, sizeof(record->object));
		record->created_at_ms = sqlite3_column_int64(stmt, 2);
		record->answer = answer ? mem_strdup(answer) : NULL;
		r = 1;
	} else if (code != SQLITE_DONE) {
		r = store_fail(store, "look for an idempotency key", err);
	}
	sqlite3_reset(stmt);
	return r;
}

static int prune(struct store *store, const struct owner *owner, int64_t now, struct err *err)
{
	sqlite3_stmt *stmt = store_use(store, Q_REPLAY_EXPIRE);
	int r;

	sqlite3_bind_int64(stmt, 1, now - REPLAY_KEPT_MS);
	r = store_run(store, stmt, "forget old idempotency keys", err);
	if (r < 0 || store->replays_noted++ % PRUNE_EVERY != 0)
		return r;
	stmt = store_use(store, Q_REPLAY_PRUNE);
	store_bind_text(stmt, 1, owner->organization);
	store_bind_text(stmt, 2, owner->user);
	sqlite3_bind_int64(stmt, 3, REPLAY_KEPT_MAX);
	return store_run(store, stmt, "forget surplus idempotency keys", err);
}

static int add(struct store *store, const struct owner *owner, const char *key,
	struct replay_record *record, struct err *err)
{
	sqlite3_stmt *stmt;
	int r;

	record->created_at_ms = clock_wall_ms();
	record->answer = NULL;
	r = store_run(store, store_use(store, Q_BEGIN), "begin", err);
	if (r < 0)
		return r;
	r = prune(store, owner, record->created_at_ms, err);
	if (r == 0) {
		stmt = use_for(store, Q_REPLAY_PUT, owner, key);
		sqlite3_bind_blob(stmt, 4, record->print, REPLAY_PRINT_LEN, SQLITE_TRANSIENT);
		store_bind_text(stmt, 5, record->object);
		sqlite3_bind_int64(stmt, 6, record->created_at_ms);
		r = store_run(store, stmt, "note an idempotency key", err);
	}
	if (r == 0)
		r = store_run(store, store_use(store, Q_COMMIT), "commit", err);
	if (r < 0)
		(void)!store_run(store, store_use(store, Q_ROLLBACK), "roll back", NULL);
	return r;
}

int store_replay_begin(struct store *store, const struct owner *owner, const char *key,
	struct replay_record *record, struct err *err)
{
	int r;

	pthread_mutex_lock(&store->lock);
	r = find(store, owner, key, record, err);
	if (r == 0)
		r = add(store, owner, key, record, err);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_replay_finish(struct store *store, const struct owner *owner, const char *key,
	const char *answer, struct err *err)
{
	sqlite3_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = use_for(store, Q_REPLAY_ANSWER, owner, key);
	store_bind_text(stmt, 4, answer);
	r = store_run(store, stmt, "keep an answer", err);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_replay_forget(
	struct store *store, const struct owner *owner, const char *key, struct err *err)
{
	int r;

	pthread_mutex_lock(&store->lock);
	r = store_run(store, use_for(store, Q_REPLAY_DELETE, owner, key),
		"forget an idempotency key", err);
	pthread_mutex_unlock(&store->lock);
	return r;
}
