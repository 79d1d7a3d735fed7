/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of processes (src/store/sandbox/store_process.c). */
#include "core/engine/sandbox_handle.h"
#include "store_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* A row of a sandbox that is there; ended_at_ms 0: it runs. */
static void put(struct store *store, unsigned sandbox, uint32_t number, int64_t ended_at_ms,
	uint32_t survivors)
{
	struct process_record record;
	struct err err = {0};

	process_record_init(&record);
	snprintf(record.sandbox_id, sizeof(record.sandbox_id), "%s", id_of(sandbox));
	record.number = number;
	record.started_at_ms = 1000;
	record.ended_at_ms = ended_at_ms;
	record.survivors = survivors;
	if (ended_at_ms > 0) {
		record.end.reason = END_EXITED;
		record.exit_code = 3;
		record.duration_us = 77;
		snprintf(record.end.detail, sizeof(record.end.detail), "its own");
	}
	if (store_process_insert(store, &record, &err) < 0)
		fail_msg("%s", err.message);
	process_record_fini(&record);
}

static struct process_record get(struct store *store, unsigned sandbox, uint32_t number)
{
	struct process_record record;
	struct err err = {0};

	if (store_process_get(store, id_of(sandbox), number, &record, &err) < 0)
		fail_msg("%s", err.message);
	process_record_fini(&record);
	return record; /* the plain members of it */
}

struct seen {
	uint32_t numbers[64];
	size_t count;
};

static void see(const struct process_record *record, void *arg)
{
	struct seen *seen = arg;

	seen->numbers[seen->count++] = record->number;
}

static void assert_listed(
	struct store *store, unsigned sandbox, bool running_only, const char *expected)
{
	struct seen seen = {0};
	char text[256] = "";
	struct err err = {0};

	assert_int_equal(
		store_process_list(store, id_of(sandbox), running_only, see, &seen, &err), 0);
	for (size_t i = 0; i < seen.count; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%u", i ? " " : "",
			seen.numbers[i]);
	assert_string_equal(text, expected);
}

static int setup_sandboxes(void **state)
{
	struct fixture *fixture;

	if (setup(state) < 0)
		return -1;
	fixture = *state;
	must_insert(fixture->store, &alice, id_of(1), "");
	must_insert(fixture->store, &alice, id_of(2), "");
	return 0;
}

/* --- rows --- */

static void fill(struct process_record *record)
{
	process_record_init(record);
	snprintf(record->sandbox_id, sizeof(record->sandbox_id), "%s", id_of(1));
	record->number = UINT32_MAX;
	record->pid = 4194304;
	json_array_append_new(record->argv, json_string("/bin/sh"));
	json_array_append_new(record->argv, json_string("-c"));
	json_array_append_new(record->argv, json_string("echo 'ä' \"\n\t\" \\ | cat"));
	free(record->cwd);
	record->cwd = mem_strdup("/work space/ü");
	record->uid = 1000;
	record->timeout_ms = 1ull << 40;
	record->started_at_ms = 1;
	record->ended_at_ms = INT64_MAX;
	record->exit_code = 137;
	record->duration_us = 1ull << 50;
	record->output_bytes = 1ull << 60;
	record->survivors = UINT32_MAX;
	memset(record->start, 's', sizeof(record->start) - 1);
	record->restarts = UINT32_MAX;
	record->start_digest = UINT64_MAX - 1;
	record->is_ceased = true;
	record->end = (struct termination){.reason = END_MEMORY_PRESSURE,
		.signal = SIGKILL,
		.cpu_us = 1ull << 41,
		.peak_memory_bytes = 1ull << 42,
		.profile = "default",
		.denied_count = TERMINATION_DENIED_MAX,
		.denied = {{165, 3}, {0, 1}, {UINT32_MAX, UINT32_MAX}}};
	memset(record->end.detail, 'd', sizeof(record->end.detail) - 1);
}

