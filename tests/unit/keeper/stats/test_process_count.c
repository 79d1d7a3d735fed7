/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/stats/process_count.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <unistd.h>

/* state ppid pgrp session tty tpgid flags minflt cminflt majflt cmajflt utime stime cutime cstime
 * priority nice threads itreal start vsize rss */
#define REST "S 1 7 7 0 -1 4194560 100 0 0 0 5 6 70 800 20 0 3 0 123 4096000 50 1844 1 1 0\n"

static void a_process_adds_its_time_with_that_of_its_children_its_threads_and_pages(void **state)
{
	struct keeper_stats stats = {.cpu_us = 1, .pids = 1, .memory_bytes = 1};

	(void)state;
	assert_true(process_count_add("7 (sh) " REST, &stats));
	assert_int_equal(stats.cpu_us, 1 + 881 * 10000);
	assert_int_equal(stats.pids, 4);
	assert_int_equal(stats.memory_bytes, 1 + 50 * 4096);
}

static void a_name_may_hold_anything(void **state)
{
	struct keeper_stats stats = {0};

	(void)state;
	assert_true(process_count_add("7 (a) S 9 (b) " REST, &stats));
	assert_int_equal(stats.pids, 3);
}

static void what_is_no_such_line_adds_nothing(void **state)
{
	static const char *const lines[] = {
		"", "7", "7 (sh)", "7 (sh) ", "7 (sh) S", "7 (sh) S 1 2 3"};
	struct keeper_stats stats = {0};

	(void)state;
	for (size_t i = 0; i < array_len(lines); i++)
		assert_false(process_count_add(lines[i], &stats));
	assert_int_equal(stats.pids, 0);
	assert_int_equal(stats.cpu_us, 0);
}

/* Our own root has a /proc too. */
static void a_count_finds_at_least_who_asks(void **state)
{
	struct keeper_stats stats;
	struct err err;

	(void)state;
	assert_int_equal(process_count_take(getpid(), &stats, &err), 0);
	assert_true(stats.pids >= 1);
	assert_true(stats.memory_bytes > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_process_adds_its_time_with_that_of_its_children_its_threads_and_pages),
		cmocka_unit_test(a_name_may_hold_anything),
		cmocka_unit_test(what_is_no_such_line_adds_nothing),
		cmocka_unit_test(a_count_finds_at_least_who_asks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
