/* SPDX-License-Identifier: Apache-2.0 */
#include "store/work/store_launch.h"

#include "store/store_private.h"

#include <string.h>

#define PAGE 16 /* rows with their documents, copied at a time */

static void bind_launch(struct db_stmt *stmt, const struct launch_record *record)
{
	db_bind_text(stmt, 1, record->id);
	db_bind_text(stmt, 2, record->owner.organization);
	db_bind_text(stmt, 3, record->owner.user);
	db_bind_text(stmt, 4, record->project);
	db_bind_text(stmt, 5, record->sandbox_id);
	db_bind_text(stmt, 6, launch_status_name(record->status));
	db_bind_text(stmt, 7, record->failed_stage);
	db_bind_text(stmt, 8, record->cause);
	store_bind_json(stmt, 9, record->document);
	db_bind_int(stmt, 10, record->created_at_ms);
	db_bind_int(stmt, 11, record->ended_at_ms);
}

static void read_launch(struct db_stmt *stmt, struct launch_record *record)
{
	char status[16];

	*record = (struct launch_record){.document = store_read_json(stmt, 8),
		.created_at_ms = db_column_int(stmt, 9),
		.ended_at_ms = db_column_int(stmt, 10)};
	store_read_text(stmt, 0, record->id, sizeof(record->id));
	store_read_text(stmt, 1, record->owner.organization, sizeof(record->owner.organization));
	store_read_text(stmt, 2, record->owner.user, sizeof(record->owner.user));
	store_read_text(stmt, 3, record->project, sizeof(record->project));
	store_read_text(stmt, 4, record->sandbox_id, sizeof(record->sandbox_id));
	store_read_text(stmt, 5, status, sizeof(status));
	store_read_text(stmt, 6, record->failed_stage, sizeof(record->failed_stage));
	store_read_text(stmt, 7, record->cause, sizeof(record->cause));
	if (launch_status_parse(status, &record->status) < 0)
		record->status = LAUNCH_FAILED;
	if (!record->document)
		record->document = json_object();
}

/* Runs a statement that takes a whole record. */
static int write_launch(struct store *store, enum query query, const struct launch_record *record,
	const char *what, struct err *err)
{
	struct db_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, query);
	bind_launch(stmt, record);
	r = db_run(stmt, what, err);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_launch_insert(struct store *store, const struct launch_record *record, struct err *err)
{
	return write_launch(store, Q_LAUNCH_INSERT, record, "add a launch", err);
}

int store_launch_update(struct store *store, const struct launch_record *record, struct err *err)
{
	return write_launch(store, Q_LAUNCH_UPDATE, record, "write a launch", err);
}

int store_launch_get(struct store *store, const struct owner *owner, const char *id,
	struct launch_record *ret_record, struct err *err)
{
	struct db_stmt *stmt;
	enum db_result code;
	int r = 0;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_LAUNCH_GET);
	db_bind_text(stmt, 1, id);
	store_bind_owner(stmt, owner);
	code = db_step(stmt);
	if (code == DB_ROW)
		read_launch(stmt, ret_record);
	else if (code != DB_DONE)
		r = store_fail(store, "read a launch", err);
	db_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	return code == DB_DONE ? launch_not_found(id, err) : r;
}

static int read_page(struct store *store, const struct store_launch_filter *filter,
	const char *before, unsigned limit, struct launch_record page[PAGE], struct err *err)
{
	struct db_stmt *stmt;
	enum db_result code;
	int count = 0, r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_LAUNCH_LIST);
	store_bind_optional(stmt, 1, before);
	store_bind_optional(stmt, 2, filter->status);
	store_bind_optional(stmt, 3, filter->project);
	store_bind_optional(stmt, 4, filter->failed_stage);
	db_bind_int(stmt, 5, filter->since_ms);
	db_bind_int(stmt, 6, limit < PAGE ? limit : PAGE);
	store_bind_owner(stmt, filter->owner);
	store_bind_optional(stmt, 9, filter->sandbox);
	while ((code = db_step(stmt)) == DB_ROW)
		read_launch(stmt, &page[count++]);
	r = code == DB_DONE ? count : store_fail(store, "list launches", err);
	db_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	for (int i = 0; r < 0 && i < count; i++)
		launch_record_fini(&page[i]);
	return r;
}

int store_launch_list(struct store *store, const struct store_launch_filter *filter,
	bool (*each)(const struct launch_record *record, void *arg), void *arg, struct err *err)
{
	struct launch_record page[PAGE];
	const char *before = filter->before;
	unsigned limit = filter->limit;
	char last[ID_LEN + 1];
	bool goes_on = true;
	int count;

	do {
		count = limit > 0 ? read_page(store, filter, before, limit, page, err) : 0;
		if (count > 0) {
			memcpy(last, page[count - 1].id, sizeof(last));
			before = last;
			limit -= (unsigned)count;
		}
		for (int i = 0; i < count; i++) {
			goes_on = goes_on && each(&page[i], arg);
			launch_record_fini(&page[i]);
		}
	} while (count == PAGE && goes_on);
	return count < 0 ? count : 0;
}

int store_launch_prune(
	struct store *store, const struct owner *owner, unsigned keep, struct err *err)
{
	struct db_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_LAUNCH_PRUNE);
	db_bind_int(stmt, 1, keep);
	store_bind_owner(stmt, owner);
	r = db_run(stmt, "forget launches", err);
	pthread_mutex_unlock(&store->lock);
	return r;
}
