/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "store/store_private.h"

#include <errno.h>

static void read_token(sqlite3_stmt *stmt, struct token_record *token)
{
	char scopes[SCOPE_TEXT_MAX];

	*token = (struct token_record){.created_at_ms = sqlite3_column_int64(stmt, 5),
		.expires_at_ms = sqlite3_column_int64(stmt, 6),
		.last_used_at_ms = sqlite3_column_int64(stmt, 7)};
	store_read_text(stmt, 0, token->id, sizeof(token->id));
	store_read_text(stmt, 1, token->name, sizeof(token->name));
	store_read_text(stmt, 2, token->owner.organization, sizeof(token->owner.organization));
	store_read_text(stmt, 3, token->owner.user, sizeof(token->owner.user));
	store_read_text(stmt, 4, scopes, sizeof(scopes));
	token->scopes = scope_parse(scopes);
}

static int not_found(const char *id, struct err *err)
{
	return err_explain(err, ERR_NOT_FOUND, "token_not_found", "list them with GET /v1/tokens",
		"there is no token %.32s", id);
}

int store_token_put(struct store *store, const struct token_record *token,
	const unsigned char hash[32], struct err *err)
{
	char scopes[SCOPE_TEXT_MAX];
	sqlite3_stmt *stmt;
	int r;

	scope_format(token->scopes, scopes);
	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_TOKEN_PUT);
	store_bind_text(stmt, 1, token->id);
	store_bind_text(stmt, 2, token->name);
	store_bind_text(stmt, 3, token->owner.organization);
	store_bind_text(stmt, 4, token->owner.user);
	store_bind_text(stmt, 5, scopes);
	sqlite3_bind_int64(stmt, 6, token->created_at_ms);
	sqlite3_bind_int64(stmt, 7, token->expires_at_ms);
	sqlite3_bind_blob(stmt, 8, hash, 32, SQLITE_TRANSIENT);
	r = store_run(store, stmt, "add a token", err);
	pthread_mutex_unlock(&store->lock);
	return r;
}

/* Takes the one row that a statement gives; 1 if there is none. The lock is held. */
static int take_row(
	struct store *store, sqlite3_stmt *stmt, struct token_record *ret_token, struct err *err)
{
	int code = sqlite3_step(stmt), r = 0;

	if (code == SQLITE_ROW)
		read_token(stmt, ret_token);
	else
		r = code == SQLITE_DONE ? 1 : store_fail(store, "read a token", err);
	sqlite3_reset(stmt);
	return r;
}

int store_token_find(struct store *store, const unsigned char hash[32], int64_t now_ms,
	struct token_record *ret_token, struct err *err)
{
	sqlite3_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_TOKEN_FIND);
	sqlite3_bind_blob(stmt, 1, hash, 32, SQLITE_TRANSIENT);
	sqlite3_bind_int64(stmt, 2, now_ms);
	r = take_row(store, stmt, ret_token, err);
	pthread_mutex_unlock(&store->lock);
	return r > 0 ? err_set(err, ERR_UNAUTHENTICATED, "the token is not valid") : r;
}

int store_token_get(struct store *store, const struct owner *owner, const char *id,
	struct token_record *ret_token, struct err *err)
{
	sqlite3_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_TOKEN_GET);
	store_bind_text(stmt, 1, id);
	store_bind_owner(stmt, owner);
	r = take_row(store, stmt, ret_token, err);
	pthread_mutex_unlock(&store->lock);
	return r > 0 ? not_found(id, err) : r;
}

int store_token_list(struct store *store, const struct owner *owner, const char *after,
	unsigned limit, void (*each)(const struct token_record *token, void *arg), void *arg,
	struct err *err)
{
	struct token_record token;
	sqlite3_stmt *stmt;
	int code, r = 0;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_TOKEN_LIST);
	store_bind_text(stmt, 1, after);
	sqlite3_bind_int64(stmt, 2, limit);
	store_bind_owner(stmt, owner);
	while ((code = sqlite3_step(stmt)) == SQLITE_ROW) {
		read_token(stmt, &token);
		each(&token, arg);
	}
	if (code != SQLITE_DONE)
		r = store_fail(store, "list tokens", err);
	sqlite3_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_token_delete(
	struct store *store, const struct owner *owner, const char *id, struct err *err)
{
	sqlite3_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_TOKEN_DELETE);
	store_bind_text(stmt, 1, id);
	store_bind_owner(stmt, owner);
	r = store_run(store, stmt, "revoke a token", err);
	if (r == 0 && sqlite3_changes(store->db) == 0)
		r = not_found(id, err);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_token_touch(struct store *store, const char *id, int64_t now_ms, struct err *err)
{
	sqlite3_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_TOKEN_TOUCH);
	store_bind_text(stmt, 1, id);
	sqlite3_bind_int64(stmt, 2, now_ms);
	r = store_run(store, stmt, "touch a token", err);
	pthread_mutex_unlock(&store->lock);
	return r;
}
