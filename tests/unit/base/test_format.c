/* SPDX-License-Identifier: Apache-2.0 */
#include "base/format.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void the_length_is_that_of_what_is_there(void **state)
{
	char text[9];
	size_t len = format_append(text, sizeof(text), 0, "%s", "abc");

	(void)state;
	assert_int_equal(len, 3);
	len = format_append(text, sizeof(text), len, "-%d", 42);
	assert_int_equal(len, 6);
	assert_string_equal(text, "abc-42");
	assert_int_equal(format_append(text, sizeof(text), len, "%s", ""), 6);
}

static void what_does_not_fit_loses_its_end(void **state)
{
	char text[6] = "", behind[4] = "xyz";
	size_t len = format_append(text, sizeof(text), 0, "%s", "abcde");

	(void)state;
	assert_int_equal(len, 5);
	assert_int_equal(format_append(text, sizeof(text), len, "%s", "more"), 5);
	assert_int_equal(format_append(text, sizeof(text), 2, "%0100d", 7), 5);
	assert_string_equal(text, "ab000");
	assert_string_equal(behind, "xyz");
}

static void a_text_that_was_cut_ends_at_a_word(void **state)
{
	char text[16];

	(void)state;
	snprintf(text, sizeof(text), "one two three four");
	format_end_at_word(text, sizeof(text));
	assert_string_equal(text, "one two ...");
	snprintf(text, sizeof(text), "one two");
	format_end_at_word(text, sizeof(text));
	assert_string_equal(text, "one two");
	snprintf(text, sizeof(text), "onetwothreefourfive");
	format_end_at_word(text, sizeof(text));
	assert_string_equal(text, "onetwothreef...");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_length_is_that_of_what_is_there),
		cmocka_unit_test(what_does_not_fit_loses_its_end),
		cmocka_unit_test(a_text_that_was_cut_ends_at_a_word),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
