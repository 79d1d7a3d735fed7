/* SPDX-License-Identifier: Apache-2.0 */
#include "core/roll.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/number.h"
#include "core/audience.h"
#include "core/process_state.h"
#include "wire/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

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

int roll_find(struct sandbox *sandbox, const char *name, struct process **ret_process,
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

/* Records by number; rows of the database first, overlaid with what is known of those that run. */
struct roll {
	struct process_record *records;
	size_t count, cap;
};

static struct process_record *add_record(struct roll *roll)
{
	if (roll->count == roll->cap) {
		roll->cap = roll->cap ? roll->cap * 2 : 64;
		roll->records = realloc(roll->records, roll->cap * sizeof(*roll->records));
		if (!roll->records)
			abort();
	}
	return &roll->records[roll->count++];
}

static void add_row(const struct process_record *record, void *arg)
{
	process_record_copy(add_record(arg), record);
}

static int compare_numbers(const void *a, const void *b)
{
	const struct process_record *left = a, *right = b;

	return (left->number > right->number) - (left->number < right->number);
}

static void add_listed(struct sandbox *sandbox, struct roll *roll)
{
	size_t rows = roll->count;

	pthread_mutex_lock(&sandbox->state);
	for (struct process *p = sandbox->processes; p; p = p->next) {
		struct process_record *found = NULL, record;

		process_read(p, &record);
		if (rows > 0)
			found = bsearch(
				&record, roll->records, rows, sizeof(record), compare_numbers);
		if (found)
			process_record_fini(found);
		else
			found = add_record(roll);
		*found = record;
	}
	pthread_mutex_unlock(&sandbox->state);
	if (roll->count > rows)
		qsort(roll->records, roll->count, sizeof(*roll->records), compare_numbers);
}

int roll_list(struct sandbox *sandbox, void (*each)(const struct process_record *record, void *arg),
	void *arg, struct err *err)
{
	struct roll roll = {0};
	int r = store_process_list(
		engine_store(sandbox->engine), sandbox->id, false, add_row, &roll, err);

	if (r == 0)
		add_listed(sandbox, &roll);
	for (size_t i = 0; i < roll.count; i++) {
		if (r == 0)
			each(&roll.records[i], arg);
		process_record_fini(&roll.records[i]);
	}
	free(roll.records);
	return r;
}

int roll_open_log(
	struct sandbox *sandbox, uint32_t number, struct output_log **ret_log, struct err *err)
{
	auto_(process_unrefp) struct process *process = find_listed(sandbox, number, 0);
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
	return output_log_open(dir_fd, number, sandbox->engine->config.output_max, ret_log, err);
}

bool roll_is_watched(struct sandbox *sandbox)
{
	bool is_watched = false;

	pthread_mutex_lock(&sandbox->state);
	for (struct process *p = sandbox->processes; p && !is_watched; p = p->next) {
		pthread_mutex_lock(&p->lock);
		is_watched = p->watchers != NULL;
		pthread_mutex_unlock(&p->lock);
	}
	pthread_mutex_unlock(&sandbox->state);
	return is_watched;
}

/* --- after a restart of the daemon --- */

/* One that a daemon before us had started; its output goes on where the log ends. */
static int recall(struct sandbox *sandbox, struct link *link, const struct process_record *record,
	struct err *err)
{
	struct process *process = process_make(sandbox, link_ref(link));
	int64_t age_ms = clock_wall_ms() - record->started_at_ms;
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

int roll_recall(struct sandbox *sandbox, struct link *link, struct err *err)
{
	struct roll roll = {0};
	int r = store_process_list(
		engine_store(sandbox->engine), sandbox->id, true, add_row, &roll, err);

	for (size_t i = 0; i < roll.count; i++) {
		if (r == 0)
			r = recall(sandbox, link, &roll.records[i], err);
		process_record_fini(&roll.records[i]);
	}
	free(roll.records);
	return r;
}

/* Of no client: it was started for one that went with the daemon before us. */
static void dismiss(struct link *link, uint32_t number)
{
	static const uint8_t kill_tree[] = {SIGKILL, 0, 0, 0, 1};

	if (link_send(link, AGENT_SIGNAL, number, kill_tree, sizeof(kill_tree), -1) == 0)
		(void)!link_send(link, AGENT_FORGET, number, NULL, 0, -1);
}

/* The agent does not know it: it ended while nobody could hear of it. */
static void give_up_lost(struct process *process)
{
	struct process_end how = {.exit_code = EXIT_KILLED,
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
	struct err err;

	if (timeout_ms > 0 &&
		process_start_timer(process, age < timeout_ms ? timeout_ms - age : 0, &err) < 0)
		log_error("process p%u of sandbox %s has no timeout: %s", process->record.number,
			process->sandbox->id, err.message);
}

static void note_known(struct sandbox *sandbox, struct link *link, uint32_t number)
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

void roll_call(struct sandbox *sandbox, struct link *link, struct unpack *in, uint32_t count)
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

/* A listed process whose end nobody has claimed, or NULL; with a reference. */
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

/* Waits for the ends that the scribe has under way; then nobody is left to survive. */
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
		audience_tell_deserted(process);
		process_unref(process);
		pthread_mutex_lock(&sandbox->state);
	}
	pthread_mutex_unlock(&sandbox->state);
	return had_survivors;
}

void roll_end_all(struct sandbox *sandbox, const struct termination *how)
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

int roll_end_rows(struct engine *engine, const char *sandbox_id, const struct termination *how,
	struct err *err)
{
	struct store *store = engine_store(engine);
	struct roll roll = {0};
	int r = store_process_list(store, sandbox_id, true, add_row, &roll, err);

	for (size_t i = 0; i < roll.count; i++) {
		struct process_record *record = &roll.records[i];

		record->output_bytes = measure_output(engine, record);
		if (r == 0)
			r = store_process_update(store, record, err);
		process_record_fini(record);
	}
	free(roll.records);
	return r < 0 ? r : store_process_end_all(store, sandbox_id, how, err);
}

void roll_let_go(struct sandbox *sandbox)
{
	struct process *process;

	pthread_mutex_lock(&sandbox->state);
	process = take_ptr(&sandbox->processes);
	pthread_mutex_unlock(&sandbox->state);
	while (process) {
		struct process *next = process->next;

		process_abandon(process);
		process_unref(process);
		process = next;
	}
}
