/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store_clock.h"
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
#define FLAG_ARGV_CUT	128
#define FLAG_KEEP_AWAKE 256
/* Above these: what it was flagged for. */
#define DANGER_SHIFT 16

static void bind_key(struct db_stmt *stmt, const char *sandbox_id, uint32_t number)
{
	db_bind_text(stmt, 1, sandbox_id);
	db_bind_int(stmt, 2, number);
}

/* As a list of numbers and times: [[165,3]]. */
static void bind_denied(struct db_stmt *stmt, int at, const struct termination *end)
{
	json_auto_t *list = json_array();

	for (uint32_t i = 0; i < end->denied_count; i++)
		json_array_append_new(list, json_pack("[I, I]", (json_int_t)end->denied[i].number,
						    (json_int_t)end->denied[i].times));
	store_bind_json(stmt, at, list);
}

static void read_denied(struct db_stmt *stmt, int column, struct termination *end)
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

static void bind_process(struct db_stmt *stmt, const struct process_record *record)
{
	bind_key(stmt, record->sandbox_id, record->number);
	db_bind_int(stmt, 3, record->pid);
	store_bind_json(stmt, 4, record->argv);
	db_bind_text(stmt, 5, record->cwd);
	db_bind_int(stmt, 6, record->uid);
	db_bind_int(stmt, 7,
		(record->is_line ? FLAG_LINE : 0) | (record->is_background ? FLAG_BACKGROUND : 0) |
			(record->is_pty ? FLAG_PTY : 0) |
			(record->kills_tree ? FLAG_KILLS_TREE : 0) |
			(record->is_input_open ? FLAG_INPUT_OPEN : 0) |
			(record->is_isolated ? FLAG_ISOLATED : 0) |
			(record->is_ceased ? FLAG_CEASED : 0) |
			(record->is_argv_cut ? FLAG_ARGV_CUT : 0) |
			(record->keeps_awake ? FLAG_KEEP_AWAKE : 0) |
			((int64_t)record->danger << DANGER_SHIFT));
	db_bind_int(stmt, 8, (int64_t)record->timeout_ms);
	db_bind_int(stmt, 9, record->started_at_ms);
	db_bind_int(stmt, 10, record->ended_at_ms);
	db_bind_int(stmt, 11, record->exit_code);
	db_bind_int(stmt, 12, (int64_t)record->duration_us);
	db_bind_int(stmt, 13, (int64_t)record->output_bytes);
	db_bind_int(stmt, 14, record->survivors);
	db_bind_text(stmt, 15, end_reason_name(record->end.reason));
	db_bind_int(stmt, 16, record->end.signal);
	db_bind_text(stmt, 17, record->end.detail);
	db_bind_int(stmt, 18, (int64_t)record->end.cpu_us);
	db_bind_int(stmt, 19, (int64_t)record->end.peak_memory_bytes);
	db_bind_text(stmt, 20, record->end.profile);
	bind_denied(stmt, 21, &record->end);
	db_bind_text(stmt, 22, record->start);
	db_bind_int(stmt, 23, record->restarts);
	db_bind_int(stmt, 24, (int64_t)record->start_digest);
}

static void read_process(struct db_stmt *stmt, struct process_record *record)
{
	const char *cwd = db_column_text(stmt, 4);
	int64_t flags = db_column_int(stmt, 6);
	char name[32];

	*record = (struct process_record){.number = (uint32_t)db_column_int(stmt, 1),
		.pid = (uint32_t)db_column_int(stmt, 2),
		.argv = store_read_json(stmt, 3),
		.cwd = mem_strdup(cwd ? cwd : ""),
		.uid = (uint32_t)db_column_int(stmt, 5),
		.is_line = flags & FLAG_LINE,
		.is_background = flags & FLAG_BACKGROUND,
		.is_pty = flags & FLAG_PTY,
		.kills_tree = flags & FLAG_KILLS_TREE,
		.is_input_open = flags & FLAG_INPUT_OPEN,
		.is_isolated = flags & FLAG_ISOLATED,
		.is_ceased = flags & FLAG_CEASED,
		.is_argv_cut = flags & FLAG_ARGV_CUT,
		.keeps_awake = flags & FLAG_KEEP_AWAKE,
		.danger = (danger_set)(flags >> DANGER_SHIFT),
		.timeout_ms = (uint64_t)db_column_int(stmt, 7),
		.started_at_ms = db_column_int(stmt, 8),
		.ended_at_ms = db_column_int(stmt, 9),
		.exit_code = (int)db_column_int(stmt, 10),
		.duration_us = (uint64_t)db_column_int(stmt, 11),
		.output_bytes = (uint64_t)db_column_int(stmt, 12),
		.survivors = (uint32_t)db_column_int(stmt, 13)};
	store_read_text(stmt, 0, record->sandbox_id, sizeof(record->sandbox_id));
	store_read_text(stmt, 14, name, sizeof(name));
	if (end_reason_parse(name, &record->end.reason) < 0)
		record->end.reason = END_NONE;
	record->end.signal = (int)db_column_int(stmt, 15);
	store_read_text(stmt, 16, record->end.detail, sizeof(record->end.detail));
	record->end.cpu_us = (uint64_t)db_column_int(stmt, 17);
	record->end.peak_memory_bytes = (uint64_t)db_column_int(stmt, 18);
	store_read_text(stmt, 19, record->end.profile, sizeof(record->end.profile));
	read_denied(stmt, 20, &record->end);
	store_read_text(stmt, 21, record->start, sizeof(record->start));
	record->restarts = (uint32_t)db_column_int(stmt, 22);
	record->start_digest = (uint64_t)db_column_int(stmt, 23);
}

