/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "store/store_private.h"

#include <string.h>

static void read_token(struct db_stmt *stmt, struct token_record *token)
{
	char scopes[SCOPE_TEXT_MAX];

	*token = (struct token_record){.created_at_ms = db_column_int(stmt, 5),
		.expires_at_ms = db_column_int(stmt, 6),
		.last_used_at_ms = db_column_int(stmt, 7)};
	store_read_text(stmt, 0, token->id, sizeof(token->id));
	store_read_text(stmt, 1, token->name, sizeof(token->name));
	store_read_text(stmt, 2, token->owner.organization, sizeof(token->owner.organization));
	store_read_text(stmt, 3, token->owner.user, sizeof(token->owner.user));
	store_read_text(stmt, 4, scopes, sizeof(scopes));
	token->scopes = scope_parse(scopes);
}

/*
 * Every request asks for its token, which takes 12 us of the database, and 45 on cold caches. So those found lately are
 * kept, each where the first byte of its hash says. Whatever changes the table forgets all of them before it gives the
 * lock of the store back, under which they are noted: none outlives its row.
 */
static struct known_token *place_of(struct store *store, const unsigned char hash[32])
{
	return &store->tokens[hash[0] % STORE_TOKENS];
}

static bool recall(struct store *store, const unsigned char hash[32], int64_t now_ms,
	struct token_record *ret_token)
{
	const struct known_token *known = place_of(store, hash);
	bool is_known;

	pthread_mutex_lock(&store->tokens_lock);
	is_known = known->is_known && memcmp(known->hash, hash, sizeof(known->hash)) == 0 &&
		   (known->record.expires_at_ms == 0 || known->record.expires_at_ms > now_ms);
	if (is_known)
		*ret_token = known->record;
	pthread_mutex_unlock(&store->tokens_lock);
	return is_known;
}

/* The lock of the store is held, as below. */
static void note(
	struct store *store, const unsigned char hash[32], const struct token_record *token)
{
	struct known_token *known = place_of(store, hash);

	pthread_mutex_lock(&store->tokens_lock);
	known->is_known = true;
	known->record = *token;
	memcpy(known->hash, hash, sizeof(known->hash));
	pthread_mutex_unlock(&store->tokens_lock);
}

static void forget_all(struct store *store)
{
	pthread_mutex_lock(&store->tokens_lock);
	for (size_t i = 0; i < array_len(store->tokens); i++)
		store->tokens[i].is_known = false;
	pthread_mutex_unlock(&store->tokens_lock);
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
	struct db_stmt *stmt;
	int r;

	scope_format(token->scopes, scopes);
	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_TOKEN_PUT);
	db_bind_text(stmt, 1, token->id);
	db_bind_text(stmt, 2, token->name);
	db_bind_text(stmt, 3, token->owner.organization);
	db_bind_text(stmt, 4, token->owner.user);
	db_bind_text(stmt, 5, scopes);
	db_bind_int(stmt, 6, token->created_at_ms);
	db_bind_int(stmt, 7, token->expires_at_ms);
	db_bind_blob(stmt, 8, hash, 32);
	r = db_run(stmt, "add a token", err);
	forget_all(store);
	pthread_mutex_unlock(&store->lock);
	return r;
}

/* Takes the one row that a statement gives; 1 if there is none. The lock is held. */
static int take_row(
	struct store *store, struct db_stmt *stmt, struct token_record *ret_token, struct err *err)
{
	int code = db_step(stmt), r = 0;

	if (code == DB_ROW)
		read_token(stmt, ret_token);
	else
		r = code == DB_DONE ? 1 : store_fail(store, "read a token", err);
	db_reset(stmt);
	return r;
}

int store_token_find(struct store *store, const unsigned char hash[32], int64_t now_ms,
	struct token_record *ret_token, struct err *err)
{
	struct db_stmt *stmt;
	int r;

	if (recall(store, hash, now_ms, ret_token))
		return 0;
	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_TOKEN_FIND);
	db_bind_blob(stmt, 1, hash, 32);
	db_bind_int(stmt, 2, now_ms);
	r = take_row(store, stmt, ret_token, err);
	if (r == 0)
		note(store, hash, ret_token);
	pthread_mutex_unlock(&store->lock);
	return r > 0 ? err_explain(err, ERR_UNAUTHENTICATED, NULL,
			       "the first token is in the file `token` of the data directory; "
			       "\"sandlot token create\" makes others",
			       "the token is not valid")
		     : r;
}

int store_token_get(struct store *store, const struct owner *owner, const char *id,
	struct token_record *ret_token, struct err *err)
{
	struct db_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_TOKEN_GET);
	db_bind_text(stmt, 1, id);
	store_bind_owner(stmt, owner);
	r = take_row(store, stmt, ret_token, err);
	pthread_mutex_unlock(&store->lock);
	return r > 0 ? not_found(id, err) : r;
}

int store_token_hash(
	struct store *store, const char *id, unsigned char ret_hash[32], struct err *err)
{
	struct db_stmt *stmt;
	const void *hash;
	size_t len = 0;
	int code, r = 0;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_TOKEN_HASH);
	db_bind_text(stmt, 1, id);
	code = db_step(stmt);
	hash = code == DB_ROW ? db_column_blob(stmt, 0, &len) : NULL;
	if (hash && len == 32)
		memcpy(ret_hash, hash, 32);
	else
		r = code == DB_ROW || code == DB_DONE ? not_found(id, err)
						      : store_fail(store, "read a token", err);
	db_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	return r;
}

/* Copies the next rows: how many. */
static int read_page(struct store *store, const struct owner *owner, const char *after,
	unsigned limit, struct token_record page[STORE_PAGE], struct err *err)
{
	struct db_stmt *stmt;
	int code, count = 0, r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_TOKEN_LIST);
	db_bind_text(stmt, 1, after);
	db_bind_int(stmt, 2, store_page(limit));
	store_bind_owner(stmt, owner);
	while ((code = db_step(stmt)) == DB_ROW)
		read_token(stmt, &page[count++]);
	r = code == DB_DONE ? count : store_fail(store, "list tokens", err);
	db_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_token_list(struct store *store, const struct owner *owner, const char *after,
	unsigned limit, void (*each)(const struct token_record *token, void *arg), void *arg,
	struct err *err)
{
	auto_free struct token_record *page = mem_new(STORE_PAGE * sizeof(*page));
	char last[TOKEN_ID_MAX];
	int count;

	do {
		count = read_page(store, owner, after, limit, page, err);
		for (int i = 0; i < count; i++)
			each(&page[i], arg);
		if (count > 0) {
			memcpy(last, page[count - 1].id, sizeof(last));
			after = last;
			limit -= (unsigned)count;
		}
	} while (count == STORE_PAGE);
	return count < 0 ? count : 0;
}

int store_token_delete(
	struct store *store, const struct owner *owner, const char *id, struct err *err)
{
	struct db_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_TOKEN_DELETE);
	db_bind_text(stmt, 1, id);
	store_bind_owner(stmt, owner);
	r = db_run(stmt, "revoke a token", err);
	forget_all(store);
	if (r == 0 && db_changes(store->db) == 0)
		r = not_found(id, err);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_token_touch(struct store *store, const char *id, int64_t now_ms, struct err *err)
{
	struct db_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_TOKEN_TOUCH);
	db_bind_text(stmt, 1, id);
	db_bind_int(stmt, 2, now_ms);
	r = db_run(stmt, "touch a token", err);
	forget_all(store);
	pthread_mutex_unlock(&store->lock);
	return r;
}
