/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "store/store_private.h"

static void read_link(struct db_stmt *stmt, struct preview_link *link)
{
	*link = (struct preview_link){.port = (uint16_t)(int)db_column_int(stmt, 2),
		.created_at_ms = db_column_int(stmt, 3),
		.expires_at_ms = db_column_int(stmt, 4)};
	store_read_text(stmt, 0, link->id, sizeof(link->id));
	store_read_text(stmt, 1, link->sandbox_id, sizeof(link->sandbox_id));
	store_read_text(stmt, 5, link->frame_origin, sizeof(link->frame_origin));
}

int store_preview_link_add(struct store *store, const struct preview_link *link,
	const unsigned char hash[32], struct err *err)
{
	struct db_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_PREVIEW_LINK_CLEAN);
	db_bind_int(stmt, 1, clock_wall_ms());
	r = db_run(stmt, "forget expired links", err);
	if (r == 0) {
		stmt = store_use(store, Q_PREVIEW_LINK_ADD);
		db_bind_blob(stmt, 1, hash, 32);
		db_bind_text(stmt, 2, link->id);
		db_bind_text(stmt, 3, link->sandbox_id);
		db_bind_int(stmt, 4, link->port);
		db_bind_int(stmt, 5, link->created_at_ms);
		db_bind_int(stmt, 6, link->expires_at_ms);
		db_bind_int(stmt, 7, STORE_PREVIEW_LINKS_MAX);
		db_bind_text(stmt, 8, link->frame_origin);
		r = db_run(stmt, "add a link", err);
		if (r == 0 && db_changes(store->db) == 0)
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
	struct db_stmt *stmt;
	int code, r = 0;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_PREVIEW_LINK_GET);
	db_bind_blob(stmt, 1, hash, 32);
	db_bind_int(stmt, 2, clock_wall_ms());
	code = db_step(stmt);
	if (code == DB_ROW)
		read_link(stmt, ret_link);
	else if (code == DB_DONE)
		r = err_set(err, ERR_UNAUTHENTICATED, "the link is not valid, or not any more");
	else
		r = store_fail(store, "read a link", err);
	db_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_preview_link_list(struct store *store, const char *sandbox_id, uint16_t port,
	struct preview_link *links, size_t max, struct err *err)
{
	struct db_stmt *stmt;
	size_t count = 0;
	int code = DB_DONE, r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_PREVIEW_LINK_LIST);
	db_bind_text(stmt, 1, sandbox_id);
	db_bind_int(stmt, 2, port);
	db_bind_int(stmt, 3, clock_wall_ms());
	db_bind_int(stmt, 4, (int64_t)max);
	while (count < max && (code = db_step(stmt)) == DB_ROW)
		read_link(stmt, &links[count++]);
	r = code == DB_ROW || code == DB_DONE ? (int)count : store_fail(store, "list links", err);
	db_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_preview_link_delete(
	struct store *store, const char *sandbox_id, uint16_t port, const char *id, struct err *err)
{
	struct db_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_PREVIEW_LINK_DELETE);
	db_bind_text(stmt, 1, sandbox_id);
	db_bind_int(stmt, 2, port);
	db_bind_text(stmt, 3, id);
	r = db_run(stmt, "revoke a link", err);
	if (r == 0 && db_changes(store->db) == 0)
		r = err_explain(
			err, ERR_NOT_FOUND, "link_not_found", NULL, "there is no link %s", id);
	pthread_mutex_unlock(&store->lock);
	return r;
}
