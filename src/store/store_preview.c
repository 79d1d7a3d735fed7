/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "store/store_private.h"

static void read_link(sqlite3_stmt *stmt, struct preview_link *link)
{
	*link = (struct preview_link){.port = (uint16_t)sqlite3_column_int(stmt, 2),
		.created_at_ms = sqlite3_column_int64(stmt, 3),
		.expires_at_ms = sqlite3_column_int64(stmt, 4)};
	store_read_text(stmt, 0, link->id, sizeof(link->id));
	store_read_text(stmt, 1, link->sandbox_id, sizeof(link->sandbox_id));
}

int store_preview_link_add(struct store *store, const struct preview_link *link,
	const unsigned char hash[32], struct err *err)
{
	sqlite3_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_PREVIEW_LINK_CLEAN);
	sqlite3_bind_int64(stmt, 1, clock_wall_ms());
	r = store_run(store, stmt, "forget expired links", err);
	if (r == 0) {
		stmt = store_use(store, Q_PREVIEW_LINK_ADD);
		sqlite3_bind_blob(stmt, 1, hash, 32, SQLITE_TRANSIENT);
		store_bind_text(stmt, 2, link->id);
		store_bind_text(stmt, 3, link->sandbox_id);
		sqlite3_bind_int(stmt, 4, link->port);
		sqlite3_bind_int64(stmt, 5, link->created_at_ms);
		sqlite3_bind_int64(stmt, 6, link->expires_at_ms);
		sqlite3_bind_int(stmt, 7, STORE_PREVIEW_LINKS_MAX);
		r = store_run(store, stmt, "add a link", err);
		if (r == 0 && sqlite3_changes(store->db) == 0)
			r = err_explain(err, ERR_RATE, "too_many_links",
				"revoke one, or wait until one expires",
				"port %u of sandbox %s has %u links already", link->port,
				link->sandbox_id, STORE_PREVIEW_LINKS_MAX);
	}
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_preview_link_get(struct store *store, const unsigned char hash[32],
	struct preview_link *ret_link, struct err *err)
{
	sqlite3_stmt *stmt;
	int r = 0;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_PREVIEW_LINK_GET);
	sqlite3_bind_blob(stmt, 1, hash, 32, SQLITE_TRANSIENT);
	sqlite3_bind_int64(stmt, 2, clock_wall_ms());
	if (sqlite3_step(stmt) == SQLITE_ROW)
		read_link(stmt, ret_link);
	else
		r = err_set(err, ERR_UNAUTHENTICATED, "the link is not valid, or not any more");
	sqlite3_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_preview_link_list(struct store *store, const char *sandbox_id, uint16_t port,
	struct preview_link *links, size_t max, struct err *err)
{
	sqlite3_stmt *stmt;
	size_t count = 0;
	int code = SQLITE_DONE, r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_PREVIEW_LINK_LIST);
	store_bind_text(stmt, 1, sandbox_id);
	sqlite3_bind_int(stmt, 2, port);
	sqlite3_bind_int64(stmt, 3, clock_wall_ms());
	sqlite3_bind_int64(stmt, 4, (sqlite3_int64)max);
	while (count < max && (code = sqlite3_step(stmt)) == SQLITE_ROW)
		read_link(stmt, &links[count++]);
	r = code == SQLITE_ROW || code == SQLITE_DONE ? (int)count
						      : store_fail(store, "list links", err);
	sqlite3_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_preview_link_delete(
	struct store *store, const char *sandbox_id, uint16_t port, const char *id, struct err *err)
{
	sqlite3_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_PREVIEW_LINK_DELETE);
	store_bind_text(stmt, 1, sandbox_id);
	sqlite3_bind_int(stmt, 2, port);
	store_bind_text(stmt, 3, id);
	r = store_run(store, stmt, "revoke a link", err);
	if (r == 0 && sqlite3_changes(store->db) == 0)
		r = err_explain(
			err, ERR_NOT_FOUND, "link_not_found", NULL, "there is no link %s", id);
	pthread_mutex_unlock(&store->lock);
	return r;
}
