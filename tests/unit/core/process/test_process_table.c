/* SPDX-License-Identifier: Apache-2.0 */
/* The process table of a sandbox's processes (src/core/process table.c): finding, listing, forgetting, ending all. */
#include "process_stage.h"

#include "core/engine/sandbox_state.h"
#include "core/process/process_state.h"
#include "core/process/process_table.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* --- finding --- */

/* What a name leads to: a process that runs (or NULL) and its number; 0 if nothing. */
static uint32_t find(struct sandbox *sandbox, const char *name, bool *ret_listed)
{
	struct process_record record;
	struct process *process = NULL;
	struct err err;

	if (process_table_find(sandbox, name, &process, &record, &err) < 0) {
		assert_int_equal(err.kind, ERR_NOT_FOUND);
		assert_string_equal(err.code, "process_not_found");
		assert_null(process);
		return 0;
	}
	*ret_listed = process != NULL;
	process_unref(process);
	process_record_fini(&record);
	return record.number;
}

static void a_process_is_found_by_its_name_and_by_its_pid(void **state)
{
	struct stage first, second;
	bool is_listed;

	stage_init(&first, *state);
	stage_join(&second, &first);
	stage_start(&first, true);   /* pid 41 */
	stage_start(&second, false); /* pid 42 */
	assert_int_equal(find(first.sandbox, "p1", &is_listed), 1);
	assert_true(is_listed);
	assert_int_equal(find(first.sandbox, "p2", &is_listed), 2);
	assert_true(is_listed);
	assert_int_equal(find(first.sandbox, "41", &is_listed), 1);
	assert_true(is_listed);
	assert_int_equal(find(first.sandbox, "42", &is_listed), 2);
	assert_true(is_listed);
	/* One that has ended is found if it was kept, by its name and by its pid. */
	say_exited(&first, 0, 0);
	say_exited(&second, 0, 0);
	heard_wait(&first.heard, has_ended);
	heard_wait(&second.heard, has_ended);
	stage_await_unlisted(&first);
	stage_await_unlisted(&second);
	assert_int_equal(find(first.sandbox, "p1", &is_listed), 1);
	assert_int_equal(find(first.sandbox, "41", &is_listed), 1);
	assert_false(is_listed);
	assert_int_equal(find(first.sandbox, "p2", &is_listed), 0);
	assert_int_equal(find(first.sandbox, "42", &is_listed), 0);
	stage_leave(&second, true);
	stage_fini(&first, true);
}

static void a_pid_that_was_used_again_leads_to_the_latest(void **state)
{
	struct stage old, new;
	bool is_listed;

	stage_init(&old, *state);
	stage_join(&new, &old);
	stage_start(&old, true);
	say_exited(&old, 0, 0);
	heard_wait(&old.heard, has_ended);
	expect_forget(&old);
	{
		struct process_spec spec = stage_spec();

		spec.is_kept = true;
		stage_run(&new, &spec);
		say_started(&new, 41); /* the pid of the first */
		heard_wait(&new.heard, has_started);
	}
	assert_int_equal(find(old.sandbox, "41", &is_listed), new.id);
	assert_true(is_listed);
	say_exited(&new, 0, 0);
	heard_wait(&new.heard, has_ended);
	assert_int_equal(find(old.sandbox, "41", &is_listed), new.id);
	stage_leave(&new, true);
	stage_fini(&old, true);
}

static void what_is_no_name_of_a_process_is_not_found(void **state)
{
	static const char *const names[] = {"", "p", "p0", "0", "p2", "7", "-1", "p-1", "p1x", "1x",
		" 1", "P1", "pp1", "p4294967296", "99999999999999999999"};
	struct stage stage;
	bool is_listed;

	stage_init(&stage, *state);
	stage_start(&stage, true);
	for (size_t i = 0; i < array_len(names); i++)
		assert_int_equal(find(stage.sandbox, names[i], &is_listed), 0);
	stage_fini(&stage, true);
}

static void a_process_of_another_sandbox_is_not_found(void **state)
{
	struct stage stage, other;
	bool is_listed;

	stage_init(&stage, *state);
	stage_init(&other, *state);
	stage_start(&stage, true);
	assert_int_equal(find(other.sandbox, "p1", &is_listed), 0);
	assert_int_equal(find(other.sandbox, "41", &is_listed), 0);
	stage_fini(&other, false);
	stage_fini(&stage, true);
}

/* --- listing --- */

struct seen {
	uint32_t numbers[64];
	bool runs[64];
	uint64_t output[64];
	size_t count, enough;
};

