/* SPDX-License-Identifier: Apache-2.0 */
/* Sandboxes. */
#include "base/fail_point.h"
#include "model/access/owner.h"
#include "store/store_clock.h"
#include "store/store_private.h"

#include <stdio.h>
#include <string.h>

/* In the order of COLUMNS in sql.c; read_record too. */
static void bind_record(struct db_stmt *stmt, const struct sandbox_record *record)
{
	db_bind_text(stmt, 1, record->id);
	db_bind_text(stmt, 2, record->owner.organization);
	db_bind_text(stmt, 3, record->owner.user);
	store_bind_optional(stmt, 4, record->project);
	db_bind_text(stmt, 5, sandbox_status_name(record->status));
	db_bind_text(stmt, 6, record->template_name);
	db_bind_text(stmt, 7, record->driver);
	db_bind_int(stmt, 8, (int64_t)record->resources.cpu_millis);
	db_bind_int(stmt, 9, (int64_t)record->resources.memory_bytes);
	db_bind_int(stmt, 10, (int64_t)record->resources.disk_bytes);
	db_bind_int(stmt, 11, (int64_t)record->resources.pids);
	store_bind_json(stmt, 12, record->env);
	store_bind_json(stmt, 13, record->ports);
	store_bind_json(stmt, 14, record->labels);
	store_bind_json(stmt, 15, record->network);
	db_bind_int(stmt, 16, record->idle_timeout_s);
	db_bind_int(stmt, 17, record->lifetime_s);
	db_bind_int(stmt, 18, record->is_private);
	db_bind_int(stmt, 19, record->created_at_ms);
	db_bind_int(stmt, 20, record->started_at_ms);
	db_bind_int(stmt, 21, record->last_active_at_ms);
	db_bind_int(stmt, 22, record->expires_at_ms);
	db_bind_text(stmt, 23, end_reason_name(record->end.reason));
	db_bind_int(stmt, 24, record->end.signal);
	db_bind_text(stmt, 25, record->end.detail);
	db_bind_text(stmt, 26, record->error_message);
	db_bind_int(stmt, 27, (int64_t)record->end.cpu_us);
	db_bind_int(stmt, 28, (int64_t)record->end.peak_memory_bytes);
	store_bind_json(stmt, 29, record->start);
	store_bind_optional(stmt, 30, record->name);
	store_bind_json(stmt, 33, record->image);
	db_bind_text(stmt, 34, record->job);
	store_bind_json(stmt, 35, record->dependencies);
	db_bind_text(stmt, 36, record->session);
	store_bind_optional(stmt, 37, record->parent);
	db_bind_text(stmt, 38, record->role);
	store_bind_json(stmt, 39, record->members);
}

static void read_record(struct db_stmt *stmt, struct sandbox_record *record)
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
	store_read_text(stmt, 5, record->template_name, sizeof(record->template_name));
	store_read_text(stmt, 6, record->driver, sizeof(record->driver));
	record->resources = (struct resources){.cpu_millis = (uint64_t)db_column_int(stmt, 7),
		.memory_bytes = (uint64_t)db_column_int(stmt, 8),
		.disk_bytes = (uint64_t)db_column_int(stmt, 9),
		.pids = (uint64_t)db_column_int(stmt, 10)};
	record->env = store_read_json(stmt, 11);
	record->ports = store_read_json(stmt, 12);
	record->labels = store_read_json(stmt, 13);
	record->network = store_read_json(stmt, 14);
	record->idle_timeout_s = db_column_int(stmt, 15);
	record->lifetime_s = db_column_int(stmt, 16);
	record->is_private = (int)db_column_int(stmt, 17);
	record->created_at_ms = db_column_int(stmt, 18);
	record->started_at_ms = db_column_int(stmt, 19);
	record->last_active_at_ms = db_column_int(stmt, 20);
	record->expires_at_ms = db_column_int(stmt, 21);
	store_read_text(stmt, 22, name, sizeof(name));
	if (end_reason_parse(name, &record->end.reason) < 0)
		record->end.reason = END_NONE;
	record->end.signal = (int)db_column_int(stmt, 23);
	store_read_text(stmt, 24, record->end.detail, sizeof(record->end.detail));
	store_read_text(stmt, 25, record->error_message, sizeof(record->error_message));
	record->end.cpu_us = (uint64_t)db_column_int(stmt, 26);
	record->end.peak_memory_bytes = (uint64_t)db_column_int(stmt, 27);
	record->start = store_read_json(stmt, 28);
	store_read_text(stmt, 29, record->name, sizeof(record->name));
	record->image = store_read_json(stmt, 30);
	store_read_text(stmt, 31, record->job, sizeof(record->job));
	record->dependencies = store_read_json(stmt, 32);
	store_read_text(stmt, 33, record->session, sizeof(record->session));
	store_read_text(stmt, 34, record->parent, sizeof(record->parent));
	store_read_text(stmt, 35, record->role, sizeof(record->role));
	record->members = store_read_json(stmt, 36);
}

