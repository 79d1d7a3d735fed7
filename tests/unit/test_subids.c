/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/subids.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define UNIT 1024

static struct subids parse(const char *text)
{
	struct subids subids;

	subids_parse(text, "ann", 1001, UNIT, &subids);
	return subids;
}

static void a_user_is_lent_what_names_them_or_their_uid(void **state)
{
	struct subids subids =
		parse("bob:100000:65536\nann:165536:65536\n1001:300000:2048\nanna:400000:65536\n");

	(void)state;
	assert_int_equal(subids.range_count, 2);
	assert_int_equal(subids.ranges[0].first, 165536);
	assert_int_equal(subids.ranges[0].count, 65536);
	assert_int_equal(subids.ranges[1].first, 300000);
	assert_int_equal(subids.ranges[1].count, 2048);
	assert_int_equal(subids.total, 65536 + 2048);
}

static void ranges_are_cut_to_whole_units(void **state)
{
	struct subids subids = parse("ann:100000:1500\nann:200000:1023\nann:300000:1024");

	(void)state;
	assert_int_equal(subids.range_count, 2);
	assert_int_equal(subids.ranges[0].count, 1024);
	assert_int_equal(subids.ranges[1].first, 300000);
	assert_int_equal(subids.total, 2048);
}

static void what_is_free_to_be_lent_lies_above_all_that_was(void **state)
{
	(void)state;
	assert_int_equal(parse("").next_first, 100000);
	assert_int_equal(parse("bob:100000:65536\ncarl:5:10\n").next_first, 165536);
	assert_int_equal(parse("bob:200000:65536\nann:100000:65536\n").next_first, 265536);
}

static void lines_that_are_none_do_not_count(void **state)
{
	static const char *const texts[] = {"ann", "ann:", "ann:100000",
		"ann:100000:", "ann:x:65536", "ann:100000:-1", "ann:0:65536", "ann:100000:0",
		"ann:4294967290:65536", "ann:100000:99999999999999999999", "# ann:100000:65536",
		":::", "\n\n"};

	(void)state;
	for (size_t i = 0; i < array_len(texts); i++)
		assert_int_equal(parse(texts[i]).total, 0);
}

static void more_ranges_than_fit_are_left_out(void **state)
{
	char text[4096] = "";
	struct subids subids;

	(void)state;
	for (int i = 0; i < SUBIDS_RANGES_MAX + 5; i++)
		strcat(text, "ann:100000:1024\n");
	subids = parse(text);
	assert_int_equal(subids.range_count, SUBIDS_RANGES_MAX);
	assert_int_equal(subids.total, SUBIDS_RANGES_MAX * 1024);
}

static void a_file_that_is_not_there_lends_nothing(void **state)
{
	struct subids subids;

	(void)state;
	subids_read("/nonexistent/subuid", "ann", 1001, UNIT, &subids);
	assert_int_equal(subids.total, 0);
	assert_int_equal(subids.next_first, 100000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_user_is_lent_what_names_them_or_their_uid),
		cmocka_unit_test(ranges_are_cut_to_whole_units),
		cmocka_unit_test(what_is_free_to_be_lent_lies_above_all_that_was),
		cmocka_unit_test(lines_that_are_none_do_not_count),
		cmocka_unit_test(more_ranges_than_fit_are_left_out),
		cmocka_unit_test(a_file_that_is_not_there_lends_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
