/* SPDX-License-Identifier: Apache-2.0 */
/* Sandboxes. */
#include "store/store_private.h"

#include <stdio.h>

/* In the order of COLUMNS in sql.c; read_record too. */
static void bind_record(sqlite3_stmt *stmt, const struct sandbox_record *record)
{
	store_bind_text(stmt, 1, record->id);
	store_bind_text(stmt, 2, record->owner.organization);
	store_bind_text(stmt, 3, record->owner.user);
	store_bind_optional(stmt, 4, record->project);
	store_bind_text(stmt, 5, sandbox_status_name(record->status));
	store_bind_text(stmt, 6, record->template_name);
	store_bind_text(stmt, 7, record->driver);
	sqlite3_bind_int64(stmt, 8, (int64_t)record->resources.cpu_millis);
	sqlite3_bind_int64(stmt, 9, (int64_t)record->resources.memory_bytes);
	sqlite3_bind_int64(stmt, 10, (int64_t)record->resources.disk_bytes);
	sqlite3_bind_int64(stmt, 11, (int64_t)record->resources.pids);
	store_bind_json(stmt, 12, record->env);
	store_bind_json(stmt, 13, record->ports);
	store_bind_json(stmt, 14, record->labels);
	store_bind_json(stmt, 15, record->network);
	sqlite3_bind_int64(stmt, 16, record->idle_timeout_s);
	sqlite3_bind_int64(stmt, 17, record->lifetime_s);
	sqlite3_bind_int(stmt, 18, record->is_private);
	sqlite3_bind_int64(stmt, 19, record->created_at_ms);
	sqlite3_bind_int64(stmt, 20, record->started_at_ms);
	sqlite3_bind_int64(stmt, 21, record->last_active_at_ms);
	sqlite3_bind_int64(stmt, 22, record->expires_at_ms);
	store_bind_text(stmt, 23, end_reason_name(record->end.reason));
	sqlite3_bind_int(stmt, 24, record->end.signal);
	store_bind_text(stmt, 25, record->end.detail);
	store_bind_text(stmt, 26, record->error_message);
	sqlite3_bind_int64(stmt, 27, (int64_t)record->end.cpu_us);
	sqlite3_bind_int64(stmt, 28, (int64_t)record->end.peak_memory_bytes);
	store_bind_json(stmt, 29, record->start);
}

static void read_record(sqlite3_stmt *stmt, struct sandbox_record *record)
{
	char name[32];

	*record = (struct sandbox_record){0};
	store_read_text(stmt, 0, record->id, sizeof(record->id));
	store_read_text(stmt, 1, record->owner.organization, MODEL_NAME_MAX);
	store_read_text(stmt, 2, record->owner.user, MODEL_NAME_MAX);
	store_read_text(stmt, 3, record->project, MODEL_NAME_MAX);
	store_read_text(stmt, 4, name, sizeof(name));
	if (sandbox_status_parse(name, &record->status) < 0)
		record->status = SANDBOX_ERROR;
	store_read_text(stmt, 5, record->template_name, MODEL_NAME_MAX);
	store_read_text(stmt, 6, record->driver, sizeof(record->driver));
	record->resources =
		(struct resources){.cpu_millis = (uint64_t)sqlite3_column_int64(stmt, 7),
			.memory_bytes = (uint64_t)sqlite3_column_int64(stmt, 8),
			.disk_bytes = (uint64_t)sqlite3_column_int64(stmt, 9),
			.pids = (uint64_t)sqlite3_column_int64(stmt, 10)};
	record->env = store_read_json(stmt, 11);
	record->ports = store_read_json(stmt, 12);
	record->labels = store_read_json(stmt, 13);
	record->network = store_read_json(stmt, 14);
	record->idle_timeout_s = sqlite3_column_int64(stmt, 15);
	record->lifetime_s = sqlite3_column_int64(stmt, 16);
	record->is_private = sqlite3_column_int(stmt, 17);
	record->created_at_ms = sqlite3_column_int64(stmt, 18);
	record->started_at_ms = sqlite3_column_int64(stmt, 19);
	record->last_active_at_ms = sqlite3_column_int64(stmt, 20);
	record->expires_at_ms = sqlite3_column_int64(stmt, 21);
	store_read_text(stmt, 22, name, sizeof(name));
	if (end_reason_parse(name, &record->end.reason) < 0)
		record->end.reason = END_NONE;
	record->end.signal = sqlite3_column_int(stmt, 23);
	store_read_text(stmt, 24, record->end.detail, sizeof(record->end.detail));
	store_read_text(stmt, 25, record->error_message, sizeof(record->error_message));
	record->end.cpu_us = (uint64_t)sqlite3_column_int64(stmt, 26);
	record->end.peak_memory_bytes = (uint64_t)sqlite3_column_int64(stmt, 27);
	record->start = store_read_json(stmt, 28);
	record->slot = (uint32_t)sqlite3_column_int64(stmt, 29);
}