static int write_process(struct store *store, enum query query, const struct process_record *record,
	const char *what, struct err *err)
{
	struct db_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, query);
	bind_process(stmt, record);
	r = db_run(stmt, what, err);
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
	struct db_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_PROCESS_DELETE);
	bind_key(stmt, sandbox_id, number);
	r = db_run(stmt, "forget a process", err);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_process_get(struct store *store, const char *sandbox_id, uint32_t number,
	struct process_record *ret_record, struct err *err)
{
	char name[PROCESS_NAME_MAX];
	struct db_stmt *stmt;
	int code, r = 0;

	process_name_format(number, name);
	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_PROCESS_GET);
	bind_key(stmt, sandbox_id, number);
	code = db_step(stmt);
	if (code == DB_ROW)
		read_process(stmt, ret_record);
	else
		r = code == DB_DONE ? process_not_found(name, err)
				    : store_fail(store, "read a process", err);
	db_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_process_next(struct store *store, const char *sandbox_id, uint32_t after,
	struct process_record *ret_record, struct err *err)
{
	struct db_stmt *stmt;
	int code, r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_PROCESS_NEXT);
	bind_key(stmt, sandbox_id, after);
	code = db_step(stmt);
	if (code == DB_ROW)
		read_process(stmt, ret_record);
	r = code == DB_ROW || code == DB_DONE ? code == DB_ROW
					      : store_fail(store, "list processes", err);
	db_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	return r;
}

/* Copies the next rows: how many. */
static int read_page(struct store *store, const char *sandbox_id, bool running_only, uint32_t after,
	struct process_record page[STORE_PAGE], struct err *err)
{
	struct db_stmt *stmt;
	int code, count = 0, r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_PROCESS_LIST);
	db_bind_text(stmt, 1, sandbox_id);
	db_bind_int(stmt, 2, running_only);
	db_bind_int(stmt, 3, after);
	db_bind_int(stmt, 4, STORE_PAGE);
	while ((code = db_step(stmt)) == DB_ROW)
		read_process(stmt, &page[count++]);
	r = code == DB_DONE ? count : store_fail(store, "list processes", err);
	db_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	for (int i = 0; r < 0 && i < count; i++)
		process_record_fini(&page[i]);
	return r;
}

int store_process_list(struct store *store, const char *sandbox_id, bool running_only,
	void (*each)(const struct process_record *record, void *arg), void *arg, struct err *err)
{
	auto_free struct process_record *page = mem_new(STORE_PAGE * sizeof(*page));
	uint32_t after = 0;
	int count;

	do {
		count = read_page(store, sandbox_id, running_only, after, page, err);
		for (int i = 0; i < count; i++) {
			each(&page[i], arg);
			after = page[i].number;
			process_record_fini(&page[i]);
		}
	} while (count == STORE_PAGE);
	return count < 0 ? count : 0;
}

int store_process_last(
	struct store *store, const char *sandbox_id, uint32_t *ret_number, struct err *err)
{
	struct db_stmt *stmt;
	int code, r = 0;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_PROCESS_LAST);
	db_bind_text(stmt, 1, sandbox_id);
	code = db_step(stmt);
	if (code == DB_ROW)
		*ret_number = (uint32_t)db_column_int(stmt, 0);
	else
		r = store_fail(store, "number the processes", err);
	db_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_process_surplus(struct store *store, const char *sandbox_id, unsigned keep,
	uint32_t numbers[], unsigned max, struct err *err)
{
	struct db_stmt *stmt;
	int code, count = 0;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_PROCESS_SURPLUS);
	db_bind_text(stmt, 1, sandbox_id);
	db_bind_int(stmt, 2, max);
	db_bind_int(stmt, 3, keep);
	while ((code = db_step(stmt)) == DB_ROW)
		numbers[count++] = (uint32_t)db_column_int(stmt, 0);
	if (code != DB_DONE)
		count = store_fail(store, "look for old processes", err);
	db_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	return count;
}

int store_process_end_all(
	struct store *store, const char *sandbox_id, const struct termination *how, struct err *err)
{
	struct db_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_PROCESS_END_ALL);
	if (sandbox_id)
		db_bind_text(stmt, 1, sandbox_id);
	db_bind_int(stmt, 2, store_clock_ms(store));
	db_bind_text(stmt, 3, end_reason_name(how->reason));
	db_bind_text(stmt, 4, how->detail);
	r = db_run(stmt, "end processes", err);
	pthread_mutex_unlock(&store->lock);
	return r;
}