static bool see(const struct process_record *record, void *arg)
{
	struct seen *seen = arg;

	seen->numbers[seen->count] = record->number;
	seen->output[seen->count] = record->output_bytes;
	seen->runs[seen->count++] = record->ended_at_ms == 0;
	return seen->count != seen->enough;
}

static struct seen list(struct sandbox *sandbox)
{
	struct seen seen = {0};
	struct err err = {0};

	if (process_table_list(sandbox, 0, see, &seen, &err) < 0)
		fail_msg("%s", err.message);
	return seen;
}

/* Two at a time, from behind a number on. */
static struct seen list_page(struct sandbox *sandbox, uint32_t after)
{
	struct seen seen = {.enough = 2};
	struct err err = {0};

	if (process_table_list(sandbox, after, see, &seen, &err) < 0)
		fail_msg("%s", err.message);
	return seen;
}

static void a_list_has_rows_and_what_runs_in_the_order_of_their_numbers(void **state)
{
	struct stage stages[6];
	struct seen seen;

	/* Kept and not, in turn; the first two end. */
	stage_init(&stages[0], *state);
	assert_int_equal(list(stages[0].sandbox).count, 0);
	for (size_t i = 1; i < array_len(stages); i++)
		stage_join(&stages[i], &stages[0]);
	for (size_t i = 0; i < array_len(stages); i++)
		stage_start(&stages[i], i % 2 == 0);
	for (size_t i = 0; i < 2; i++) {
		say_exited(&stages[i], 0, 0);
		heard_wait(&stages[i].heard, has_ended);
		expect_forget(&stages[i]);
	}
	say_text(&stages[2], 0, 1, "four");
	heard_wait_output(&stages[2].heard, 1, 4);
	seen = list(stages[0].sandbox);
	assert_int_equal(seen.count, 5);
	for (size_t i = 0; i < seen.count; i++) {
		static const uint32_t expected[] = {1, 3, 4, 5, 6};

		assert_int_equal(seen.numbers[i], expected[i]);
		assert_int_equal(seen.runs[i], i > 0);
	}
	assert_int_equal(seen.output[1], 4); /* newer than the row */
	seen = list_page(stages[0].sandbox, 1);
	assert_int_equal(seen.count, 2);
	assert_int_equal(seen.numbers[0], 3);
	assert_int_equal(seen.numbers[1], 4);
	assert_int_equal(seen.output[0], 4);
	assert_int_equal(list_page(stages[0].sandbox, 5).count, 1);
	assert_int_equal(list_page(stages[0].sandbox, 6).count, 0);
	for (size_t i = 1; i < array_len(stages); i++) {
		say_exited(&stages[i], 0, i == 2 ? 4 : 0);
		stage_leave(&stages[i], true);
	}
	stage_fini(&stages[0], true);
}

static void survivors_keep_a_process_listed_until_the_last_is_gone(void **state)
{
	struct process_record record;
	struct stage stage;
	struct seen seen;
	bool is_listed = true;

	stage_init(&stage, *state);
	stage_start(&stage, false);
	say_survivors(&stage, 3);
	say_exited(&stage, 0, 0);
	heard_wait(&stage.heard, has_ended);
	expect_forget(&stage);
	seen = list(stage.sandbox);
	assert_int_equal(seen.count, 1);
	assert_false(seen.runs[0]);
	assert_int_equal(find(stage.sandbox, "p1", &is_listed), 1);
	assert_true(is_listed);
	say_survivors(&stage, 1);
	say_survivors(&stage, 0);
	stage_await_unlisted(&stage);
	assert_int_equal(find(stage.sandbox, "p1", &is_listed), 1);
	assert_false(is_listed);
	assert_true(stage_row(&stage, &record)); /* written before it left the list */
	assert_int_equal(record.survivors, 0);
	process_record_fini(&record);
	stage_fini(&stage, true);
}

static void one_that_nobody_watches_is_told_from_one_that_is_watched(void **state)
{
	struct heard other;
	struct stage stage;
	struct err err;

	stage_init(&stage, *state);
	assert_false(process_table_is_watched(stage.sandbox));
	stage_start(&stage, true);
	assert_true(process_table_is_watched(stage.sandbox));
	process_unwatch(stage.process, &stage.heard);
	assert_false(process_table_is_watched(stage.sandbox));
	heard_init(&other);
	heard_watch(&other, stage.process);
	assert_true(process_table_is_watched(stage.sandbox));
	say_exited(&stage, 0, 0);
	heard_wait(&other, has_ended);
	heard_fini(&other, 1);
	assert_false(process_table_is_watched(stage.sandbox));
	assert_int_equal(sandbox_delete(stage.sandbox, END_OPERATOR, &err), 0);
	stage_leave(&stage, false);
}