static int project_is_taken(
	struct store *store, const struct sandbox_record *record, struct err *err)
{
	sqlite3_stmt *stmt = store_use(store, Q_SANDBOX_FIND);
	char id[ID_LEN + 1] = "";

	store_bind_text(stmt, 1, record->project);
	store_bind_owner(stmt, &record->owner);
	if (sqlite3_step(stmt) == SQLITE_ROW)
		store_read_text(stmt, 0, id, sizeof(id));
	sqlite3_reset(stmt);
	return err_explain(err, ERR_CONFLICT, "project_has_sandbox",
		"use POST /v1/sandboxes/ensure to get it, or delete it first",
		"project %s has the sandbox %s already", record->project, id);
}

static int insert_row(struct store *store, struct sandbox_record *record, struct err *err)
{
	sqlite3_stmt *stmt = store_use(store, Q_SANDBOX_INSERT);
	int code;

	bind_record(stmt, record);
	code = sqlite3_step(stmt);
	sqlite3_reset(stmt);
	if (code == SQLITE_DONE)
		return 0;
	switch (sqlite3_extended_errcode(store->db)) {
	case SQLITE_CONSTRAINT_PRIMARYKEY:
		return err_explain(err, ERR_CONFLICT, "sandbox_exists",
			"use it, or choose another id; ensure returns an existing one",
			"sandbox %s exists already", record->id);
	case SQLITE_CONSTRAINT_UNIQUE:
		return project_is_taken(store, record, err);
	default:
		return store_fail(store, "add a sandbox", err);
	}
}

static int check_create(
	struct store *store, const struct sandbox_record *record, bool fresh, struct err *err)
{
	const struct quota_amounts demand = {
		.of = {[QUOTA_SANDBOXES] = 1,
			[QUOTA_RUNNING] = 1,
			[QUOTA_WORKSPACES] = fresh,
			[QUOTA_CPU] = record->resources.cpu_millis,
			[QUOTA_MEMORY] = record->resources.memory_bytes,
			[QUOTA_DISK] = record->resources.disk_bytes,
			[QUOTA_CREATES] = 1}};

	return store_quota_check(store, &record->owner, &demand, err);
}

static int insert_sandbox(struct store *store, struct sandbox_record *record,
	int (*check)(struct store *store, const struct sandbox_record *record, bool fresh,
		struct err *err),
	struct err *err)
{
	bool fresh = false;
	int r;

