/* SPDX-License-Identifier: Apache-2.0 */
#include "store/work/store_job.h"

#include "store/store_private.h"

#include <errno.h>
#include <string.h>

static void bind_job(struct db_stmt *stmt, const struct job_record *record)
{
	db_bind_text(stmt, 1, record->id);
	db_bind_text(stmt, 2, record->kind);
	db_bind_text(stmt, 3, record->owner.organization);
	db_bind_text(stmt, 4, record->owner.user);
	db_bind_text(stmt, 5, record->target);
	store_bind_optional(stmt, 6, record->key);
	store_bind_json(stmt, 7, record->input);
	db_bind_text(stmt, 8, job_state_name(record->state));
	db_bind_int(stmt, 9, record->is_cancelling);
	db_bind_int(stmt, 10, record->tries);
	db_bind_text(stmt, 11, record->progress);
	db_bind_int(stmt, 12, (int64_t)record->done_bytes);
	db_bind_int(stmt, 13, (int64_t)record->total_bytes);
	store_bind_json(stmt, 14, record->result);
	db_bind_text(stmt, 15, record->error_code);
	db_bind_text(stmt, 16, record->error_message);
	db_bind_text(stmt, 17, record->error_remedy);
	db_bind_int(stmt, 18, record->created_at_ms);
	db_bind_int(stmt, 19, record->started_at_ms);
	db_bind_int(stmt, 20, record->ended_at_ms);
	db_bind_text(stmt, 21, err_class(record->error_kind)->code);
}

static void read_job(struct db_stmt *stmt, struct job_record *record)
{
	char state[16], kind[sizeof(((struct err *)NULL)->code)];

	*record = (struct job_record){.is_cancelling = db_column_int(stmt, 8) != 0,
		.tries = (unsigned)db_column_int(stmt, 9),
		.done_bytes = (uint64_t)db_column_int(stmt, 11),
		.total_bytes = (uint64_t)db_column_int(stmt, 12),
		.created_at_ms = db_column_int(stmt, 17),
		.started_at_ms = db_column_int(stmt, 18),
		.ended_at_ms = db_column_int(stmt, 19)};
	store_read_text(stmt, 0, record->id, sizeof(record->id));
	store_read_text(stmt, 1, record->kind, sizeof(record->kind));
	store_read_text(stmt, 2, record->owner.organization, sizeof(record->owner.organization));
	store_read_text(stmt, 3, record->owner.user, sizeof(record->owner.user));
	store_read_text(stmt, 4, record->target, sizeof(record->target));
	store_read_text(stmt, 5, record->key, sizeof(record->key));
	record->input = store_read_json(stmt, 6);
	store_read_text(stmt, 7, state, sizeof(state));
	if (job_state_parse(state, &record->state) < 0)
		record->state = JOB_LOST;
	store_read_text(stmt, 10, record->progress, sizeof(record->progress));
	record->result = store_read_json(stmt, 13);
	store_read_text(stmt, 14, record->error_code, sizeof(record->error_code));
	store_read_text(stmt, 15, record->error_message, sizeof(record->error_message));
	store_read_text(stmt, 16, record->error_remedy, sizeof(record->error_remedy));
	store_read_text(stmt, 20, kind, sizeof(kind));
	record->error_kind = err_kind_of(kind);
}

/* --- changes --- */

/* How many of an owner are not over, or -errno. The lock is held. */
static int64_t count_active(struct store *store, const struct owner *owner, struct err *err)
{
	struct db_stmt *stmt = store_use(store, Q_JOB_ACTIVE);
	int64_t count;

	store_bind_owner(stmt, owner);
	count = db_step(stmt) == DB_ROW ? db_column_int(stmt, 0)
					: store_fail(store, "count jobs", err);
	db_reset(stmt);
	return count;
}

/* The lock is held. */
static int insert(struct store *store, const struct job_record *record, struct err *err)
{
	int64_t active = count_active(store, &record->owner, err);
	struct db_stmt *stmt;
	enum db_result code;

	if (active < 0)
		return (int)active;
	if (active >= STORE_JOBS_ACTIVE_MAX)
		return err_explain(err, ERR_RATE, "too_many_jobs",
			"wait until one is over, or cancel one: sandlot job ls",
			"%u jobs are queued or running, which is as many as one owner may have",
			STORE_JOBS_ACTIVE_MAX);
	stmt = store_use(store, Q_JOB_INSERT);
	bind_job(stmt, record);
	code = db_step(stmt);
	db_reset(stmt);
	if (code == DB_DONE)
		return 0;
	if (db_conflict(store->db) != DB_CONFLICT_NONE)
		return err_explain(err, ERR_CONFLICT, "job_exists", "ask again when it is over",
			"the same job is being cancelled and not over yet");
	return store_fail(store, "add a job", err);
}

