/* SPDX-License-Identifier: Apache-2.0 */
/* The output of all processes of a sandbox keeps to one bound, and says what it left out. */
#include "base/clock.h"
#include "core/output/output_budget.h"
#include "output_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define LOGS 12
#define MAX  (512u << 10)

static struct output_budget *open_budget(struct world *world, uint64_t max, uint64_t reserve)
{
	struct output_budget *budget = NULL;
	struct err err = {0};

	if (output_budget_open(world->dir_fd, max, reserve, &budget, &err) < 0)
		fail_msg("%s", err.message);
	return budget;
}

static struct output_log *open_process(
	struct world *world, struct output_budget *budget, uint32_t process, uint64_t max)
{
	struct output_log *log = NULL;
	struct err err = {0};

	if (output_log_open(world->dir_fd, process, max, &log, &err) < 0)
		fail_msg("%s", err.message);
	if (budget)
		output_log_join(log, budget);
	return log;
}

static void write_bytes(struct output_log *log, size_t len)
{
	char *data = mem_new(len + 1);

	memset(data, 'x', len);
	output_log_append(log, 1, clock_wall_ms(), data, len);
	free(data);
}

/* How many bytes of a process can still be read; all that there were, kept or not, must be accounted for. */
static uint64_t read_process(struct world *world, uint32_t process, uint64_t written)
{
	struct output_log *log = open_process(world, NULL, process, MIN_BYTES);
	struct output_cursor *cursor = output_cursor_new(log, 0);
	struct output_piece piece;
	uint8_t data[4096];
	uint64_t kept = 0, at = 0;

	for (;;) {
		output_cursor_read(cursor, data, sizeof(data), &piece);
		if (piece.kind == OUTPUT_NONE)
			break;
		assert_int_equal(piece.offset, at);
		at = piece.next;
		if (is_bytes(&piece))
			kept += piece.next - piece.offset;
	}
	assert_int_equal(at, written);
	output_cursor_free(cursor);
	output_log_unref(log);
	return kept;
}

static void ended_ones_go_first_and_the_oldest_of_them(void **state)
{
	struct world *world = *state;
	struct output_budget *budget = open_budget(world, MAX, 0);
	struct output_log *log;

	for (uint32_t process = 1; process <= 3; process++) {
		log = open_process(world, budget, process, MAX / 2);
		write_bytes(log, 150000);
		output_log_unref(log);
	}
	log = open_process(world, budget, 4, MAX / 2);
	write_bytes(log, 150000);
	assert_int_equal(read_process(world, 1, 150000), 0); /* a mark says what there was */
	assert_int_equal(read_process(world, 2, 150000), 150000);
	assert_int_equal(read_process(world, 3, 150000), 150000);
	write_bytes(log, 100000);
	assert_int_equal(read_process(world, 2, 150000), 0);
	assert_int_equal(read_process(world, 3, 150000), 150000);
	assert_int_equal(read_process(world, 4, 250000), 250000);
	assert_int_equal(output_budget_used(budget), sum_sizes(world));
	assert_true(sum_sizes(world) <= MAX);
	output_log_unref(log);
	output_budget_unref(budget);
}

static void of_those_that_run_the_largest_is_shortened(void **state)
{
	struct world *world = *state;
	struct output_budget *budget = open_budget(world, MAX, 0);
	struct output_log *small = open_process(world, budget, 1, MAX / 2);
	struct output_log *floods[3];

	write_bytes(small, 10000);
	for (uint32_t i = 0; i < array_len(floods); i++) {
		floods[i] = open_process(world, budget, 2 + i, MAX / 2);
		for (size_t n = 0; n < 100; n++) {
			write_bytes(floods[i], 10000);
			assert_true(output_budget_used(budget) <= MAX);
			assert_int_equal(output_budget_used(budget), sum_sizes(world));
		}
	}
	assert_int_equal(read_process(world, 1, 10000), 10000);
	for (uint32_t i = 0; i < array_len(floods); i++)
		output_log_unref(floods[i]);
	for (uint32_t i = 0; i < array_len(floods); i++)
		assert_true(read_process(world, 2 + i, 1000000) > MAX / 8);
	output_log_unref(small);
	output_budget_unref(budget);
}

static void however_many_write_however_little_the_bound_holds(void **state)
{
	struct world *world = *state;
	struct output_budget *budget = open_budget(world, MIN_BYTES, 0);
	struct output_log *logs[40];

	for (uint32_t i = 0; i < array_len(logs); i++) {
		logs[i] = open_process(world, budget, i + 1, MIN_BYTES);
		write_bytes(logs[i], 10);
		assert_true(sum_sizes(world) <= MIN_BYTES);
	}
	/* The last is there, and each counts all that it ever wrote. */
	for (uint32_t i = 0; i < array_len(logs); i++) {
		write_bytes(logs[i], 10);
		assert_int_equal(output_log_end(logs[i]), 20);
		assert_true(sum_sizes(world) <= MIN_BYTES);
		assert_int_equal(output_budget_used(budget), sum_sizes(world));
	}
	for (uint32_t i = 0; i < array_len(logs); i++)
		output_log_unref(logs[i]);
	output_budget_unref(budget);
}