/* Finds the sandbox of its owner that has such a key: 1 and its id, or 0. */
static int find_holder(struct store *store, enum query query, const char *key, const char *session,
	const struct sandbox_record *record, char ret_id[ID_LEN + 1], struct err *err)
{
	struct db_stmt *stmt = store_use(store, query);
	int code;

	db_bind_text(stmt, 1, key);
	if (session)
		db_bind_text(stmt, 2, session);
	store_bind_owner(stmt, &record->owner);
	code = db_step(stmt);
	if (code == DB_ROW)
		store_read_text(stmt, 0, ret_id, ID_LEN + 1);
	db_reset(stmt);
	if (code != DB_ROW && code != DB_DONE)
		return store_fail(store, "read a sandbox", err);
	return code == DB_ROW;
}

/* The row cannot be as the record says: another sandbox has its name or its project. */
static int name_or_project_is_taken(
	struct store *store, const struct sandbox_record *record, struct err *err)
{
	char id[ID_LEN + 1] = "";
	int r = find_holder(store, Q_SANDBOX_FIND_NAME, record->name, NULL, record, id, err);

	if (r < 0)
		return r;
	if (r == 1 && strcmp(id, record->id) != 0)
		return err_explain(err, ERR_CONFLICT, "name_taken",
			"choose another name, or delete or rename that sandbox",
			"the sandbox %s has the name %s already", id, record->name);
	r = find_holder(store, Q_SANDBOX_FIND, record->project, record->session, record, id, err);
	if (r < 0)
		return r;
	return err_explain(err, ERR_CONFLICT, "project_has_sandbox",
		"use POST /v1/sandboxes/ensure to get it, or delete it first",
		"%s%s%s%s%s has the sandbox %s already", record->project[0] ? "project " : "",
		record->project, record->project[0] && record->session[0] ? ", " : "",
		record->session[0] ? "session " : "", record->session, id);
}

static int insert_row(struct store *store, struct sandbox_record *record, struct err *err)
{
	struct db_stmt *stmt = store_use(store, Q_SANDBOX_INSERT);
	int code;

	bind_record(stmt, record);
	code = db_step(stmt);
	db_reset(stmt);
	if (code == DB_DONE)
		return 0;
	switch (db_conflict(store->db)) {
	case DB_CONFLICT_KEY:
		return err_explain(err, ERR_CONFLICT, "sandbox_exists",
			"use it, or choose another id; ensure returns an existing one",
			"sandbox %s exists already", record->id);
	case DB_CONFLICT_UNIQUE:
		return name_or_project_is_taken(store, record, err);
	default:
		return store_fail(store, "add a sandbox", err);
	}
}

int store_sandbox_check_create(struct store *store, const struct sandbox_record *record,
	const struct workspace_claim *claim, struct err *err)
{
	bool is_alone = !record->parent[0];
	const struct quota_amounts wanted = {
		.of = {[QUOTA_SANDBOXES] = is_alone,
			[QUOTA_RUNNING] = is_alone,
			[QUOTA_WORKSPACES] = is_alone && claim->is_fresh,
			[QUOTA_CPU] = record->resources.cpu_millis,
			[QUOTA_MEMORY] = record->resources.memory_bytes,
			[QUOTA_DISK] = claim->disk_growth,
			[QUOTA_CREATES] = is_alone}};

	return store_quota_check(store, &record->owner, &wanted, err);
}

static int insert_sandbox(struct store *store, struct sandbox_record *record,
	int (*check)(struct store *store, const struct sandbox_record *record,
		const struct workspace_claim *claim, struct err *err),
	struct err *err)
{
	struct workspace_claim claim = {0};
	int r;

