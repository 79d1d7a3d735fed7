/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of the database (src/store/store_clock.c). Both clocks of the machine are set by the test (see meson.build). */
#include "store/store_clock.h"

#include "base/clock.h"
#include "store/access/store_quota.h"
#include "store_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define HOUR_MS 3600000
#define DAY_MS	(24ll * HOUR_MS)
#define EPOCH	1800000000000ll

static int64_t wall_ms;
static uint64_t steady_ms;

int64_t __wrap_clock_wall_ms(void);
int64_t __wrap_clock_wall_ms(void)
{
	return wall_ms;
}

uint64_t __wrap_clock_steady_ms(void);
uint64_t __wrap_clock_steady_ms(void)
{
	return steady_ms;
}

static void pass(int64_t ms)
{
	wall_ms += ms;
	steady_ms += (uint64_t)ms;
}

static int setup_clocks(void **state)
{
	wall_ms = EPOCH;
	steady_ms = 5000;
	return setup(state);
}

/* The machine was off for so long, and its wall clock then shows another time than it should by so much. */
static void boot(struct fixture *fixture, int64_t off_ms, int64_t wrong_ms)
{
	store_close(fixture->store);
	execute(fixture->path, "UPDATE clock SET boot_id = 'another'");
	wall_ms += off_ms + wrong_ms;
	steady_ms = 1000;
	open_store(fixture);
}

static void follow(struct fixture *fixture)
{
	struct err err;

	assert_int_equal(store_clock_follow(fixture->store, &err), 0);
}

static void it_begins_as_the_wall_clock(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(store_clock_ms(fixture->store), EPOCH);
	pass(HOUR_MS);
	assert_int_equal(store_clock_ms(fixture->store), EPOCH + HOUR_MS);
	assert_int_equal(store_clock_to_wall(fixture->store, EPOCH), EPOCH);
}

static void a_step_of_the_wall_clock_moves_only_what_people_see(void **state)
{
	struct fixture *fixture = *state;

	for (int i = 0; i < 2; i++) {
		int64_t step_ms = i == 0 ? DAY_MS : -3 * DAY_MS;
		int64_t before = store_clock_ms(fixture->store);

		wall_ms += step_ms;
		assert_int_equal(store_clock_ms(fixture->store), before);
		follow(fixture);
		assert_int_equal(store_clock_ms(fixture->store), before);
		assert_int_equal(store_clock_to_wall(fixture->store, before), wall_ms);
	}
}

static void a_step_while_no_daemon_runs_changes_nothing_either(void **state)
{
	struct fixture *fixture = *state;

	store_close(fixture->store);
	pass(HOUR_MS);
	wall_ms -= DAY_MS;
	open_store(fixture);
	assert_int_equal(store_clock_ms(fixture->store), EPOCH + HOUR_MS);
	assert_int_equal(store_clock_to_wall(fixture->store, EPOCH), EPOCH - DAY_MS);
}

static void the_time_that_the_machine_is_off_counts(void **state)
{
	struct fixture *fixture = *state;

	wall_ms += DAY_MS; /* set right while it ran */
	follow(fixture);
	pass(HOUR_MS);
	boot(fixture, 2 * HOUR_MS, 0);
	assert_int_equal(store_clock_ms(fixture->store), EPOCH + 3 * HOUR_MS);
	assert_int_equal(store_clock_to_wall(fixture->store, EPOCH), EPOCH + DAY_MS);
}

/* Without a battery it wakes up in the past, until the network tells it the time. */
static void a_machine_that_forgets_the_time_takes_back_none(void **state)
{
	struct fixture *fixture = *state;
	int64_t last;

	pass(HOUR_MS);
	follow(fixture);
	last = store_clock_ms(fixture->store);
	for (int i = 0; i < 3; i++) {
		boot(fixture, 0, EPOCH / -2);
		assert_true(store_clock_ms(fixture->store) >= last);
		pass(1000);
		wall_ms += EPOCH / 2;
		follow(fixture);
		last = store_clock_ms(fixture->store);
		assert_int_equal(store_clock_to_wall(fixture->store, last), wall_ms);
	}
	assert_true(last < EPOCH + 2 * HOUR_MS);
}

static int add(struct fixture *fixture, unsigned n, struct err *err)
{
	return insert(fixture->store, &alice, id_of(n), "", err);
}

static void an_hour_back_or_ahead_blocks_no_create(void **state)
{
	struct fixture *fixture = *state;
	struct quota quota;
	struct err err = {0};

	assert_int_equal(quota_parse("creates_per_minute=2", &quota), 0);
	assert_int_equal(store_quota_put(fixture->store, &alice, &quota, &err), 0);
	assert_int_equal(add(fixture, 1, &err), 0);
	assert_int_equal(add(fixture, 2, &err), 0);
	assert_true(add(fixture, 3, &err) < 0);
	wall_ms -= HOUR_MS;
	assert_true(add(fixture, 3, &err) < 0);
	pass(60000);
	assert_int_equal(add(fixture, 3, &err), 0);
	wall_ms += DAY_MS;
	pass(60000);
	assert_int_equal(add(fixture, 4, &err), 0);
	assert_int_equal(add(fixture, 5, &err), 0);
	/* From a daemon that had only the wall clock, which was set back since. */
	execute(fixture->path, "UPDATE quota_pace SET until = until + 86400000");
	assert_int_equal(add(fixture, 6, &err), 0);
}

static void what_is_due_is_so_by_this_clock(void **state)
{
	struct fixture *fixture = *state;
	struct sandbox_record record = draft(&alice, id_of(1), "");
	char ids[4][ID_LEN + 1];
	struct err err;

	record.expires_at_ms = store_clock_ms(fixture->store) + HOUR_MS;
	record.idle_timeout_s = SANDBOX_NO_LIMIT;
	assert_int_equal(store_sandbox_insert(fixture->store, &record, &err), 0);
	wall_ms += DAY_MS;
	reopen(fixture);
	assert_int_equal(
		store_sandbox_due(fixture->store, store_clock_ms(fixture->store), ids, 4, &err), 0);
	wall_ms -= 9 * DAY_MS;
	pass(HOUR_MS);
	assert_int_equal(
		store_sandbox_due(fixture->store, store_clock_ms(fixture->store), ids, 4, &err), 1);
	sandbox_record_fini(&record);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_clocks, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(it_begins_as_the_wall_clock),
		TEST(a_step_of_the_wall_clock_moves_only_what_people_see),
		TEST(a_step_while_no_daemon_runs_changes_nothing_either),
		TEST(the_time_that_the_machine_is_off_counts),
		TEST(a_machine_that_forgets_the_time_takes_back_none),
		TEST(an_hour_back_or_ahead_blocks_no_create),
		TEST(what_is_due_is_so_by_this_clock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
