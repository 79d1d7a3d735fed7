/* SPDX-License-Identifier: Apache-2.0 */
#include "base/number.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>

#include <cmocka.h>

static void digits_are_a_number(void **state)
{
	uint64_t value = 7;

	(void)state;
	assert_int_equal(number_parse("0", 0, UINT64_MAX, &value), 0);
	assert_int_equal(value, 0);
	assert_int_equal(number_parse("18446744073709551615", 0, UINT64_MAX, &value), 0);
	assert_true(value == UINT64_MAX);
}

static void bounds_are_inclusive(void **state)
{
	uint64_t value = 7;

	(void)state;
	assert_int_equal(number_parse("5", 5, 6, &value), 0);
	assert_int_equal(number_parse("6", 5, 6, &value), 0);
	assert_int_equal(value, 6);
	assert_int_equal(number_parse("4", 5, 6, &value), -ERANGE);
	assert_int_equal(number_parse("7", 5, 6, &value), -ERANGE);
	assert_int_equal(value, 6); /* untouched on failure */
}

static void everything_else_is_an_error(void **state)
{
	static const char *const bad[] = {"", " ", "+80", "-1", "080", "00", "80 ", " 80", "8 0",
		"0x10", "1e3", "1.0", "1_000", "\xd9\xa1", "80\n", "a"};
	static const char *const huge[] = {"18446744073709551616", "99999999999999999999",
		"100000000000000000000000000000000"};
	uint64_t value = 7;

	(void)state;
	for (size_t i = 0; i < array_len(bad); i++)
		assert_int_equal(number_parse(bad[i], 0, UINT64_MAX, &value), -EINVAL);
	for (size_t i = 0; i < array_len(huge); i++)
		assert_int_equal(number_parse(huge[i], 0, UINT64_MAX, &value), -ERANGE);
	assert_int_equal(value, 7);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(digits_are_a_number),
		cmocka_unit_test(bounds_are_inclusive),
		cmocka_unit_test(everything_else_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
