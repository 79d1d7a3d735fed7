/* SPDX-License-Identifier: Apache-2.0 */
#include "core/process/process_table.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/number.h"
#include "base/share_pool.h"
#include "core/engine/engine.h"
#include "core/process/process_state.h"
#include "core/process/process_watchers.h"
#include "model/access/owner.h"
#include "wire/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define OPEN_ATTEMPTS 3

#define EXIT_KILLED (128 + SIGKILL)

/* --- looking --- */

/* The listed process with that number, or else with that pid; a reference, or NULL. */
static struct process *find_listed(struct sandbox *sandbox, uint32_t number, uint32_t pid)
{
	struct process *process;

	pthread_mutex_lock(&sandbox->state);
	for (process = sandbox->processes; process; process = process->next) {
		bool is_it;

		pthread_mutex_lock(&process->lock);
		is_it = number ? process->record.number == number : process->record.pid == pid;
		pthread_mutex_unlock(&process->lock);
		if (is_it)
			break;
	}
	if (process)
		process_ref(process);
	pthread_mutex_unlock(&sandbox->state);
	return process;
}

struct pid_search {
	uint32_t pid, number;
};

static void match_pid(const struct process_record *record, void *arg)
{
	struct pid_search *search = arg;

	if (record->pid == search->pid)
		search->number = record->number; /* the latest that had it */
}

int process_table_find(struct sandbox *sandbox, const char *name, struct process **ret_process,
	struct process_record *ret_record, struct err *err)
{
	struct store *store = engine_store(sandbox->engine);
	uint32_t number = process_name_parse(name);
	uint64_t pid = 0;
	int r;

	if (!number && number_parse(name, 1, INT32_MAX, &pid) < 0)
		return process_not_found(name, err);
	*ret_process = find_listed(sandbox, number, (uint32_t)pid);
	if (*ret_process) {
		process_read(*ret_process, ret_record);
		return 0;
	}
	if (!number) {
		struct pid_search search = {.pid = (uint32_t)pid};

		r = store_process_list(store, sandbox->id, false, match_pid, &search, err);
		if (r < 0)
			return r;
		if (!search.number)
			return process_not_found(name, err);
		number = search.number;
	}
	return store_process_get(store, sandbox->id, number, ret_record, err);
}

/* Records of the database. */
struct process_table {
	struct process_record *records;
	size_t count, cap;
};

static struct process_record *add_record(struct process_table *table)
{
	if (table->count == table->cap) {
		table->cap = table->cap ? table->cap * 2 : 64;
		table->records = realloc(table->records, table->cap * sizeof(*table->records));
		if (!table->records)
			abort();
	}
	return &table->records[table->count++];
}

static void add_row(const struct process_record *record, void *arg)
{
	process_record_copy(add_record(arg), record);
}

/* The listed process with the lowest number above `after`: a reference, or NULL. */
static struct process *next_listed(struct sandbox *sandbox, uint32_t after)
{
	struct process *next = NULL;

	pthread_mutex_lock(&sandbox->state);
	for (struct process *p = sandbox->processes; p; p = p->next) {
		if (p->record.number > after && (!next || p->record.number < next->record.number))
			next = p;
	}
	if (next)
		process_ref(next);
	pthread_mutex_unlock(&sandbox->state);
	return next;
}

/*
 * The next after a number, of those that are listed and the rows of the database; 0 if there is none. What is listed
 * is newer than its row. It is looked for first, because one that leaves the list then has a row.
 */
static int next_record(
	struct sandbox *sandbox, uint32_t after, struct process_record *ret_record, struct err *err)
{
	auto_(process_unrefp) struct process *listed = next_listed(sandbox, after);
	struct process_record row;
	int r = store_process_next(engine_store(sandbox->engine), sandbox->id, after, &row, err);

	if (r < 0)
		return r;
	if (r == 1 && (!listed || row.number < listed->record.number)) {
		*ret_record = row;
		return 1;
	}
	if (r == 1)
		process_record_fini(&row);
	if (listed)
		process_read(listed, ret_record);
	return listed != NULL;
}

int process_table_list(struct sandbox *sandbox, uint32_t after,
	bool (*each)(const struct process_record *record, void *arg), void *arg, struct err *err)
{
	struct process_record record;
	bool goes_on = true;
	int r = 1;

	while (goes_on && (r = next_record(sandbox, after, &record, err)) > 0) {
		after = record.number;
		goes_on = each(&record, arg);
		process_record_fini(&record);
	}
	return r < 0 ? r : 0;
}

int process_table_open_log(
	struct sandbox *sandbox, uint32_t number, struct output_log **ret_log, struct err *err)
{
	auto_(process_unrefp) struct process *process = find_listed(sandbox, number, 0);
	unsigned attempts = OPEN_ATTEMPTS;
	auto_fd int dir_fd = -1;
	int r;

	/* Opening mends the end of a log, which is not to be done to one that somebody appends to. */
	if (process && process->log) {
		*ret_log = output_log_ref(process->log);
		return 0;
	}
	r = sandbox_open_logs(sandbox, &dir_fd, err);
	if (r < 0)
		return r;
	/* A file may go in between, to make room. Then there are fewer the next time. */
	do
		r = output_log_open(
			dir_fd, number, sandbox->engine->config.output_max, ret_log, err);
	while (r == -ENOENT && attempts-- > 0);
	return r;
}

