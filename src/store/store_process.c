/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "store/store_private.h"

#include <stdio.h>

/* The column `flags`. */
#define FLAG_LINE	1
#define FLAG_BACKGROUND 2
#define FLAG_PTY	4
#define FLAG_KILLS_TREE 8
#define FLAG_INPUT_OPEN 16
#define FLAG_ISOLATED	32
#define FLAG_CEASED	64

static void bind_key(sqlite3_stmt *stmt, const char *sandbox_id, uint32_t number)
{
	store_bind_text(stmt, 1, sandbox_id);
	sqlite3_bind_int64(stmt, 2, number);
}

/* As a list of numbers and times: [[165,3]]. */
static void bind_denied(sqlite3_stmt *stmt, int at, const struct termination *end)
{
	json_auto_t *list = json_array();

	for (uint32_t i = 0; i < end->denied_count; i++)
		json_array_append_new(list, json_pack("[I, I]", (json_int_t)end->denied[i].number,
						    (json_int_t)end->denied[i].times));
	store_bind_json(stmt, at, list);
}

static void read_denied(sqlite3_stmt *stmt, int column, struct termination *end)
{
	json_auto_t *list = store_read_json(stmt, column);
	json_t *pair;
	size_t i;

	json_array_foreach(list, i, pair)
	{
		json_int_t number, times;

		if (end->denied_count == TERMINATION_DENIED_MAX ||
			json_unpack(pair, "[I, I]", &number, &times) < 0)
			break;
		end->denied[end->denied_count++] =
			(struct denied_call){(uint32_t)number, (uint32_t)times};
	}
}

static void bind_process(sqlite3_stmt *stmt, const struct process_record *record)
{
	bind_key(stmt, record->sandbox_id, record->number);
	sqlite3_bind_int64(stmt, 3, record->pid);
	store_bind_json(stmt, 4, record->argv);
	store_bind_text(stmt, 5, record->cwd);
	sqlite3_bind_int64(stmt, 6, record->uid);
	sqlite3_bind_int(stmt, 7,
		(record->is_line ? FLAG_LINE : 0) | (record->is_background ? FLAG_BACKGROUND : 0) |
			(record->is_pty ? FLAG_PTY : 0) |
			(record->kills_tree ? FLAG_KILLS_TREE : 0) |
			(record->is_input_open ? FLAG_INPUT_OPEN : 0) |
			(record->is_isolated ? FLAG_ISOLATED : 0) |
			(record->is_ceased ? FLAG_CEASED : 0));
	sqlite3_bind_int64(stmt, 8, (int64_t)record->timeout_ms);
	sqlite3_bind_int64(stmt, 9, record->started_at_ms);
	sqlite3_bind_int64(stmt, 10, record->ended_at_ms);
	sqlite3_bind_int(stmt, 11, record->exit_code);
	sqlite3_bind_int64(stmt, 12, (int64_t)record->duration_us);
	sqlite3_bind_int64(stmt, 13, (int64_t)record->output_bytes);
	sqlite3_bind_int64(stmt, 14, record->survivors);
	store_bind_text(stmt, 15, end_reason_name(record->end.reason));
	sqlite3_bind_int(stmt, 16, record->end.signal);
	store_bind_text(stmt, 17, record->end.detail);
	sqlite3_bind_int64(stmt, 18, (int64_t)record->end.cpu_us);
	sqlite3_bind_int64(stmt, 19, (int64_t)record->end.peak_memory_bytes);
	store_bind_text(stmt, 20, record->end.profile);
	bind_denied(stmt, 21, &record->end);
	store_bind_text(stmt, 22, record->start);
	sqlite3_bind_int64(stmt, 23, record->restarts);
	sqlite3_bind_int64(stmt, 24, (int64_t)record->start_digest);
}

static void read_process(sqlite3_stmt *stmt, struct process_record *record)
{
	const char *cwd = (const char *)sqlite3_column_text(stmt, 4);
	int flags = sqlite3_column_int(stmt, 6);
	char name[32];

	*record = (struct process_record){.number = (uint32_t)sqlite3_column_int64(stmt, 1),
		.pid = (uint32_t)sqlite3_column_int64(stmt, 2),
		.argv = store_read_json(stmt, 3),
		.cwd = mem_strdup(cwd ? cwd : ""),
		.uid = (uint32_t)sqlite3_column_int64(stmt, 5),
		.is_line = flags & FLAG_LINE,
		.is_background = flags & FLAG_BACKGROUND,
		.is_pty = flags & FLAG_PTY,
		.kills_tree = flags & FLAG_KILLS_TREE,
		.is_input_open = flags & FLAG_INPUT_OPEN,
		.is_isolated = flags & FLAG_ISOLATED,
		.is_ceased = flags & FLAG_CEASED,
		.timeout_ms = (uint64_t)sqlite3_column_int64(stmt, 7),
		.started_at_ms = sqlite3_column_int64(stmt, 8),
		.ended_at_ms = sqlite3_column_int64(stmt, 9),
		.exit_code = sqlite3_column_int(stmt, 10),
		.duration_us = (uint64_t)sqlite3_column_int64(stmt, 11),
		.output_bytes = (uint64_t)sqlite3_column_int64(stmt, 12),
		.survivors = (uint32_t)sqlite3_column_int64(stmt, 13)};
	store_read_text(stmt, 0, record->sandbox_id, sizeof(record->sandbox_id));
	store_read_text(stmt, 14, name, sizeof(name));
	if (end_reason_parse(name, &record->end.reason) < 0)
		record->end.reason = END_NONE;
	record->end.signal = sqlite3_column_int(stmt, 15);
	store_read_text(stmt, 16, record->end.detail, sizeof(record->end.detail));
	record->end.cpu_us = (uint64_t)sqlite3_column_int64(stmt, 17);
	record->end.peak_memory_bytes = (uint64_t)sqlite3_column_int64(stmt, 18);
	store_read_text(stmt, 19, record->end.profile, sizeof(record->end.profile));
	read_denied(stmt, 20, &record->end);
	store_read_text(stmt, 21, record->start, sizeof(record->start));
	record->restarts = (uint32_t)sqlite3_column_int64(stmt, 22);
	record->start_digest = (uint64_t)sqlite3_column_int64(stmt, 23);
}