	pthread_mutex_lock(&store->lock);
	r = db_begin(store->db, err);
	if (r == 0) {
		r = store_workspace_claim(store, record, &claim, err);
		if (r == 0)
			r = insert_row(store, record, err);
		if (r == 0 && check)
			r = check(store, record, &claim, err);
		if (r == 0)
			r = store_layer_check_stack(store, record->image, err);
		if (r == 0)
			r = fail_point_check("create.row_written", err);
		if (r == 0)
			r = db_commit(store->db, err);
		if (r < 0) {
			db_rollback(store->db);
		} else {
			record->is_on_kept = !claim.is_fresh;
			store_stamp(store);
		}
	}
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_sandbox_insert(struct store *store, struct sandbox_record *record, struct err *err)
{
	bool is_counted = !owner_is_pool(&record->owner);

	return insert_sandbox(store, record, is_counted ? store_sandbox_check_create : NULL, err);
}

int store_sandbox_hold(struct store *store, struct sandbox_record *record, struct err *err)
{
	return insert_sandbox(store, record, NULL, err);
}

int store_sandbox_claim(struct store *store, const struct sandbox_record *record, struct err *err)
{
	const struct quota_amounts wanted = {
		.of = {[QUOTA_RUNNING] = !record->parent[0],
			[QUOTA_CPU] = record->resources.cpu_millis,
			[QUOTA_MEMORY] = record->resources.memory_bytes}};
	struct db_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	/* Most have no quota: their wake need not wait for a commit. */
	r = store_quota_applies(store, &record->owner, err);
	if (r <= 0) {
		pthread_mutex_unlock(&store->lock);
		return r;
	}
	r = db_begin(store->db, err);
	if (r == 0) {
		stmt = store_use(store, Q_SANDBOX_CLAIM);
		db_bind_text(stmt, 1, record->id);
		r = db_run(stmt, "claim a start", err);
		if (r == 0)
			r = store_quota_check(store, &record->owner, &wanted, err);
		fail_point("start.claim_written");
		if (r == 0)
			r = db_commit(store->db, err);
		if (r < 0)
			db_rollback(store->db);
	}
	pthread_mutex_unlock(&store->lock);
	return r;
}

static int give_row(struct store *store, enum query query, const char *id,
	const struct owner *owner, struct err *err)
{
	struct db_stmt *stmt = store_use(store, query);

	db_bind_text(stmt, 1, id);
	db_bind_text(stmt, 2, owner->organization);
	db_bind_text(stmt, 3, owner->user);
	return db_run(stmt, "give a sandbox to an owner", err);
}

int store_sandbox_give(struct store *store, const struct sandbox_record *record,
	const struct owner *owner, struct err *err)
{
	const struct quota_amounts wanted = {
		.of = {[QUOTA_SANDBOXES] = 1,
			[QUOTA_RUNNING] = 1,
			[QUOTA_WORKSPACES] = 1,
			[QUOTA_CPU] = record->resources.cpu_millis,
			[QUOTA_MEMORY] = record->resources.memory_bytes,
			[QUOTA_DISK] = record->resources.disk_bytes}};
	int r;

	pthread_mutex_lock(&store->lock);
	r = db_begin(store->db, err);
	if (r == 0) {
		r = give_row(store, Q_SANDBOX_GIVE, record->id, owner, err);
		if (r == 0)
			r = give_row(store, Q_WORKSPACE_GIVE, record->id, owner, err);
		if (r == 0 && owner->organization[0])
			r = store_quota_check(store, owner, &wanted, err);
		if (r == 0)
			r = db_commit(store->db, err);
		if (r < 0)
			db_rollback(store->db);
	}
	pthread_mutex_unlock(&store->lock);
	return r;
}

static uint64_t excess(uint64_t amount, int64_t before)
{
	return before >= 0 && amount > (uint64_t)before ? amount - (uint64_t)before : 0;
}

/* By how much the numbers of a record exceed those of its row. Of one that does not run only the disk counts. */
static int read_growth(struct store *store, const struct sandbox_record *record,
	struct quota_amounts *ret_growth, struct err *err)
{
	bool is_live = record->status == SANDBOX_CREATING || record->status == SANDBOX_RUNNING ||
		       record->status == SANDBOX_PAUSED;
	struct db_stmt *stmt = store_use(store, Q_SANDBOX_NUMBERS);
	struct quota_amounts growth = {0};
	int code;