static void what_it_counts_is_what_is_there_at_any_time(void **state)
{
	struct world *world = *state;
	struct output_budget *budget = open_budget(world, MAX, 0);
	struct output_log *logs[LOGS] = {NULL};
	uint32_t numbers[LOGS], last = 0;

	for (int i = 0; i < 3000; i++) {
		size_t which = next_random(world) % LOGS;

		if (!logs[which]) {
			numbers[which] = ++last;
			logs[which] = open_process(world, budget, last, MAX / 2);
		}
		write_bytes(logs[which], next_random(world) % 30000);
		if (next_random(world) % 50 == 0)
			output_budget_remove(budget, world->dir_fd, numbers[which]);
		if (next_random(world) % 20 == 0)
			output_log_unref(take_ptr(&logs[which]));
		if (next_random(world) % 200 == 0 && last > 5)
			output_budget_remove(budget, world->dir_fd, last - 5);
		assert_int_equal(output_budget_used(budget), sum_sizes(world));
		assert_true(sum_sizes(world) <= MAX);
		if (i % 500 == 499) { /* a new daemon counts the same */
			struct output_budget *again = open_budget(world, MAX, 0);

			assert_int_equal(output_budget_used(again), sum_sizes(world));
			output_budget_unref(again);
		}
	}
	for (size_t i = 0; i < LOGS; i++)
		output_log_unref(logs[i]);
	output_budget_unref(budget);
}

static void a_removed_process_leaves_nothing_whoever_still_has_its_log(void **state)
{
	struct world *world = *state;
	struct output_budget *budget = open_budget(world, MAX, 0);
	struct output_log *log = open_process(world, budget, 1, MAX / 2);

	write_bytes(log, 50000);
	output_budget_remove(budget, world->dir_fd, 1);
	assert_int_equal(each_file(world, NULL), 0);
	assert_int_equal(output_budget_used(budget), 0);
	write_bytes(log, 50000);
	output_log_skip(log, 200000);
	assert_int_equal(output_log_end(log), 200000);
	assert_int_equal(each_file(world, NULL), 0);
	output_log_unref(log);
	assert_int_equal(output_budget_used(budget), 0);
	output_budget_unref(budget);
}

static void below_the_reserve_of_the_host_nothing_grows(void **state)
{
	struct world *world = *state;
	struct output_budget *budget = open_budget(world, 8u << 20, 0);
	struct output_log *log = open_process(world, budget, 1, 4u << 20);
	uint64_t before;

	write_bytes(log, 1 << 20);
	output_log_unref(log);
	output_budget_unref(budget);
	before = sum_sizes(world);
	budget = open_budget(world, 8u << 20, UINT64_MAX); /* no disk has that much left */
	log = open_process(world, budget, 2, 4u << 20);
	for (int i = 0; i < 300; i++) {
		write_bytes(log, 20000);
		assert_true(sum_sizes(world) <= before);
	}
	assert_int_equal(output_log_end(log), 300 * 20000); /* nobody waits, nothing fails */
	output_log_unref(log);
	assert_int_equal(read_process(world, 1, 1 << 20), 0);
	assert_true(read_process(world, 2, 300 * 20000) > 0);
	output_budget_unref(budget);
}

static void below_the_reserve_a_new_one_still_shows_its_last_bytes(void **state)
{
	struct world *world = *state;
	struct output_budget *budget = open_budget(world, 8u << 20, UINT64_MAX);
	struct output_log *log = open_process(world, budget, 1, 4u << 20);

	write_bytes(log, 5000);
	assert_int_equal(read_process(world, 1, 5000), 5000);
	for (int i = 0; i < 300; i++) {
		write_bytes(log, 20000);
		assert_true(sum_sizes(world) <= OUTPUT_BUDGET_FLOOR);
	}
	output_log_unref(log);
	output_budget_unref(budget);
}

static void a_smaller_bound_holds_from_the_next_bytes_on(void **state)
{
	struct world *world = *state;
	struct output_budget *budget = open_budget(world, MAX, 0);
	struct output_log *log = open_process(world, budget, 1, MAX / 2);

	write_bytes(log, 250000);
	output_log_unref(log);
	output_budget_set_max(budget, 100000);
	log = open_process(world, budget, 2, MIN_BYTES);
	write_bytes(log, 1);
	assert_true(sum_sizes(world) <= 100000);
	assert_int_equal(read_process(world, 1, 250000), 0);
	output_log_unref(log);
	output_budget_unref(budget);
}

#define WITH_DIRECTORY(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		WITH_DIRECTORY(ended_ones_go_first_and_the_oldest_of_them),
		WITH_DIRECTORY(of_those_that_run_the_largest_is_shortened),
		WITH_DIRECTORY(however_many_write_however_little_the_bound_holds),
		WITH_DIRECTORY(what_it_counts_is_what_is_there_at_any_time),
		WITH_DIRECTORY(a_removed_process_leaves_nothing_whoever_still_has_its_log),
		WITH_DIRECTORY(below_the_reserve_of_the_host_nothing_grows),
		WITH_DIRECTORY(below_the_reserve_a_new_one_still_shows_its_last_bytes),
		WITH_DIRECTORY(a_smaller_bound_holds_from_the_next_bytes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