int store_job_insert(struct store *store, const struct job_record *record, struct err *err)
{
	int r;

	pthread_mutex_lock(&store->lock);
	r = insert(store, record, err);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_job_update(struct store *store, const struct job_record *record, struct err *err)
{
	struct db_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_JOB_UPDATE);
	bind_job(stmt, record);
	r = db_run(stmt, "write a job", err);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_job_delete(struct store *store, const char *id, struct err *err)
{
	struct db_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_JOB_DELETE);
	db_bind_text(stmt, 1, id);
	r = db_run(stmt, "forget a job", err);
	pthread_mutex_unlock(&store->lock);
	return r;
}

/* --- questions --- */

/* Takes the one row that a statement gives; 1 if there is none. The lock is held. */
static int take_row(
	struct store *store, struct db_stmt *stmt, struct job_record *ret_record, struct err *err)
{
	enum db_result code = db_step(stmt);
	int r = 0;

	if (code == DB_ROW)
		read_job(stmt, ret_record);
	else
		r = code == DB_DONE ? 1 : store_fail(store, "read a job", err);
	db_reset(stmt);
	return r;
}

int store_job_get(struct store *store, const struct owner *owner, const char *id,
	struct job_record *ret_record, struct err *err)
{
	struct db_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_JOB_GET);
	db_bind_text(stmt, 1, id);
	store_bind_owner(stmt, owner);
	r = take_row(store, stmt, ret_record, err);
	pthread_mutex_unlock(&store->lock);
	return r > 0 ? job_not_found(id, err) : r;
}

int store_job_find(struct store *store, const struct owner *owner, const char *kind,
	const char *key, struct job_record *ret_record, struct err *err)
{
	struct db_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_JOB_FIND);
	db_bind_text(stmt, 1, kind);
	db_bind_text(stmt, 2, key);
	store_bind_owner(stmt, owner);
	r = take_row(store, stmt, ret_record, err);
	pthread_mutex_unlock(&store->lock);
	return r > 0 ? job_not_found(key, err) : r;
}

static int read_page(struct store *store, const struct store_job_filter *filter, const char *before,
	unsigned limit, struct job_record page[STORE_PAGE], struct err *err)
{
	struct db_stmt *stmt;
	enum db_result code;
	int count = 0, r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_JOB_LIST);
	store_bind_optional(stmt, 1, before);
	store_bind_optional(stmt, 2, filter->state);
	store_bind_optional(stmt, 3, filter->kind);
	store_bind_optional(stmt, 4, filter->target);
	db_bind_int(stmt, 5, filter->is_active);
	db_bind_int(stmt, 6, store_page(limit));
	store_bind_owner(stmt, filter->owner);
	while ((code = db_step(stmt)) == DB_ROW)
		read_job(stmt, &page[count++]);
	r = code == DB_DONE ? count : store_fail(store, "list jobs", err);
	db_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	for (int i = 0; r < 0 && i < count; i++)
		job_record_fini(&page[i]);
	return r;
}

int store_job_list(struct store *store, const struct store_job_filter *filter,
	bool (*each)(const struct job_record *record, void *arg), void *arg, struct err *err)
{
	auto_free struct job_record *page = mem_new(STORE_PAGE * sizeof(*page));
	const char *before = filter->before;
	unsigned limit = filter->limit;
	char last[ID_LEN + 1];
	bool goes_on = true;
	int count;

	do {
		count = read_page(store, filter, before, limit, page, err);
		if (count > 0) {
			memcpy(last, page[count - 1].id, sizeof(last));
			before = last;
			limit -= (unsigned)count;
		}
		for (int i = 0; i < count; i++) {
			goes_on = goes_on && each(&page[i], arg);
			job_record_fini(&page[i]);
		}
	} while (count == STORE_PAGE && goes_on);
	return count < 0 ? count : 0;
}

int store_job_excess(struct store *store, const struct owner *owner, unsigned keep,
	char ids[][ID_LEN + 1], unsigned max, struct err *err)
{
	struct db_stmt *stmt;
	enum db_result code;
	int count = 0, r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_JOB_EXCESS);
	db_bind_int(stmt, 1, keep);
	db_bind_int(stmt, 2, max);
	store_bind_owner(stmt, owner);
	while ((code = db_step(stmt)) == DB_ROW)
		store_read_text(stmt, 0, ids[count++], ID_LEN + 1);
	r = code == DB_DONE ? count : store_fail(store, "list jobs", err);
	db_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	return r;
}