	pthread_mutex_lock(&store->lock);
	r = store_run(store, store_use(store, Q_BEGIN), "begin", err);
	if (r == 0) {
		r = store_workspace_claim(store, record, &fresh, err);
		if (r == 0)
			r = insert_row(store, record, err);
		if (r == 0 && check)
			r = check(store, record, fresh, err);
		if (r == 0)
			r = store_run(store, store_use(store, Q_COMMIT), "commit", err);
		if (r < 0) {
			(void)!store_run(store, store_use(store, Q_ROLLBACK), "roll back", NULL);
			if (fresh)
				slot_set_free(&store->slots, record->slot);
		}
	}
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_sandbox_insert(struct store *store, struct sandbox_record *record, struct err *err)
{
	return insert_sandbox(store, record, check_create, err);
}

int store_sandbox_hold(struct store *store, struct sandbox_record *record, struct err *err)
{
	return insert_sandbox(store, record, NULL, err);
}

int store_sandbox_claim(struct store *store, const struct sandbox_record *record, struct err *err)
{
	const struct quota_amounts demand = {
		.of = {[QUOTA_RUNNING] = 1,
			[QUOTA_CPU] = record->resources.cpu_millis,
			[QUOTA_MEMORY] = record->resources.memory_bytes}};
	sqlite3_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	/* Most have no quota: their wake need not wait for a commit. */
	r = store_quota_applies(store, &record->owner, err);
	if (r <= 0) {
		pthread_mutex_unlock(&store->lock);
		return r;
	}
	r = store_run(store, store_use(store, Q_BEGIN), "begin", err);
	if (r == 0) {
		stmt = store_use(store, Q_SANDBOX_CLAIM);
		store_bind_text(stmt, 1, record->id);
		r = store_run(store, stmt, "claim a start", err);
		if (r == 0)
			r = store_quota_check(store, &record->owner, &demand, err);
		if (r == 0)
			r = store_run(store, store_use(store, Q_COMMIT), "commit", err);
		if (r < 0)
			(void)!store_run(store, store_use(store, Q_ROLLBACK), "roll back", NULL);
	}
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_sandbox_update(struct store *store, const struct sandbox_record *record, struct err *err)
{
	sqlite3_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_SANDBOX_UPDATE);
	bind_record(stmt, record);
	r = store_run(store, stmt, "update a sandbox", err);
	if (r == 0 && sqlite3_changes(store->db) == 0)
		r = sandbox_not_found(record->id, err);
	pthread_mutex_unlock(&store->lock);
	return r;
}

static int get_one(struct store *store, enum query query, const struct owner *owner,
	const char *key, struct sandbox_record *ret_record, struct err *err)
{
	sqlite3_stmt *stmt;
	int code, r = 0;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, query);
	store_bind_text(stmt, 1, key);
	store_bind_owner(stmt, owner);
	code = sqlite3_step(stmt);
	if (code == SQLITE_ROW)
		read_record(stmt, ret_record);
	else
		r = code == SQLITE_DONE ? sandbox_not_found(key, err)
					: store_fail(store, "read a sandbox", err);
	sqlite3_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_sandbox_get(struct store *store, const struct owner *owner, const char *id,
	struct sandbox_record *ret_record, struct err *err)
{
	return get_one(store, Q_SANDBOX_GET, owner, id, ret_record, err);
}

int store_sandbox_find(struct store *store, const struct owner *owner, const char *project,
	struct sandbox_record *ret_record, struct err *err)
{
	return get_one(store, Q_SANDBOX_FIND, owner, project, ret_record, err);
}

int store_sandbox_delete(struct store *store, const char *id, struct err *err)
{
	sqlite3_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_SANDBOX_DELETE);
	store_bind_text(stmt, 1, id);
	r = store_run(store, stmt, "delete a sandbox", err);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_sandbox_list(struct store *store, const struct store_filter *filter,
	void (*each)(const struct sandbox_record *record, void *arg), void *arg, struct err *err)
{
	sqlite3_stmt *stmt;
	int code, r = 0;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_SANDBOX_LIST);
	store_bind_text(stmt, 1, filter->after ? filter->after : "");
	store_bind_optional(stmt, 2, filter->status);
	store_bind_optional(stmt, 3, filter->template_name);
	store_bind_optional(stmt, 4, filter->project);
	if (filter->label_key) {
		store_bind_text(stmt, 5, filter->label_key);
		store_bind_text(stmt, 6, filter->label_value);
	}
	sqlite3_bind_int64(stmt, 7, filter->limit);
	store_bind_owner(stmt, filter->owner);
	while ((code = sqlite3_step(stmt)) == SQLITE_ROW) {
		struct sandbox_record record;

		read_record(stmt, &record);
		each(&record, arg);
		sandbox_record_fini(&record);
	}
	if (code != SQLITE_DONE)
		r = store_fail(store, "list sandboxes", err);
	sqlite3_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_sandbox_due(
	struct store *store, int64_t now_ms, char ids[][ID_LEN + 1], unsigned max, struct err *err)
{
	sqlite3_stmt *stmt;
	int code, count = 0;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_SANDBOX_DUE);
	sqlite3_bind_int64(stmt, 1, now_ms);
	sqlite3_bind_int64(stmt, 2, max);
	while ((code = sqlite3_step(stmt)) == SQLITE_ROW)
		store_read_text(stmt, 0, ids[count++], ID_LEN + 1);
	if (code != SQLITE_DONE)
		count = store_fail(store, "look for sandboxes that are due", err);
	sqlite3_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	return count;
}

int store_sandbox_touch(
	struct store *store, const char *id, int64_t last_active_at_ms, struct err *err)
{
	sqlite3_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_SANDBOX_TOUCH);
	store_bind_text(stmt, 1, id);
	sqlite3_bind_int64(stmt, 2, last_active_at_ms);
	r = store_run(store, stmt, "note a use", err);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_sandbox_end_all(
	struct store *store, enum end_reason reason, const char *detail, struct err *err)
{
	struct termination how = {.reason = reason};
	sqlite3_stmt *stmt;
	int r;

	snprintf(how.detail, sizeof(how.detail), "%s", detail);
	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_SANDBOX_END_ALL);
	store_bind_text(stmt, 1, end_reason_name(reason));
	store_bind_text(stmt, 2, detail);
	r = store_run(store, stmt, "end all sandboxes", err);
	pthread_mutex_unlock(&store->lock);
	if (r == 0)
		r = store_process_end_all(store, NULL, &how, err);
	return r;
}