	db_bind_text(stmt, 1, record->id);
	code = db_step(stmt);
	if (code == DB_ROW) {
		const struct resources *now = &record->resources;

		if (is_live) {
			growth.of[QUOTA_CPU] = excess(now->cpu_millis, db_column_int(stmt, 0));
			growth.of[QUOTA_MEMORY] = excess(now->memory_bytes, db_column_int(stmt, 1));
		}
		growth.of[QUOTA_DISK] = excess(now->disk_bytes, db_column_int(stmt, 2));
	}
	db_reset(stmt);
	if (code != DB_ROW && code != DB_DONE)
		return store_fail(store, "read the numbers of a sandbox", err);
	*ret_growth = growth;
	return 0;
}

int store_sandbox_update_row(
	struct store *store, const struct sandbox_record *record, struct err *err)
{
	struct db_stmt *stmt = store_use(store, Q_SANDBOX_UPDATE);
	int code;

	bind_record(stmt, record);
	code = db_step(stmt);
	db_reset(stmt);
	if (code != DB_DONE)
		return db_conflict(store->db) == DB_CONFLICT_UNIQUE
			       ? name_or_project_is_taken(store, record, err)
			       : store_fail(store, "update a sandbox", err);
	return db_changes(store->db) == 0 ? sandbox_not_found(record->id, err) : 0;
}

/* Of parallel ones exactly as many succeed as there is room for: all of it is one transaction. */
static int update_grown(struct store *store, const struct sandbox_record *record,
	const struct quota_amounts *growth, struct err *err)
{
	int r = db_begin(store->db, err);

	if (r < 0)
		return r;
	r = store_sandbox_update_row(store, record, err);
	if (r == 0)
		r = store_workspace_grow(store, record->id, record->resources.disk_bytes, err);
	if (r == 0)
		r = store_quota_check(store, &record->owner, growth, err);
	if (r == 0)
		r = db_commit(store->db, err);
	if (r < 0)
		db_rollback(store->db);
	return r;
}

int store_sandbox_update(struct store *store, const struct sandbox_record *record, struct err *err)
{
	static const struct quota_amounts none = {0};
	struct quota_amounts growth;
	int r;

	pthread_mutex_lock(&store->lock);
	r = read_growth(store, record, &growth, err);
	if (r == 0 && memcmp(&growth, &none, sizeof(none)) == 0)
		r = store_sandbox_update_row(store, record, err);
	else if (r == 0)
		r = update_grown(store, record, &growth, err);
	pthread_mutex_unlock(&store->lock);
	return r;
}

static int get_one(struct store *store, enum query query, const struct owner *owner,
	const char *key, const char *session, struct sandbox_record *ret_record, struct err *err)
{
	struct db_stmt *stmt;
	int code, r = 0;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, query);
	db_bind_text(stmt, 1, key);
	if (session)
		db_bind_text(stmt, 2, session);
	store_bind_owner(stmt, owner);
	code = db_step(stmt);
	if (code == DB_ROW)
		read_record(stmt, ret_record);
	else
		r = code == DB_DONE ? sandbox_not_found(key, err)
				    : store_fail(store, "read a sandbox", err);
	db_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_sandbox_get(struct store *store, const struct owner *owner, const char *id,
	struct sandbox_record *ret_record, struct err *err)
{
	return get_one(store, Q_SANDBOX_GET, owner, id, NULL, ret_record, err);
}

int store_sandbox_find(struct store *store, const struct owner *owner, const char *project,
	const char *session, struct sandbox_record *ret_record, struct err *err)
{
	return get_one(store, Q_SANDBOX_FIND, owner, project, session, ret_record, err);
}

int store_sandbox_find_name(struct store *store, const struct owner *owner, const char *name,
	struct sandbox_record *ret_record, struct err *err)
{
	return get_one(store, Q_SANDBOX_FIND_NAME, owner, name, NULL, ret_record, err);
}

int store_sandbox_delete(struct store *store, const char *id, struct err *err)
{
	struct db_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	r = db_begin(store->db, err);
	if (r == 0) {
		stmt = store_use(store, Q_WORKSPACE_LEAVE);
		db_bind_text(stmt, 1, id);
		db_bind_int(stmt, 2, store_clock_ms(store));
		r = db_run(stmt, "note when a workspace was left", err);
		if (r == 0) {
			stmt = store_use(store, Q_SANDBOX_DELETE);
			db_bind_text(stmt, 1, id);
			r = db_run(stmt, "delete a sandbox", err);
		}
		if (r == 0)
			r = db_commit(store->db, err);
		if (r < 0)
			db_rollback(store->db);
	}
	if (r == 0)
		store_stamp(store);
	pthread_mutex_unlock(&store->lock);
	return r;
}

static void bind_list(struct db_stmt *stmt, const struct store_filter *filter)
{
	db_bind_text(stmt, 1, filter->after ? filter->after : "");
	store_bind_optional(stmt, 2, filter->status);
	store_bind_optional(stmt, 3, filter->template_name);
	store_bind_optional(stmt, 4, filter->project);
	if (filter->label_key) {
		db_bind_text(stmt, 5, filter->label_key);
		db_bind_text(stmt, 6, filter->label_value);
	}
	db_bind_int(stmt, 7, store_page(filter->limit));
	store_bind_optional(stmt, 8, filter->session);
	db_bind_int(stmt, 9, filter->of_members);
	store_bind_owner(stmt, filter->owner);
}

/* Copies the next rows: how many. */
static int read_page(struct store *store, const struct store_filter *filter,
	struct sandbox_record page[STORE_PAGE], struct err *err)
{
	struct db_stmt *stmt;
	int code, count = 0, r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_SANDBOX_LIST);
	bind_list(stmt, filter);
	while ((code = db_step(stmt)) == DB_ROW)
		read_record(stmt, &page[count++]);
	r = code == DB_DONE ? count : store_fail(store, "list sandboxes", err);
	db_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	for (int i = 0; r < 0 && i < count; i++)
		sandbox_record_fini(&page[i]);
	return r;
}