void process_table_give(struct sandbox *sandbox)
{
	const struct owner *owner = &sandbox->record.owner;

	pthread_mutex_lock(&sandbox->state);
	for (struct process *p = sandbox->processes; p; p = p->next) {
		if (!p->share)
			continue;
		share_give_back(take_ptr(&p->share));
		(void)!share_pool_take(sandbox->engine->processes, owner_key(owner),
			owner_is_operator(owner), &p->share);
	}
	pthread_mutex_unlock(&sandbox->state);
}

bool process_table_is_watched(struct sandbox *sandbox)
{
	bool is_watched = false;

	pthread_mutex_lock(&sandbox->state);
	for (struct process *p = sandbox->processes; p && !is_watched; p = p->next) {
		pthread_mutex_lock(&p->lock);
		is_watched = p->watchers != NULL && !p->is_probe;
		pthread_mutex_unlock(&p->lock);
	}
	pthread_mutex_unlock(&sandbox->state);
	return is_watched;
}

bool process_table_has_young(struct sandbox *sandbox, uint64_t age_ms)
{
	uint64_t now_us = clock_steady_us();
	bool has_young = false;

	pthread_mutex_lock(&sandbox->state);
	for (struct process *p = sandbox->processes; p && !has_young; p = p->next) {
		pthread_mutex_lock(&p->lock);
		has_young = !p->is_probe && !p->ending && now_us - p->started_us < age_ms * 1000;
		pthread_mutex_unlock(&p->lock);
	}
	pthread_mutex_unlock(&sandbox->state);
	return has_young;
}

/* --- after a restart of the daemon --- */

/* One that a daemon before us had started; its output goes on where the log ends. */
static int adopt(struct sandbox *sandbox, struct agent_link *link,
	const struct process_record *record, struct err *err)
{
	struct process *process = process_make(sandbox, agent_link_ref(link));
	int64_t age_ms = store_clock_ms(engine_store(sandbox->engine)) - record->started_at_ms;
	int r;

	process_record_fini(&process->record);
	process_record_copy(&process->record, record);
	process->is_adopted = true;
	process->ending = process->concluded = process->reported = record->ended_at_ms > 0;
	process->record.is_input_open = record->is_input_open && !process->ending;
	process->started_us = clock_steady_us() - (uint64_t)(age_ms > 0 ? age_ms : 0) * 1000;
	r = process_open_log(process, err);
	if (r == 0) {
		process->offset = output_log_end(process->log);
		process->record.output_bytes = process->consumed = process->acked = process->offset;
		process->shown = process->offset;
	}
	if (r < 0) {
		process_unref(process);
		return r;
	}
	pthread_mutex_lock(&sandbox->state);
	process->next = sandbox->processes;
	sandbox->processes = process;
	pthread_mutex_unlock(&sandbox->state);
	return 0;
}

int process_table_adopt(struct sandbox *sandbox, struct agent_link *link, struct err *err)
{
	struct process_table table = {0};
	int r = store_process_list(
		engine_store(sandbox->engine), sandbox->id, true, add_row, &table, err);

	for (size_t i = 0; i < table.count; i++) {
		if (r == 0)
			r = adopt(sandbox, link, &table.records[i], err);
		process_record_fini(&table.records[i]);
	}
	free(table.records);
	return r;
}

/* Of no client: it was started for one that went with the daemon before us. */
static void dismiss(struct agent_link *link, uint32_t number)
{
	static const uint8_t kill_tree[] = {SIGKILL, 0, 0, 0, 1};

	if (agent_link_send(link, AGENT_SIGNAL, number, kill_tree, sizeof(kill_tree)) == 0)
		(void)!agent_link_send(link, AGENT_FORGET, number, NULL, 0);
}

/*
 * The agent does not know it: it ended while nobody could hear of it. One that has no pid either never reached the agent;
 * nobody was told that it started, and it leaves no row.
 */
static void give_up_lost(struct process *process)
{
	bool has_run = process->record.pid > 0 || process->offset > 0;
	struct process_end how = {.outcome = has_run ? PROCESS_RAN : PROCESS_REFUSED,
		.errnum = has_run ? 0 : ECANCELED,
		.exit_code = EXIT_KILLED,
		.duration_us = clock_steady_us() - process->started_us,
		.how = {.reason = END_AGENT_LOST, .signal = SIGKILL}};

	process_lose_survivors(process);
	if (process_claim_end(process, &how))
		process_conclude_later(process);
	else
		process_leave_later(process);
}

/* Not before the agent has said hello: it may be due at once, and then it sends a signal. */
static void resume_timer(struct process *process)
{
	uint64_t age = (clock_steady_us() - process->started_us) / 1000;
	uint64_t timeout_ms = process->record.timeout_ms;

	if (timeout_ms > 0)
		process_start_timer(process, age < timeout_ms ? timeout_ms - age : 0);
}