/* --- logs --- */

static void the_output_of_one_that_has_ended_can_be_read(void **state)
{
	struct output_log *log;
	struct stage stage;
	struct err err;

	stage_init(&stage, *state);
	stage_start(&stage, true);
	say_text(&stage, 0, 1, "to be ");
	say_text(&stage, 6, 2, "continued");
	say_exited(&stage, 0, 15);
	heard_wait(&stage.heard, has_ended);
	assert_int_equal(process_table_open_log(stage.sandbox, stage.id, &log, &err), 0);
	assert_log(log, "to be continued");
	output_log_unref(log);
	stage_fini(&stage, true);
}

/* Another one would take what is being written for the damage of a crash, and mend it. */
static void the_output_of_one_that_runs_is_read_from_the_log_that_is_written(void **state)
{
	struct output_log *log;
	struct stage stage;
	struct err err;

	stage_init(&stage, *state);
	stage_start(&stage, true);
	say_text(&stage, 0, 1, "out");
	heard_wait_output(&stage.heard, 1, 3);
	assert_int_equal(process_table_open_log(stage.sandbox, stage.id, &log, &err), 0);
	assert_ptr_equal(log, process_log(stage.process));
	say_text(&stage, 3, 2, "err");
	heard_wait_output(&stage.heard, 2, 3);
	assert_log(log, "outerr");
	output_log_unref(log);
	stage_fini(&stage, true);
}

