/* SPDX-License-Identifier: Apache-2.0 */
#include "base/path_order.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void a_directory_comes_before_what_is_in_it_and_that_before_its_siblings(void **state)
{
	static const char *const sorted[] = {"", "a", "a/b", "a/b/c", "a/c", "a!", "a-b", "ab", "b",
		"b/\x01", "b/\x7f", "b/\xff", "\xc3\xa4"};

	(void)state;
	for (size_t i = 0; i < array_len(sorted); i++) {
		for (size_t j = 0; j < array_len(sorted); j++) {
			int order = path_order(sorted[i], sorted[j]);

			assert_int_equal(order < 0, i < j);
			assert_int_equal(order > 0, i > j);
		}
	}
}

static void below_means_in_the_directory_at_any_depth(void **state)
{
	(void)state;
	assert_true(path_is_below("a/b", "a"));
	assert_true(path_is_below("a/b/c", "a"));
	assert_true(path_is_below("a", ""));
	assert_false(path_is_below("a", "a"));
	assert_false(path_is_below("ab", "a"));
	assert_false(path_is_below("a-b/c", "a"));
	assert_false(path_is_below("", ""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_directory_comes_before_what_is_in_it_and_that_before_its_siblings),
		cmocka_unit_test(below_means_in_the_directory_at_any_depth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
