/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sandbox/store_context.h"

#include "store/store_private.h"

static void bind_context(struct db_stmt *stmt, const struct context_record *record)
{
	db_bind_text(stmt, 1, record->id);
	db_bind_text(stmt, 2, record->sandbox_id);
	db_bind_text(stmt, 3, record->language);
	db_bind_text(stmt, 4, record->cwd);
	db_bind_int(stmt, 5, record->idle_timeout_s);
	db_bind_int(stmt, 6, record->process);
	db_bind_int(stmt, 7, record->starts);
	db_bind_int(stmt, 8, record->is_lost);
	db_bind_text(stmt, 9, record->reason);
	db_bind_int(stmt, 10, record->created_at_ms);
	db_bind_int(stmt, 11, record->used_at_ms);
	db_bind_int(stmt, 12, record->ended_at_ms);
	store_bind_json(stmt, 13, record->env);
}

static void read_context(struct db_stmt *stmt, struct context_record *record)
{
	*record = (struct context_record){.idle_timeout_s = db_column_int(stmt, 4),
		.process = (uint32_t)db_column_int(stmt, 5),
		.starts = (uint32_t)db_column_int(stmt, 6),
		.is_lost = db_column_int(stmt, 7) != 0,
		.created_at_ms = db_column_int(stmt, 9),
		.used_at_ms = db_column_int(stmt, 10),
		.ended_at_ms = db_column_int(stmt, 11),
		.env = store_read_json(stmt, 12)};
	store_read_text(stmt, 0, record->id, sizeof(record->id));
	store_read_text(stmt, 1, record->sandbox_id, sizeof(record->sandbox_id));
	store_read_text(stmt, 2, record->language, sizeof(record->language));
	store_read_text(stmt, 3, record->cwd, sizeof(record->cwd));
	store_read_text(stmt, 8, record->reason, sizeof(record->reason));
}

static int write_context(struct store *store, enum query query, const struct context_record *record,
	const char *what, struct err *err)
{
	struct db_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, query);
	bind_context(stmt, record);
	r = db_run(stmt, what, err);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_context_insert(struct store *store, const struct context_record *record, struct err *err)
{
	return write_context(store, Q_CONTEXT_INSERT, record, "add a context", err);
}

int store_context_update(struct store *store, const struct context_record *record, struct err *err)
{
	return write_context(store, Q_CONTEXT_UPDATE, record, "write a context", err);
}

int store_context_get(struct store *store, const char *sandbox_id, const char *id,
	struct context_record *ret_record, struct err *err)
{
	struct db_stmt *stmt;
	enum db_result code;
	int r = 0;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_CONTEXT_GET);
	db_bind_text(stmt, 1, sandbox_id);
	db_bind_text(stmt, 2, id);
	code = db_step(stmt);
	if (code == DB_ROW)
		read_context(stmt, ret_record);
	else if (code != DB_DONE)
		r = store_fail(store, "read a context", err);
	db_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	return code == DB_DONE ? context_not_found(id, err) : r;
}

int store_context_delete(
	struct store *store, const char *sandbox_id, const char *id, struct err *err)
{
	struct db_stmt *stmt;
	bool is_gone;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_CONTEXT_DELETE);
	db_bind_text(stmt, 1, sandbox_id);
	db_bind_text(stmt, 2, id);
	r = db_run(stmt, "delete a context", err);
	is_gone = r == 0 && db_changes(store->db) == 0;
	pthread_mutex_unlock(&store->lock);
	return is_gone ? context_not_found(id, err) : r;
}

int store_context_list(struct store *store, const char *sandbox_id, const char *after,
	struct context_record *records, unsigned max, struct err *err)
{
	struct db_stmt *stmt;
	enum db_result code;
	int count = 0, r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_CONTEXT_LIST);
	store_bind_optional(stmt, 1, sandbox_id);
	db_bind_text(stmt, 2, after);
	db_bind_int(stmt, 3, max);
	while ((code = db_step(stmt)) == DB_ROW)
		read_context(stmt, &records[count++]);
	r = code == DB_DONE ? count : store_fail(store, "list contexts", err);
	db_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	return r;
}