static void assert_same(const struct process_record *a, const struct process_record *b)
{
	assert_string_equal(a->sandbox_id, b->sandbox_id);
	assert_true(a->number == b->number && a->pid == b->pid && a->uid == b->uid);
	assert_true(json_equal(a->argv, b->argv));
	assert_string_equal(a->cwd, b->cwd);
	assert_true(a->is_line == b->is_line && a->is_background == b->is_background &&
		    a->is_pty == b->is_pty && a->is_input_open == b->is_input_open &&
		    a->kills_tree == b->kills_tree && a->is_isolated == b->is_isolated);
	assert_true(a->timeout_ms == b->timeout_ms && a->started_at_ms == b->started_at_ms &&
		    a->ended_at_ms == b->ended_at_ms && a->duration_us == b->duration_us &&
		    a->output_bytes == b->output_bytes);
	assert_int_equal(a->exit_code, b->exit_code);
	assert_true(a->survivors == b->survivors && a->restarts == b->restarts);
	assert_true(a->start_digest == b->start_digest);
	assert_int_equal(a->is_ceased, b->is_ceased);
	assert_string_equal(a->start, b->start);
	assert_int_equal(a->end.reason, b->end.reason);
	assert_int_equal(a->end.signal, b->end.signal);
	assert_string_equal(a->end.detail, b->end.detail);
	assert_true(a->end.cpu_us == b->end.cpu_us &&
		    a->end.peak_memory_bytes == b->end.peak_memory_bytes);
	assert_string_equal(a->end.profile, b->end.profile);
	assert_int_equal(a->end.denied_count, b->end.denied_count);
	assert_memory_equal(a->end.denied, b->end.denied, sizeof(a->end.denied));
}

static void every_member_of_a_row_comes_back(void **state)
{
	struct fixture *fixture = *state;
	struct process_record in, out;
	struct err err = {0};

	fill(&in);
	assert_int_equal(store_process_insert(fixture->store, &in, &err), 0);
	reopen(fixture);
	assert_int_equal(
		store_process_get(fixture->store, in.sandbox_id, in.number, &out, &err), 0);
	assert_same(&in, &out);
	process_record_fini(&out);
	process_record_fini(&in);
}

/* Each flag alone, so that none stands for another. */
static void every_flag_is_one_of_its_own(void **state)
{
	struct fixture *fixture = *state;

	for (uint32_t i = 0; i < 7; i++) {
		struct process_record in, out;
		struct err err = {0};

		fill(&in);
		in.number = i + 1;
		in.is_line = i == 0;
		in.is_background = i == 1;
		in.is_pty = i == 2;
		in.is_input_open = i == 3;
		in.kills_tree = i == 4;
		in.is_isolated = i == 5;
		assert_int_equal(store_process_insert(fixture->store, &in, &err), 0);
		assert_int_equal(
			store_process_get(fixture->store, in.sandbox_id, in.number, &out, &err), 0);
		assert_same(&in, &out);
		process_record_fini(&out);
		process_record_fini(&in);
	}
}

static void every_reason_comes_back(void **state)
{
	struct fixture *fixture = *state;

	for (int reason = 0; reason < END_REASON_COUNT; reason++) {
		struct process_record in;
		struct err err = {0};

		fill(&in);
		in.number = (uint32_t)reason + 1;
		in.end.reason = (enum end_reason)reason;
		assert_int_equal(store_process_insert(fixture->store, &in, &err), 0);
		assert_int_equal(get(fixture->store, 1, in.number).end.reason, reason);
		process_record_fini(&in);
	}
}

static void an_update_writes_the_whole_row(void **state)
{
	struct fixture *fixture = *state;
	struct process_record in, out;
	struct err err = {0};

	put(fixture->store, 1, UINT32_MAX, 0, 0);
	put(fixture->store, 1, 1, 0, 0);
	fill(&in);
	in.is_line = in.is_pty = true;
	assert_int_equal(store_process_update(fixture->store, &in, &err), 0);
	assert_int_equal(
		store_process_get(fixture->store, in.sandbox_id, in.number, &out, &err), 0);
	assert_same(&in, &out);
	process_record_fini(&out);
	process_record_fini(&in);
	assert_int_equal(get(fixture->store, 1, 1).ended_at_ms, 0); /* not another's */
}

