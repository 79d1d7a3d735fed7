/* SPDX-License-Identifier: Apache-2.0 */
#include "model/size.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void sizes_are_bytes_or_have_a_unit(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} sizes[] = {{"0", 0}, {"1", 1}, {"1000", 1000}, {"1Ki", 1024}, {"16Mi", 16 << 20},
		{"3Gi", 3ull << 30}, {"5Ti", 5ull << 40}, {"9223372036854775807", INT64_MAX},
		{"8388607Ti", 8388607ull << 40}, {"8191Pi", 8191ull << 50}, {"0Gi", 0}};
	uint64_t bytes;

	(void)state;
	for (size_t i = 0; i < array_len(sizes); i++) {
		assert_int_equal(size_parse(sizes[i].text, &bytes), 0);
		assert_true(bytes == sizes[i].bytes);
	}
}

static void everything_else_is_an_error(void **state)
{
	static const char *const bad[] = {"", "Ki", "1K", "1KB", "1kib", "1ki", "1 Ki", " 1Ki",
		"1Ki ", "-1", "+1", "01", "00Ki", "1.5Gi", "1Ei", "1Gi1", "0x10",
		"9223372036854775808", "8388608Ti", "8192Pi", "9007199254740992Ki",
		"99999999999999999999999999999999", "18446744073709551615"};
	uint64_t bytes = 7;

	(void)state;
	for (size_t i = 0; i < array_len(bad); i++) {
		if (size_parse(bad[i], &bytes) >= 0)
			fail_msg("%s is accepted", bad[i]);
	}
	assert_int_equal(bytes, 7);
}

static void sizes_are_written_in_the_shortest_exact_form(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} sizes[] = {{0, "0"}, {1, "1"}, {1000, "1000"}, {1024, "1Ki"}, {1536, "1536"},
		{1 << 30, "1Gi"}, {(1ull << 30) + 1024, "1048577Ki"}, {1ull << 50, "1Pi"}};
	char text[SIZE_TEXT_LEN];

	(void)state;
	for (size_t i = 0; i < array_len(sizes); i++) {
		size_format(sizes[i].bytes, text);
		assert_string_equal(text, sizes[i].text);
	}
	size_format(UINT64_MAX, text);
	assert_string_equal(text, "18446744073709551615");
}

static void what_is_written_is_read_as_the_same(void **state)
{
	uint64_t value = 1;

	(void)state;
	for (int i = 0; i < 5000; i++) {
		char text[SIZE_TEXT_LEN];
		uint64_t back;

		value = value * 6364136223846793005u + 1442695040888963407u;
		size_format(value >> (1 + i % 63) << (i % 40) & INT64_MAX, text);
		assert_int_equal(size_parse(text, &back), 0);
		assert_true(back == (value >> (1 + i % 63) << (i % 40) & INT64_MAX));
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_are_bytes_or_have_a_unit),
		cmocka_unit_test(everything_else_is_an_error),
		cmocka_unit_test(sizes_are_written_in_the_shortest_exact_form),
		cmocka_unit_test(what_is_written_is_read_as_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