int store_sandbox_list(struct store *store, const struct store_filter *filter,
	bool (*each)(const struct sandbox_record *record, void *arg), void *arg, struct err *err)
{
	auto_free struct sandbox_record *page = mem_new(STORE_PAGE * sizeof(*page));
	struct store_filter rest = *filter;
	char after[ID_LEN + 1];
	bool goes_on = true;
	int count;

	do {
		count = read_page(store, &rest, page, err);
		for (int i = 0; i < count; i++) {
			goes_on = goes_on && each(&page[i], arg);
			memcpy(after, page[i].id, sizeof(after));
			sandbox_record_fini(&page[i]);
		}
		rest.after = after;
		rest.limit -= count > 0 ? (unsigned)count : 0;
	} while (goes_on && count == STORE_PAGE);
	return count < 0 ? count : 0;
}

int store_sandbox_due(
	struct store *store, int64_t now_ms, char ids[][ID_LEN + 1], unsigned max, struct err *err)
{
	struct db_stmt *stmt;
	int code, count = 0;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_SANDBOX_DUE);
	db_bind_int(stmt, 1, now_ms);
	db_bind_int(stmt, 2, max);
	while ((code = db_step(stmt)) == DB_ROW)
		store_read_text(stmt, 0, ids[count++], ID_LEN + 1);
	if (code != DB_DONE)
		count = store_fail(store, "look for sandboxes that are due", err);
	db_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	return count;
}

int store_sandbox_unmade(struct store *store, const char *job, const char *after,
	char ids[][ID_LEN + 1], unsigned max, struct err *err)
{
	struct db_stmt *stmt;
	int code, count = 0;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_SANDBOX_UNMADE);
	store_bind_optional(stmt, 1, job);
	db_bind_text(stmt, 2, after);
	db_bind_int(stmt, 3, max);
	while ((code = db_step(stmt)) == DB_ROW)
		store_read_text(stmt, 0, ids[count++], ID_LEN + 1);
	if (code != DB_DONE)
		count = store_fail(store, "look for sandboxes that wait for a job", err);
	db_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	return count;
}

int store_sandbox_touch(
	struct store *store, const char *id, int64_t last_active_at_ms, struct err *err)
{
	struct db_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_SANDBOX_TOUCH);
	db_bind_text(stmt, 1, id);
	db_bind_int(stmt, 2, last_active_at_ms);
	r = db_run(stmt, "note a use", err);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_sandbox_end_all(
	struct store *store, enum end_reason reason, const char *detail, struct err *err)
{
	struct termination how = {.reason = reason};
	struct db_stmt *stmt;
	int r;

	snprintf(how.detail, sizeof(how.detail), "%s", detail);
	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_SANDBOX_END_ALL);
	db_bind_text(stmt, 1, end_reason_name(reason));
	db_bind_text(stmt, 2, detail);
	r = db_run(stmt, "end all sandboxes", err);
	pthread_mutex_unlock(&store->lock);
	if (r == 0)
		r = store_process_end_all(store, NULL, &how, err);
	return r;
}