static void an_update_brings_no_row_back(void **state)
{
	struct fixture *fixture = *state;
	struct process_record in, out;
	struct err err = {0};

	fill(&in);
	(void)!store_process_update(fixture->store, &in, &err);
	assert_int_equal(
		store_process_get(fixture->store, in.sandbox_id, in.number, &out, &err), -ENOENT);
	assert_int_equal(err.kind, ERR_NOT_FOUND);
	assert_string_equal(err.code, "process_not_found");
	process_record_fini(&in);
}

static void a_number_is_given_once_in_each_sandbox(void **state)
{
	struct fixture *fixture = *state;
	struct process_record again;
	struct err err = {0};

	put(fixture->store, 1, 1, 0, 0);
	put(fixture->store, 2, 1, 0, 0);
	process_record_init(&again);
	snprintf(again.sandbox_id, sizeof(again.sandbox_id), "%s", id_of(1));
	again.number = 1;
	assert_true(store_process_insert(fixture->store, &again, &err) < 0);
	process_record_fini(&again);
	assert_int_equal(get(fixture->store, 1, 1).started_at_ms, 1000);
}

static void there_is_no_row_without_a_workspace(void **state)
{
	struct fixture *fixture = *state;
	struct process_record record;
	struct err err = {0};

	fill(&record);
	snprintf(record.sandbox_id, sizeof(record.sandbox_id), "%s", id_of(99));
	assert_true(store_process_insert(fixture->store, &record, &err) < 0);
	process_record_fini(&record);
}

static void rows_go_with_their_workspace_not_with_their_sandbox(void **state)
{
	struct fixture *fixture = *state;
	struct err err = {0};

	put(fixture->store, 1, 1, 5, 0);
	put(fixture->store, 2, 1, 5, 0);
	assert_int_equal(store_sandbox_delete(fixture->store, id_of(1), &err), 0);
	assert_listed(fixture->store, 1, false, "1");
	assert_int_equal(store_workspace_delete(fixture->store, id_of(1), &err), 0);
	assert_listed(fixture->store, 1, false, "");
	assert_listed(fixture->store, 2, false, "1");
}

static void a_deleted_row_is_gone_and_no_other(void **state)
{
	struct fixture *fixture = *state;
	struct err err = {0};

	put(fixture->store, 1, 1, 5, 0);
	put(fixture->store, 1, 2, 5, 0);
	put(fixture->store, 2, 1, 5, 0);
	assert_int_equal(store_process_delete(fixture->store, id_of(1), 1, &err), 0);
	assert_int_equal(store_process_delete(fixture->store, id_of(1), 1, &err), 0);
	assert_listed(fixture->store, 1, false, "2");
	assert_listed(fixture->store, 2, false, "1");
}

/* --- many --- */

static void a_list_is_in_order_and_of_one_sandbox(void **state)
{
	struct fixture *fixture = *state;

	put(fixture->store, 1, 10, 0, 0);
	put(fixture->store, 1, 9, 5, 0);
	put(fixture->store, 1, 2, 5, 1);
	put(fixture->store, 1, 100, 5, 0);
	put(fixture->store, 2, 1, 0, 0);
	assert_listed(fixture->store, 1, false, "2 9 10 100");
	assert_listed(fixture->store, 1, true, "2 10"); /* also of whom somebody survives */
	assert_listed(fixture->store, 2, true, "1");
	assert_listed(fixture->store, 3, false, "");
}

static uint32_t last(struct store *store, unsigned sandbox)
{
	uint32_t number = 99;
	struct err err = {0};

	assert_int_equal(store_process_last(store, id_of(sandbox), &number, &err), 0);
	return number;
}

static void the_last_number_is_the_highest_of_the_sandbox(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(last(fixture->store, 1), 0);
	put(fixture->store, 1, 10, 5, 0);
	put(fixture->store, 1, 9, 0, 0);
	put(fixture->store, 2, 77, 0, 0);
	assert_int_equal(last(fixture->store, 1), 10);
	assert_int_equal(last(fixture->store, 2), 77);
	put(fixture->store, 1, UINT32_MAX, 0, 0);
	assert_true(last(fixture->store, 1) == UINT32_MAX);
}

