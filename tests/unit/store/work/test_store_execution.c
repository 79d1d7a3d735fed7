/* SPDX-License-Identifier: Apache-2.0 */
#include "core/engine/sandbox_handle.h"
#include "store/work/store_execution.h"
#include "store_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct execution_record make(const struct owner *owner, unsigned n)
{
	struct execution_record record = {.owner = *owner,
		.has_handler = true,
		.process = 7,
		.from = 3,
		.timeout_ms = 9,
		.created_at_ms = n};

	snprintf(record.id, sizeof(record.id), "%s", id_of(n));
	snprintf(record.sandbox_id, sizeof(record.sandbox_id), "%s", id_of(99));
	snprintf(record.language, sizeof(record.language), "python");
	snprintf(record.handler, sizeof(record.handler), "main");
	return record;
}

static void add(struct store *store, const struct owner *owner, unsigned n, bool has_ended)
{
	struct execution_record record = make(owner, n);
	struct err err;

	record.ended_at_ms = has_ended ? n : 0;
	record.status = has_ended ? EXECUTION_FAILED : EXECUTION_RUNNING;
	record.outcome_bytes = 100;
	assert_int_equal(store_execution_insert(store, &record, &err), 0);
}

static void an_execution_is_read_as_it_was_written(void **state)
{
	struct fixture *fixture = *state;
	struct execution_record in = make(&alice, 1), out;
	struct err err;

	assert_int_equal(store_execution_insert(fixture->store, &in, &err), 0);
	in.status = EXECUTION_TIMEOUT;
	in.is_cancelling = true;
	in.ended_at_ms = 12;
	in.outcome = json_pack("{s:s%}", "stdout", "a\0b", (size_t)3);
	in.outcome_bytes = 20;
	assert_int_equal(store_execution_update(fixture->store, &in, &err), 0);
	reopen(fixture);
	assert_int_equal(store_execution_get(fixture->store, &alice, in.id, &out, &err), 0);
	assert_string_equal(out.sandbox_id, in.sandbox_id);
	assert_string_equal(out.language, "python");
	assert_string_equal(out.handler, "main");
	assert_int_equal(out.status, EXECUTION_TIMEOUT);
	assert_true(out.is_cancelling && out.has_handler);
	assert_int_equal(out.process, 7);
	assert_int_equal(out.from, 3);
	assert_int_equal(out.timeout_ms, 9);
	assert_int_equal(out.created_at_ms, 1);
	assert_int_equal(out.ended_at_ms, 12);
	assert_true(json_equal(out.outcome, in.outcome));
	execution_record_fini(&out);
	execution_record_fini(&in);
	assert_int_equal(store_execution_get(fixture->store, &bob, in.id, &out, &err), -ENOENT);
}

static bool count_one(const struct execution_record *record, void *arg)
{
	(void)record;
	++*(unsigned *)arg;
	return true;
}

static unsigned count(struct store *store, const struct owner *owner, bool is_active)
{
	struct store_execution_filter filter = {
		.owner = owner, .is_active = is_active, .limit = 1000};
	unsigned found = 0;
	struct err err;

	assert_int_equal(store_execution_list(store, &filter, count_one, &found, &err), 0);
	return found;
}

static void of_ended_ones_so_many_are_kept_for_so_long_and_so_many_bytes(void **state)
{
	static const struct store_execution_rule by_count = {.count = 80, .bytes = 1 << 20},
						 by_age = {.count = 1000,
							 .since_ms = 71,
							 .bytes = 1 << 20},
						 by_bytes = {.count = 1000, .bytes = 1000};
	struct fixture *fixture = *state;
	struct store *store = fixture->store;
	struct err err;

	for (unsigned n = 1; n <= 100; n++)
		add(store, &alice, n, true);
	add(store, &alice, 101, false);
	add(store, &bob, 102, true);
	assert_int_equal(store_execution_prune(store, &alice, &by_count, &err), 20);
	assert_int_equal(count(store, &alice, false), 81);
	assert_int_equal(store_execution_prune(store, &alice, &by_age, &err), 50);
	assert_int_equal(count(store, &alice, false), 31);
	assert_int_equal(store_execution_prune(store, &alice, &by_bytes, &err), 20);
	assert_int_equal(count(store, &alice, false), 11);
	assert_int_equal(count(store, &alice, true), 1);
	assert_int_equal(count(store, &bob, false), 1);
}

static void old_ones_are_forgotten_whoever_they_belong_to_unless_they_run(void **state)
{
	struct fixture *fixture = *state;
	struct store *store = fixture->store;
	struct err err;

	for (unsigned n = 1; n <= 10; n++)
		add(store, n % 2 ? &alice : &bob, n, true);
	add(store, &alice, 11, false);
	assert_int_equal(store_execution_expire(store, 7, &err), 6);
	assert_int_equal(count(store, &alice, false) + count(store, &bob, false), 5);
	assert_int_equal(store_execution_expire(store, 4000, &err), 4);
	assert_int_equal(count(store, &alice, true), 1);
	assert_int_equal(store_execution_expire(store, 4000, &err), 0);
}

static void a_database_from_before_executions_gets_their_table(void **state)
{
	struct fixture *fixture = *state;
	struct execution_record out;
	struct err err;

	store_close(fixture->store);
	execute(fixture->path, BACK_TO_SCHEMA_27);
	open_store(fixture);
	add(fixture->store, &alice, 1, false);
	assert_int_equal(store_execution_get(fixture->store, &alice, id_of(1), &out, &err), 0);
	execution_record_fini(&out);
}

static void use_the_store(const struct store_execution_stats *stats, void *arg)
{
	struct store *store = arg;

	/* This would wait for ever if the lock of the store were held. */
	assert_int_equal(count(store, &alice, false), stats->count);
}

static void stats_are_told_without_the_lock(void **state)
{
	struct fixture *fixture = *state;
	const struct store_execution_filter filter = {
		.owner = &alice, .limit = 10, .until_ms = INT64_MAX};
	struct err err;

	add(fixture->store, &alice, 1, true);
	add(fixture->store, &bob, 2, true);
	assert_int_equal(
		store_execution_stats(fixture->store, &filter, use_the_store, fixture->store, &err),
		0);
}

#define with_store(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_store(an_execution_is_read_as_it_was_written),
		with_store(of_ended_ones_so_many_are_kept_for_so_long_and_so_many_bytes),
		with_store(old_ones_are_forgotten_whoever_they_belong_to_unless_they_run),
		with_store(stats_are_told_without_the_lock),
		with_store(a_database_from_before_executions_gets_their_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