static void note_known(struct sandbox *sandbox, struct agent_link *link, uint32_t number)
{
	struct process *process = find_listed(sandbox, number, 0);

	pthread_mutex_lock(&sandbox->state);
	if (number > sandbox->next_process)
		sandbox->next_process = number;
	pthread_mutex_unlock(&sandbox->state);
	if (!process) {
		dismiss(link, number);
		return;
	}
	process->is_known = true;
	process_note_running(process);
	if (!process->ending) {
		process_send_ack(process, process->offset);
		resume_timer(process);
	}
	process_unref(process);
}

void process_table_match(
	struct sandbox *sandbox, struct agent_link *link, struct unpack *in, uint32_t count)
{
	struct process *lost;

	for (uint32_t i = 0; i < count && !in->bad; i++) {
		uint32_t number = unpack_u32(in);

		in->bad |= number == 0;
		if (!in->bad)
			note_known(sandbox, link, number);
	}
	do {
		pthread_mutex_lock(&sandbox->state);
		for (lost = sandbox->processes; lost; lost = lost->next) {
			if (lost->is_adopted && !lost->is_known)
				break;
		}
		if (lost) {
			lost->is_known = true;
			process_ref(lost);
		}
		pthread_mutex_unlock(&sandbox->state);
		if (lost)
			give_up_lost(lost);
		process_unref(lost);
	} while (lost);
}

/* --- the end of all --- */

/* A reference to a listed process whose end is not claimed, or NULL. */
static struct process *next_running(struct sandbox *sandbox)
{
	struct process *process;

	pthread_mutex_lock(&sandbox->state);
	for (process = sandbox->processes; process; process = process->next) {
		bool runs;

		pthread_mutex_lock(&process->lock);
		runs = !process->ending;
		pthread_mutex_unlock(&process->lock);
		if (runs)
			break;
	}
	if (process)
		process_ref(process);
	pthread_mutex_unlock(&sandbox->state);
	return process;
}

/* Waits for the ends that the database writer has under way; then nobody is left to survive. */
static bool empty_list(struct sandbox *sandbox)
{
	struct process *process;
	bool had_survivors = false;

	pthread_mutex_lock(&sandbox->state);
	while ((process = sandbox->processes)) {
		bool reported;

		pthread_mutex_lock(&process->lock);
		reported = process->reported;
		pthread_mutex_unlock(&process->lock);
		if (!reported) {
			pthread_cond_wait(&sandbox->changed, &sandbox->state);
			continue;
		}
		had_survivors = true;
		sandbox->processes = process->next;
		pthread_mutex_unlock(&sandbox->state);
		process_watchers_tell_deserted(process);
		process_unref(process);
		pthread_mutex_lock(&sandbox->state);
	}
	pthread_mutex_unlock(&sandbox->state);
	return had_survivors;
}

void process_table_end_all(struct sandbox *sandbox, const struct termination *how)
{
	struct process *process;
	struct err err;

	while ((process = next_running(sandbox))) {
		struct process_end end = {.exit_code = EXIT_KILLED,
			.duration_us = clock_steady_us() - process->started_us,
			.how = {.reason = how->reason, .signal = SIGKILL}};

		snprintf(end.how.detail, sizeof(end.how.detail), "%s", how->detail);
		process_lose_survivors(process);
		if (process_claim_end(process, &end))
			process_conclude(process);
		process_unref(process);
	}
	if (empty_list(sandbox) &&
		store_process_end_all(engine_store(sandbox->engine), sandbox->id, how, &err) < 0)
		log_error("sandbox %s: %s", sandbox->id, err.message);
}

/* How much it had written, as far as that came to the disk. */
static uint64_t measure_output(struct engine *engine, const struct process_record *record)
{
	auto_fd int dir_fd = openat(engine->config.logs_fd, record->sandbox_id,
		O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct output_log *log;
	struct err ignored;
	uint64_t end;

	if (dir_fd < 0 || output_log_open(dir_fd, record->number, engine->config.output_max, &log,
				  &ignored) < 0)
		return 0;
	end = output_log_end(log);
	output_log_unref(log);
	return end;
}

int process_table_end_rows(struct engine *engine, const char *sandbox_id,
	const struct termination *how, struct err *err)
{
	struct store *store = engine_store(engine);
	struct process_table table = {0};
	int r = store_process_list(store, sandbox_id, true, add_row, &table, err);

	for (size_t i = 0; i < table.count; i++) {
		struct process_record *record = &table.records[i];

		record->output_bytes = measure_output(engine, record);
		if (r == 0)
			r = store_process_update(store, record, err);
		process_record_fini(record);
	}
	free(table.records);
	return r < 0 ? r : store_process_end_all(store, sandbox_id, how, err);
}

void process_table_let_go(struct sandbox *sandbox)
{
	struct process *process;

	pthread_mutex_lock(&sandbox->state);
	process = take_ptr(&sandbox->processes);
	pthread_mutex_unlock(&sandbox->state);
	while (process) {
		struct process *next = process->next;

		process_abandon(process);
		/* An execution may hold it for longer than there is an engine that counts. */
		share_give_back(take_ptr(&process->share));
		process_unref(process);
		process = next;
	}
}