static void assert_surplus(struct store *store, unsigned keep, unsigned max, const char *expected)
{
	uint32_t numbers[16];
	char text[128] = "";
	struct err err = {0};
	int count = store_process_surplus(store, id_of(1), keep, numbers, max, &err);

	assert_true(count >= 0 && count <= (int)max);
	for (int i = 0; i < count; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%u", i ? " " : "",
			numbers[i]);
	assert_string_equal(text, expected);
}

static void only_what_has_ended_whole_is_surplus(void **state)
{
	struct fixture *fixture = *state;

	for (uint32_t i = 1; i <= 8; i++)
		put(fixture->store, 1, i, i == 2 ? 0 : 5, i == 3 ? 1 : 0);
	put(fixture->store, 2, 1, 5, 0);
	assert_surplus(fixture->store, 6, 16, ""); /* 1 4 5 6 7 8 have ended */
	assert_surplus(fixture->store, 5, 16, "1");
	assert_surplus(fixture->store, 4, 16, "4 1");
	assert_surplus(fixture->store, 0, 2, "8 7");
}

static void an_end_of_all_ends_what_runs_and_leaves_the_others_their_ends(void **state)
{
	struct fixture *fixture = *state;
	struct termination how = {.reason = END_IDLE, .detail = "quiet"};
	struct process_record row;
	struct err err = {0};

	put(fixture->store, 1, 1, 0, 0);
	put(fixture->store, 1, 2, 5000, 2);
	put(fixture->store, 1, 3, 5000, 0);
	put(fixture->store, 2, 1, 0, 1);
	assert_int_equal(store_process_end_all(fixture->store, id_of(1), &how, &err), 0);
	row = get(fixture->store, 1, 1);
	assert_true(row.ended_at_ms > 1000);
	assert_int_equal(row.exit_code, 137);
	assert_int_equal(row.end.signal, SIGKILL);
	assert_int_equal(row.end.reason, END_IDLE);
	assert_string_equal(row.end.detail, "quiet");
	assert_true(row.duration_us == (uint64_t)(row.ended_at_ms - 1000) * 1000);
	for (uint32_t i = 2; i <= 3; i++) {
		row = get(fixture->store, 1, i);
		assert_int_equal(row.survivors, 0);
		assert_int_equal(row.ended_at_ms, 5000);
		assert_int_equal(row.exit_code, 3);
		assert_int_equal(row.end.reason, END_EXITED);
		assert_int_equal(row.end.signal, 0);
		assert_int_equal(row.duration_us, 77);
		assert_string_equal(row.end.detail, "its own");
	}
	assert_int_equal(get(fixture->store, 2, 1).ended_at_ms, 0);
	assert_listed(fixture->store, 1, true, "");
	/* In all sandboxes. */
	assert_int_equal(store_process_end_all(fixture->store, NULL, &how, &err), 0);
	assert_listed(fixture->store, 2, true, "");
	assert_int_equal(get(fixture->store, 2, 1).end.reason, END_IDLE);
}

#define IN_STORE(test) cmocka_unit_test_setup_teardown(test, setup_sandboxes, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		IN_STORE(every_member_of_a_row_comes_back),
		IN_STORE(every_flag_is_one_of_its_own),
		IN_STORE(every_reason_comes_back),
		IN_STORE(an_update_writes_the_whole_row),
		IN_STORE(an_update_brings_no_row_back),
		IN_STORE(a_number_is_given_once_in_each_sandbox),
		IN_STORE(there_is_no_row_without_a_workspace),
		IN_STORE(rows_go_with_their_workspace_not_with_their_sandbox),
		IN_STORE(a_deleted_row_is_gone_and_no_other),
		IN_STORE(a_list_is_in_order_and_of_one_sandbox),
		IN_STORE(the_last_number_is_the_highest_of_the_sandbox),
		IN_STORE(only_what_has_ended_whole_is_surplus),
		IN_STORE(an_end_of_all_ends_what_runs_and_leaves_the_others_their_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
