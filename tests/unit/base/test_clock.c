/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static void assert_text(int64_t wall_ms, const char *text)
{
	char got[CLOCK_TEXT_LEN];

	clock_format(wall_ms, got);
	assert_string_equal(got, text);
}

static void times_are_rfc_3339_in_utc(void **state)
{
	(void)state;
	assert_text(0, "1970-01-01T00:00:00.000Z");
	assert_text(1, "1970-01-01T00:00:00.001Z");
	assert_text(1767323045678, "2026-01-02T03:04:05.678Z");
	assert_text(1709164800000, "2024-02-29T00:00:00.000Z");
	assert_text(253402300799999, "9999-12-31T23:59:59.999Z");
}

static void times_before_1970_count_backwards(void **state)
{
	(void)state;
	assert_text(-1, "1969-12-31T23:59:59.999Z");
	assert_text(-1000, "1969-12-31T23:59:59.000Z");
	assert_text(-1001, "1969-12-31T23:59:58.999Z");
}

static void the_steady_clock_does_not_go_back(void **state)
{
	uint64_t last = clock_steady_us();

	(void)state;
	for (int i = 0; i < 1000; i++) {
		uint64_t now = clock_steady_us();

		assert_true(now >= last);
		last = now;
	}
	assert_true(clock_steady_ms() >= last / 1000);
	assert_true(clock_steady_ms() <= last / 1000 + 60000);
}

static void the_wall_clock_is_the_kernel_s(void **state)
{
	int64_t before = (int64_t)time(NULL) * 1000;
	int64_t now = clock_wall_ms();

	(void)state;
	assert_true(now >= before - 1000 && now <= before + 60000);
}

/* Threads note times for each other, and compare them with a look at the clock that may be older. */
static void what_is_newer_than_our_look_was_just_now(void **state)
{
	(void)state;
	assert_int_equal(clock_passed(40, 42), 2);
	assert_int_equal(clock_passed(42, 42), 0);
	assert_int_equal(clock_passed(43, 42), 0);
	assert_int_equal(clock_passed(0, UINT64_MAX), UINT64_MAX);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_are_rfc_3339_in_utc),
		cmocka_unit_test(times_before_1970_count_backwards),
		cmocka_unit_test(the_steady_clock_does_not_go_back),
		cmocka_unit_test(the_wall_clock_is_the_kernel_s),
		cmocka_unit_test(what_is_newer_than_our_look_was_just_now),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