static int write_process(struct store *store, enum query query, const struct process_record *record,
	const char *what, struct err *err)
{
	sqlite3_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, query);
	bind_process(stmt, record);
	r = store_run(store, stmt, what, err);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_process_insert(struct store *store, const struct process_record *record, struct err *err)
{
	return write_process(store, Q_PROCESS_INSERT, record, "add a process", err);
}

int store_process_update(struct store *store, const struct process_record *record, struct err *err)
{
	return write_process(store, Q_PROCESS_UPDATE, record, "update a process", err);
}

int store_process_delete(
	struct store *store, const char *sandbox_id, uint32_t number, struct err *err)
{
	sqlite3_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_PROCESS_DELETE);
	bind_key(stmt, sandbox_id, number);
	r = store_run(store, stmt, "forget a process", err);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_process_get(struct store *store, const char *sandbox_id, uint32_t number,
	struct process_record *ret_record, struct err *err)
{
	char name[PROCESS_NAME_MAX];
	sqlite3_stmt *stmt;
	int code, r = 0;

	process_name_format(number, name);
	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_PROCESS_GET);
	bind_key(stmt, sandbox_id, number);
	code = sqlite3_step(stmt);
	if (code == SQLITE_ROW)
		read_process(stmt, ret_record);
	else
		r = code == SQLITE_DONE ? process_not_found(name, err)
					: store_fail(store, "read a process", err);
	sqlite3_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_process_list(struct store *store, const char *sandbox_id, bool running_only,
	void (*each)(const struct process_record *record, void *arg), void *arg, struct err *err)
{
	sqlite3_stmt *stmt;
	int code, r = 0;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_PROCESS_LIST);
	store_bind_text(stmt, 1, sandbox_id);
	sqlite3_bind_int(stmt, 2, running_only);
	while ((code = sqlite3_step(stmt)) == SQLITE_ROW) {
		struct process_record record;

		read_process(stmt, &record);
		each(&record, arg);
		process_record_fini(&record);
	}
	if (code != SQLITE_DONE)
		r = store_fail(store, "list processes", err);
	sqlite3_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_process_last(
	struct store *store, const char *sandbox_id, uint32_t *ret_number, struct err *err)
{
	sqlite3_stmt *stmt;
	int code, r = 0;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_PROCESS_LAST);
	store_bind_text(stmt, 1, sandbox_id);
	code = sqlite3_step(stmt);
	if (code == SQLITE_ROW)
		*ret_number = (uint32_t)sqlite3_column_int64(stmt, 0);
	else
		r = store_fail(store, "number the processes", err);
	sqlite3_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_process_surplus(struct store *store, const char *sandbox_id, unsigned keep,
	uint32_t numbers[], unsigned max, struct err *err)
{
	sqlite3_stmt *stmt;
	int code, count = 0;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_PROCESS_SURPLUS);
	store_bind_text(stmt, 1, sandbox_id);
	sqlite3_bind_int64(stmt, 2, max);
	sqlite3_bind_int64(stmt, 3, keep);
	while ((code = sqlite3_step(stmt)) == SQLITE_ROW)
		numbers[count++] = (uint32_t)sqlite3_column_int64(stmt, 0);
	if (code != SQLITE_DONE)
		count = store_fail(store, "look for old processes", err);
	sqlite3_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	return count;
}

int store_process_end_all(
	struct store *store, const char *sandbox_id, const struct termination *how, struct err *err)
{
	sqlite3_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_PROCESS_END_ALL);
	if (sandbox_id)
		store_bind_text(stmt, 1, sandbox_id);
	sqlite3_bind_int64(stmt, 2, clock_wall_ms());
	store_bind_text(stmt, 3, end_reason_name(how->reason));
	store_bind_text(stmt, 4, how->detail);
	r = store_run(store, stmt, "end processes", err);
	pthread_mutex_unlock(&store->lock);
	return r;
}
