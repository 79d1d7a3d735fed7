/* SPDX-License-Identifier: Apache-2.0 */
#include "store/work/store_function.h"

#include "store/store_clock.h"
#include "store/store_private.h"

#include <string.h>

#define PAGE_MAX 128 /* more than there are functions of an owner, or versions of a function */

static void read_function(struct db_stmt *stmt, struct function_record *record)
{
	*record = (struct function_record){.version = (uint32_t)db_column_int(stmt, 3),
		.created_at_ms = db_column_int(stmt, 4),
		.spec = store_read_json(stmt, 5)};
	store_read_text(stmt, 0, record->owner.organization, sizeof(record->owner.organization));
	store_read_text(stmt, 1, record->owner.user, sizeof(record->owner.user));
	store_read_text(stmt, 2, record->name, sizeof(record->name));
}

static struct db_stmt *use_named(
	struct store *store, enum query query, const struct owner *owner, const char *name)
{
	struct db_stmt *stmt = store_use(store, query);

	db_bind_text(stmt, 1, name);
	store_bind_owner(stmt, owner);
	return stmt;
}

/* One number; the lock is held. */
static int read_number(struct store *store, enum query query, const struct function_record *record,
	int64_t *ret_number, struct err *err)
{
	struct db_stmt *stmt = use_named(store, query, &record->owner, record->name);
	enum db_result code = db_step(stmt);

	*ret_number = code == DB_ROW ? db_column_int(stmt, 0) : 0;
	db_reset(stmt);
	return code == DB_ROW || code == DB_DONE ? 0 : store_fail(store, "count functions", err);
}

/* The lock is held, and a transaction runs. */
static int add_version(struct store *store, struct function_record *record, struct err *err)
{
	int64_t others, last;
	struct db_stmt *stmt;
	int r = read_number(store, Q_FUNCTION_COUNT, record, &others, err);

	if (r == 0 && others >= STORE_FUNCTIONS_MAX)
		return err_explain(err, ERR_RATE, "too_many_functions",
			"remove functions that you do not need",
			"an owner has at most %d functions", STORE_FUNCTIONS_MAX);
	if (r == 0)
		r = read_number(store, Q_FUNCTION_LAST, record, &last, err);
	if (r < 0)
		return r;
	record->version = (uint32_t)last + 1;
	record->created_at_ms = store_clock_ms(store);
	stmt = store_use(store, Q_FUNCTION_INSERT);
	db_bind_text(stmt, 1, record->owner.organization);
	db_bind_text(stmt, 2, record->owner.user);
	db_bind_text(stmt, 3, record->name);
	db_bind_int(stmt, 4, record->version);
	db_bind_int(stmt, 5, record->created_at_ms);
	store_bind_json(stmt, 6, record->spec);
	r = db_run(stmt, "add a function", err);
	if (r < 0)
		return r;
	stmt = use_named(store, Q_FUNCTION_TRIM, &record->owner, record->name);
	db_bind_int(stmt, 2, (int64_t)record->version - STORE_FUNCTION_VERSIONS_MAX);
	return db_run(stmt, "forget versions of a function", err);
}

int store_function_put(struct store *store, struct function_record *record, struct err *err)
{
	int r;

	pthread_mutex_lock(&store->lock);
	r = db_begin(store->db, err);
	if (r == 0) {
		r = add_version(store, record, err);
		if (r == 0)
			r = db_commit(store->db, err);
		if (r < 0)
			db_rollback(store->db);
	}
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_function_get(struct store *store, const struct owner *owner, const char *name,
	uint32_t version, struct function_record *ret_record, struct err *err)
{
	struct db_stmt *stmt;
	enum db_result code;
	int r = 0;

	pthread_mutex_lock(&store->lock);
	stmt = use_named(store, Q_FUNCTION_GET, owner, name);
	db_bind_int(stmt, 2, version);
	code = db_step(stmt);
	if (code == DB_ROW)
		read_function(stmt, ret_record);
	else if (code != DB_DONE)
		r = store_fail(store, "read a function", err);
	db_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	return code == DB_DONE ? function_not_found(name, version, err) : r;
}

/* Reads all that a statement gives, then calls each without the lock, which is held before. */
static int read_all(struct store *store, struct db_stmt *stmt,
	bool (*each)(const struct function_record *record, void *arg), void *arg, struct err *err)
{
	auto_free struct function_record *page = mem_new(PAGE_MAX * sizeof(*page));
	enum db_result code = DB_DONE;
	bool goes_on = true;
	size_t count = 0;
	int r;

	while (count < PAGE_MAX && (code = db_step(stmt)) == DB_ROW)
		read_function(stmt, &page[count++]);
	r = code == DB_ROW || code == DB_DONE ? 0 : store_fail(store, "list functions", err);
	db_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	for (size_t i = 0; i < count; i++) {
		goes_on = goes_on && r == 0 && each(&page[i], arg);
		function_record_fini(&page[i]);
	}
	return r;
}

int store_function_list(struct store *store, const struct owner *owner, const char *after,
	bool (*each)(const struct function_record *record, void *arg), void *arg, struct err *err)
{
	struct db_stmt *stmt;

	pthread_mutex_lock(&store->lock);
	stmt = use_named(store, Q_FUNCTION_LIST, owner, after);
	db_bind_int(stmt, 2, PAGE_MAX);
	return read_all(store, stmt, each, arg, err);
}

int store_function_versions(struct store *store, const struct owner *owner, const char *name,
	bool (*each)(const struct function_record *record, void *arg), void *arg, struct err *err)
{
	struct db_stmt *stmt;

	pthread_mutex_lock(&store->lock);
	stmt = use_named(store, Q_FUNCTION_VERSIONS, owner, name);
	db_bind_int(stmt, 2, PAGE_MAX);
	return read_all(store, stmt, each, arg, err);
}

int store_function_delete(
	struct store *store, const struct owner *owner, const char *name, struct err *err)
{
	int r;

	pthread_mutex_lock(&store->lock);
	r = db_run(use_named(store, Q_FUNCTION_DELETE, owner, name), "remove a function", err);
	if (r == 0 && db_changes(store->db) == 0)
		r = function_not_found(name, 0, err);
	pthread_mutex_unlock(&store->lock);
	return r;
}