/* How many files a sandbox has in the directory of logs; -1 if it has no directory. */
static int count_files(struct world *world, const char *id)
{
	int fd = openat(world->logs_fd, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	int count = 0;

	if (!dir)
		return -1;
	while ((entry = readdir(dir)))
		count += entry->d_name[0] != '.';
	closedir(dir);
	return count;
}

static int setup_short_memory(void **state)
{
	struct world *world;

	if (world_setup_closed(state) < 0)
		return -1;
	world = *state;
	world->config.process_history = 3;
	world_open(world);
	return 0;
}

/* Runs a command that writes a little and ends. */
static void run_a_short_one(struct stage *others, uint32_t number)
{
	struct stage stage;

	stage_join(&stage, others);
	stage_start(&stage, true);
	assert_int_equal(stage.id, number);
	say_text(&stage, 0, 1, "text");
	say_exited(&stage, 0, 4);
	heard_wait(&stage.heard, has_ended);
	expect_forget(&stage);
	stage_leave(&stage, true);
}

static void the_history_is_bounded_and_takes_its_files_along(void **state)
{
	struct stage stage;
	struct seen seen;

	stage_init(&stage, *state);
	stage_start(&stage, true); /* p1 runs all the time: it is no history */
	say_text(&stage, 0, 1, "lasts");
	heard_wait_output(&stage.heard, 1, 5);
	for (uint32_t i = 2; i <= 9; i++)
		run_a_short_one(&stage, i);
	world_flush(stage.world);
	seen = list(stage.sandbox);
	assert_int_equal(seen.count, 4);
	assert_int_equal(seen.numbers[0], 1);
	for (uint32_t i = 1; i < 4; i++)
		assert_int_equal(seen.numbers[i], 6 + i);
	assert_int_equal(count_files(stage.world, sandbox_id(stage.sandbox)), 4);
	stage_fini(&stage, true);
}

/* It is not the numbers that grow old, but the ends. */
static void one_that_ran_for_long_is_remembered_when_it_ends(void **state)
{
	struct process_record record;
	auto_free char *text = NULL;
	struct stage stage;

	stage_init(&stage, *state);
	stage_start(&stage, true);
	say_text(&stage, 0, 1, "result");
	heard_wait_output(&stage.heard, 1, 6);
	for (uint32_t i = 2; i <= 6; i++)
		run_a_short_one(&stage, i);
	say_exited(&stage, 7 << 8, 6);
	heard_wait(&stage.heard, has_ended);
	world_flush(stage.world);
	assert_true(stage_row(&stage, &record));
	assert_int_equal(record.exit_code, 7);
	process_record_fini(&record);
	text = read_log(process_log(stage.process));
	assert_string_equal(text, "result");
	stage_fini(&stage, true);
}

/* --- the end of all --- */

static struct process_record row_of(struct stage *stage)
{
	struct process_record record;

	assert_true(stage_row(stage, &record));
	process_record_fini(&record);
	return record; /* the plain members of it */
}

static void a_stop_ends_all_and_their_rows_are_written_when_it_returns(void **state)
{
	struct stage stages[3];
	struct err err;

	stage_init(&stages[0], *state);
	for (size_t i = 1; i < array_len(stages); i++)
		stage_join(&stages[i], &stages[0]);
	for (size_t i = 0; i < array_len(stages); i++)
		stage_start(&stages[i], i < 2);
	say_text(&stages[0], 0, 1, "text");
	heard_wait_output(&stages[0].heard, 1, 4);
	/* The agent does not answer, so it is ended after its grace. */
	assert_int_equal(sandbox_stop(stages[0].sandbox, END_OPERATOR, &err), 0);
	for (size_t i = 0; i < array_len(stages); i++)
		assert_int_equal(stages[i].heard.ends, 1); /* by now, not soon */
	for (size_t i = 0; i < 2; i++) {
		struct process_record row = row_of(&stages[i]);

		assert_true(row.ended_at_ms > 0);
		assert_int_equal(row.exit_code, 137);
		assert_int_equal(row.end.signal, SIGKILL);
		assert_int_equal(row.end.reason, END_OPERATOR);
		assert_int_equal(row.output_bytes, i == 0 ? 4 : 0);
	}
	assert_int_equal(list(stages[0].sandbox).count, 2);
	for (size_t i = 1; i < array_len(stages); i++)
		stage_leave(&stages[i], true);
	stage_fini(&stages[0], true);
}

/* By verbs that do not ask the agent: so nobody but us can say why. */
static void a_process_ends_with_the_reason_of_its_sandbox(void **state)
{
	static const enum end_reason reasons[] = {END_OPERATOR, END_IDLE, END_LIFETIME};

	for (size_t i = 0; i < array_len(reasons); i++) {
		struct stage stage;
		struct err err;

		stage_init(&stage, *state);
		stage_start(&stage, true);
		assert_int_equal(sandbox_delete(stage.sandbox, reasons[i], &err), 0);
		heard_wait(&stage.heard, has_ended);
		assert_int_equal(stage.heard.end.how.reason, reasons[i]);
		assert_int_equal(row_of(&stage).end.reason, reasons[i]);
		stage_leave(&stage, true);
	}
}

static void a_reset_says_what_it_was(void **state)
{
	struct stage stage;
	struct err err;

	stage_init(&stage, *state);
	stage_start(&stage, true);
	assert_int_equal(sandbox_reset(stage.sandbox, &err), 0);
	assert_int_equal(row_of(&stage).end.reason, END_OPERATOR);
	assert_string_equal(row_of(&stage).end.detail, "reset");
	stage_fini(&stage, true);
}

static void a_sandbox_that_died_takes_its_processes_along(void **state)
{
	struct world *world = *state;
	struct listener listener;
	struct stage stage;

	stage_init(&stage, world);
	stage_start(&stage, true);
	world_listener_open(&listener, world->engine, sandbox_id(stage.sandbox));
	pthread_mutex_lock(&world->driver.lock);
	world->driver.stats.oom_kills = 1;
	pthread_mutex_unlock(&world->driver.lock);
	fake_crash(&world->driver, sandbox_id(stage.sandbox), SIGKILL);
	listener_wait(&listener, "sandbox.stopped");
	listener_close(&listener);
	assert_int_equal(stage.heard.ends, 1); /* before the sandbox is said to be stopped */
	assert_int_equal(stage.heard.end.how.reason, END_OOM);
	assert_int_equal(row_of(&stage).end.reason, END_OOM);
	stage_fini(&stage, true);
}

static void an_end_of_the_sandbox_leaves_nobody_surviving(void **state)
{
	struct process_record row;
	struct stage stage;
	struct err err;

	stage_init(&stage, *state);
	stage_start(&stage, true);
	say_survivors(&stage, 2);
	say_exited(&stage, 3 << 8, 0);
	heard_wait(&stage.heard, has_ended);
	assert_int_equal(row_of(&stage).survivors, 2);
	assert_int_equal(sandbox_reset(stage.sandbox, &err), 0);
	row = row_of(&stage);
	assert_int_equal(row.survivors, 0);
	assert_int_equal(row.exit_code, 3);
	assert_int_equal(row.end.reason, END_EXITED);
	stage_fini(&stage, true);
}

/* --- the end of what is kept --- */

static int logs_fd_at_delete;
static bool had_logs;

static void look_for_logs(enum store_op op, const char *id)
{
	struct stat st;

	if (op == STORE_WORKSPACE_DELETE)
		had_logs = fstatat(logs_fd_at_delete, id, &st, 0) == 0;
}

/* A daemon that dies in between must not leave output to whoever gets that id next. */
static void a_purge_removes_kept_output_before_it_frees_the_id(void **state)
{
	struct world *world = *state;
	char id[ID_LEN + 1];
	struct stage stage;
	struct err err;

	stage_init(&stage, world);
	stage_start(&stage, true);
	say_text(&stage, 0, 1, "secret");
	heard_wait_output(&stage.heard, 1, 6);
	snprintf(id, sizeof(id), "%s", sandbox_id(stage.sandbox));
	assert_int_equal(count_files(world, id), 1);
	had_logs = false;
	logs_fd_at_delete = world->logs_fd;
	atomic_store(&store_script.after, look_for_logs);
	assert_int_equal(sandbox_purge(world->engine, &world_owner, id, &err), 0);
	assert_int_equal(count_files(world, id), -1);
	stage_leave(&stage, true);
	assert_false(had_logs);
}

/* Whoever found the sandbox before its purge may read or write a moment later. */
static void after_a_purge_nobody_makes_its_directory_again(void **state)
{
	struct world *world = *state;
	struct output_log *log;
	char id[ID_LEN + 1];
	struct stage stage;
	struct err err;
	int fd;

	stage_init(&stage, world);
	stage_start(&stage, true);
	snprintf(id, sizeof(id), "%s", sandbox_id(stage.sandbox));
	assert_int_equal(sandbox_purge(world->engine, &world_owner, id, &err), 0);
	assert_int_equal(process_table_open_log(stage.sandbox, stage.id + 1, &log, &err), -ENOENT);
	assert_int_equal(err.kind, ERR_NOT_FOUND);
	assert_int_equal(sandbox_make_logs(stage.sandbox, &fd, &err), -ENOENT);
	process_forget_row(stage.sandbox, stage.id);
	assert_int_equal(count_files(world, id), -1);
	stage_leave(&stage, true);
}

static void kept_output_outlives_the_sandbox_but_not_the_workspace(void **state)
{
	struct world *world = *state;
	struct sandbox *sandbox;
	struct stage stage;
	const char *id;
	struct err err;

	stage_init(&stage, world);
	stage_start(&stage, true);
	say_text(&stage, 0, 1, "text");
	heard_wait_output(&stage.heard, 1, 4);
	id = sandbox_id(stage.sandbox);
	assert_int_equal(sandbox_delete(stage.sandbox, END_OPERATOR, &err), 0);
	assert_int_equal(count_files(world, id), 1);
	/* The next of that id has it in its list. */
	sandbox = world_create(world, id);
	assert_int_equal(list(sandbox).count, 1);
	assert_int_equal(sandbox_purge(world->engine, &world_owner, id, &err), 0);
	assert_int_equal(count_files(world, id), -1);
	assert_int_equal(list(sandbox).count, 0);
	sandbox_unref(sandbox);
	stage_leave(&stage, true);
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		IN_WORLD(a_process_is_found_by_its_name_and_by_its_pid),
		IN_WORLD(a_pid_that_was_used_again_leads_to_the_latest),
		IN_WORLD(what_is_no_name_of_a_process_is_not_found),
		IN_WORLD(a_process_of_another_sandbox_is_not_found),
		IN_WORLD(a_list_has_rows_and_what_runs_in_the_order_of_their_numbers),
		IN_WORLD(survivors_keep_a_process_listed_until_the_last_is_gone),
		IN_WORLD(one_that_nobody_watches_is_told_from_one_that_is_watched),
		IN_WORLD(the_output_of_one_that_has_ended_can_be_read),
		IN_WORLD(the_output_of_one_that_runs_is_read_from_the_log_that_is_written),
		cmocka_unit_test_setup_teardown(the_history_is_bounded_and_takes_its_files_along,
			setup_short_memory, world_teardown),
		cmocka_unit_test_setup_teardown(one_that_ran_for_long_is_remembered_when_it_ends,
			setup_short_memory, world_teardown),
		IN_WORLD(a_stop_ends_all_and_their_rows_are_written_when_it_returns),
		IN_WORLD(a_process_ends_with_the_reason_of_its_sandbox),
		IN_WORLD(a_reset_says_what_it_was),
		IN_WORLD(a_sandbox_that_died_takes_its_processes_along),
		IN_WORLD(an_end_of_the_sandbox_leaves_nobody_surviving),
		IN_WORLD(a_purge_removes_kept_output_before_it_frees_the_id),
		IN_WORLD(after_a_purge_nobody_makes_its_directory_again),
		IN_WORLD(kept_output_outlives_the_sandbox_but_not_the_workspace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
