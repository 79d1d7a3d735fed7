/* SPDX-License-Identifier: Apache-2.0 */
#include "store/access/store_secret.h"

#include "store/store_private.h"

#include <stdlib.h>
#include <string.h>

static void read_record(struct db_stmt *stmt, struct secret_record *record)
{
	*record = (struct secret_record){
		.is_trusted = (int)db_column_int(stmt, 6), .changed_at_ms = db_column_int(stmt, 7)};
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
	struct db_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_SECRET_PUT);
	db_bind_text(stmt, 1, record->name);
	db_bind_text(stmt, 2, record->owner.organization);
	db_bind_text(stmt, 3, record->owner.user);
	db_bind_text(stmt, 4, record->url);
	db_bind_text(stmt, 5, record->header);
	db_bind_text(stmt, 6, record->prefix);
	db_bind_int(stmt, 7, record->is_trusted);
	db_bind_int(stmt, 8, record->changed_at_ms);
	db_bind_blob(stmt, 9, sealed, len);
	db_bind_int(stmt, 10, STORE_SECRETS_MAX);
	r = db_run(stmt, "keep a secret", err);
	if (r == 0 && db_changes(store->db) == 0)
		r = err_explain(err, ERR_RATE, "too_many_secrets", "remove one that is not used",
			"there are %d secrets already", STORE_SECRETS_MAX);
	pthread_mutex_unlock(&store->lock);
	return r;
}

struct row {
	struct secret_record record;
	void *sealed;
	size_t len;
};

static void read_row(struct db_stmt *stmt, struct row *row)
{
	const void *sealed = db_column_blob(stmt, 8, &row->len);

	read_record(stmt, &row->record);
	row->sealed = mem_new(row->len);
	if (row->len > 0)
		memcpy(row->sealed, sealed, row->len);
}

/* Copies the rows after a row: how many. */
static int read_page(struct store *store, const struct owner *owner,
	const struct secret_record *after, struct row page[STORE_PAGE], struct err *err)
{
	struct db_stmt *stmt;
	int code, count = 0, r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_SECRET_LIST);
	db_bind_text(stmt, 1, after->owner.organization);
	db_bind_text(stmt, 2, after->owner.user);
	db_bind_text(stmt, 3, after->name);
	db_bind_int(stmt, 4, STORE_PAGE);
	store_bind_owner(stmt, owner);
	while ((code = db_step(stmt)) == DB_ROW)
		read_row(stmt, &page[count++]);
	r = code == DB_DONE ? count : store_fail(store, "list secrets", err);
	db_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	for (int i = 0; r < 0 && i < count; i++)
		free(page[i].sealed);
	return r;
}

int store_secret_list(struct store *store, const struct owner *owner,
	void (*each)(const struct secret_record *record, const void *sealed, size_t len, void *arg),
	void *arg, struct err *err)
{
	auto_free struct row *page = mem_new(STORE_PAGE * sizeof(*page));
	struct secret_record after = {0};
	int count;

	do {
		count = read_page(store, owner, &after, page, err);
		for (int i = 0; i < count; i++) {
			each(&page[i].record, page[i].sealed, page[i].len, arg);
			free(page[i].sealed);
		}
		if (count > 0)
			after = page[count - 1].record;
	} while (count == STORE_PAGE);
	return count < 0 ? count : 0;
}

int store_secret_delete(
	struct store *store, const struct owner *owner, const char *name, struct err *err)
{
	struct db_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_SECRET_DELETE);
	db_bind_text(stmt, 1, name);
	store_bind_owner(stmt, owner);
	r = db_run(stmt, "remove a secret", err);
	if (r == 0 && db_changes(store->db) == 0)
		r = err_explain(err, ERR_NOT_FOUND, "secret_not_found",
			"list them with GET /v1/secrets", "there is no secret %.64s", name);
	pthread_mutex_unlock(&store->lock);
	return r;
}
