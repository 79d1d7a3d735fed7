/* SPDX-License-Identifier: Apache-2.0 */
#include "store/access/store_login.h"

#include "store/store_private.h"

#include <string.h>

static void read_login(struct db_stmt *stmt, struct login_record *login)
{
	int64_t token_end_ms = db_column_int(stmt, 7);
	char scopes[SCOPE_TEXT_MAX];

	*login = (struct login_record){.created_at_ms = db_column_int(stmt, 5),
		.expires_at_ms = db_column_int(stmt, 6),
		.last_used_at_ms = db_column_int(stmt, 8)};
	if (token_end_ms > 0 && token_end_ms < login->expires_at_ms)
		login->expires_at_ms = token_end_ms;
	store_read_text(stmt, 0, login->id, sizeof(login->id));
	store_read_text(stmt, 1, login->token_id, sizeof(login->token_id));
	store_read_text(stmt, 2, login->owner.organization, sizeof(login->owner.organization));
	store_read_text(stmt, 3, login->owner.user, sizeof(login->owner.user));
	store_read_text(stmt, 4, scopes, sizeof(scopes));
	store_read_text(stmt, 9, login->address, sizeof(login->address));
	store_read_text(stmt, 10, login->agent, sizeof(login->agent));
	login->scopes = scope_parse(scopes);
}

/* The lock is held. */
static int add_row(struct store *store, const struct login_record *login,
	const unsigned char hash[32], struct err *err)
{
	struct db_stmt *stmt = store_use(store, Q_LOGIN_ADD);
	char scopes[SCOPE_TEXT_MAX];

	scope_format(login->scopes, scopes);
	db_bind_text(stmt, 1, login->id);
	db_bind_text(stmt, 2, login->token_id);
	db_bind_text(stmt, 3, login->owner.organization);
	db_bind_text(stmt, 4, login->owner.user);
	db_bind_text(stmt, 5, scopes);
	db_bind_int(stmt, 6, login->created_at_ms);
	db_bind_int(stmt, 7, login->expires_at_ms);
	db_bind_text(stmt, 8, login->address);
	db_bind_text(stmt, 9, login->agent);
	db_bind_blob(stmt, 10, hash, 32);
	return db_run(stmt, "add a login", err);
}

int store_login_add(struct store *store, const struct login_record *login,
	const unsigned char hash[32], struct err *err)
{
	struct db_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_LOGIN_CLEAN);
	db_bind_int(stmt, 1, login->created_at_ms);
	r = db_run(stmt, "forget logins that are over", err);
	if (r == 0)
		r = add_row(store, login, hash, err);
	if (r == 0) {
		stmt = store_use(store, Q_LOGIN_PRUNE);
		db_bind_int(stmt, 1, LOGINS_OF_OWNER);
		store_bind_owner(stmt, &login->owner);
		r = db_run(stmt, "forget the oldest logins", err);
	}
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_login_find(struct store *store, const unsigned char hash[32], int64_t now_ms,
	struct login_record *ret_login, struct err *err)
{
	struct login_record login = {0};
	struct db_stmt *stmt;
	int code, r = 0;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_LOGIN_FIND);
	db_bind_blob(stmt, 1, hash, 32);
	db_bind_int(stmt, 2, now_ms);
	code = db_step(stmt);
	if (code == DB_ROW)
		read_login(stmt, &login);
	else if (code != DB_DONE)
		r = store_fail(store, "read a login", err);
	db_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	if (r < 0)
		return r;
	if (code != DB_ROW || login.expires_at_ms <= now_ms)
		return err_explain(err, ERR_UNAUTHENTICATED, "session_over", "sign in again",
			"the session is over");
	*ret_login = login;
	return 0;
}

/* Copies the next rows: how many. */
static int read_page(struct store *store, const struct owner *owner, const char *after,
	int64_t now_ms, unsigned limit, struct login_record page[STORE_PAGE], struct err *err)
{
	struct db_stmt *stmt;
	int code, count = 0, r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_LOGIN_LIST);
	db_bind_text(stmt, 1, after);
	db_bind_int(stmt, 2, store_page(limit));
	db_bind_int(stmt, 3, now_ms);
	store_bind_owner(stmt, owner);
	while ((code = db_step(stmt)) == DB_ROW)
		read_login(stmt, &page[count++]);
	r = code == DB_DONE ? count : store_fail(store, "list logins", err);
	db_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_login_list(struct store *store, const struct owner *owner, const char *after,
	int64_t now_ms, unsigned limit, void (*each)(const struct login_record *login, void *arg),
	void *arg, struct err *err)
{
	auto_free struct login_record *page = mem_new(STORE_PAGE * sizeof(*page));
	char last[TOKEN_ID_MAX];
	int count;

	do {
		count = read_page(store, owner, after, now_ms, limit, page, err);
		for (int i = 0; i < count; i++) {
			if (page[i].expires_at_ms > now_ms)
				each(&page[i], arg);
		}
		if (count > 0) {
			memcpy(last, page[count - 1].id, sizeof(last));
			after = last;
			limit -= (unsigned)count;
		}
	} while (count == STORE_PAGE);
	return count < 0 ? count : 0;
}

int store_login_delete(
	struct store *store, const struct owner *owner, const char *id, struct err *err)
{
	struct db_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_LOGIN_DELETE);
	db_bind_text(stmt, 1, id);
	store_bind_owner(stmt, owner);
	r = db_run(stmt, "end a login", err);
	if (r == 0 && db_changes(store->db) == 0)
		r = err_explain(err, ERR_NOT_FOUND, "login_not_found",
			"list them with GET /v1/logins", "there is no login %.32s", id);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_login_touch(struct store *store, const char *id, int64_t now_ms, struct err *err)
{
	struct db_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_LOGIN_TOUCH);
	db_bind_text(stmt, 1, id);
	db_bind_int(stmt, 2, now_ms);
	r = db_run(stmt, "touch a login", err);
	pthread_mutex_unlock(&store->lock);
	return r;
}
