/* SPDX-License-Identifier: Apache-2.0 */
#include "core/execution/result_reader.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct seen {
	char kinds[256];
	json_t *last;
};

static void take(void *arg, const char *kind, json_t *value, size_t line_len)
{
	struct seen *seen = arg;
	size_t len = strlen(seen->kinds);

	assert_true(line_len > strlen(kind) + 4);
	snprintf(seen->kinds + len, sizeof(seen->kinds) - len, "%s ", kind);
	json_decref(seen->last);
	seen->last = json_incref(value);
}

static void put(struct result_reader *reader, const char *text)
{
	result_reader_put(reader, (const uint8_t *)text, strlen(text));
}

static void lines_are_read_in_whatever_pieces_they_come(void **state)
{
	static const char text[] = "{\"begin\":1}\n{\"result\":{\"a\":[1,2]}}\n{\"done\":1}\n";

	(void)state;
	for (size_t size = 1; size < sizeof(text); size++) {
		struct seen seen = {0};
		struct result_reader reader;

		result_reader_init(&reader, take, &seen);
		for (size_t at = 0; at + 1 < sizeof(text); at += size) {
			size_t left = sizeof(text) - 1 - at;

			result_reader_put(
				&reader, (const uint8_t *)text + at, left < size ? left : size);
		}
		assert_string_equal(seen.kinds, "begin result done ");
		assert_int_equal(reader.bad, 0);
		json_decref(seen.last);
		result_reader_fini(&reader);
	}
}

static void a_line_that_makes_no_sense_is_left_out_and_counted(void **state)
{
	static const char *const bad[] = {"\n", "x\n", "[1]\n", "{}\n", "{\"a\":1,\"b\":2}\n",
		"{\"a\":1,\"a\":2}\n", "{\"a\":\xff}\n", "{\"a\":1}}\n", "{\"result\"\n"};
	struct seen seen = {0};
	struct result_reader reader;

	(void)state;
	result_reader_init(&reader, take, &seen);
	for (size_t i = 0; i < array_len(bad); i++)
		put(&reader, bad[i]);
	assert_int_equal(reader.bad, array_len(bad));
	assert_string_equal(seen.kinds, "");
	put(&reader, "{\"result\":null}\n");
	assert_string_equal(seen.kinds, "result ");
	json_decref(seen.last);
	result_reader_fini(&reader);
}

static void a_line_without_end_takes_no_more_memory_than_its_bound(void **state)
{
	auto_free char *chunk = mem_new(1 << 20);
	struct seen seen = {0};
	struct result_reader reader;

	(void)state;
	memset(chunk, 'x', 1 << 20);
	result_reader_init(&reader, take, &seen);
	for (int i = 0; i < 20; i++) {
		result_reader_put(&reader, (const uint8_t *)chunk, 1 << 20);
		assert_true(reader.line.cap <= 2 * RESULT_READER_LINE_MAX);
	}
	put(&reader, "\n{\"done\":1}\n");
	assert_int_equal(reader.bad, 1);
	assert_string_equal(seen.kinds, "done ");
	json_decref(seen.last);
	result_reader_fini(&reader);
}

static void after_a_cut_it_goes_on_with_what_is_whole(void **state)
{
	struct seen seen = {0};
	struct result_reader reader;

	(void)state;
	result_reader_init(&reader, take, &seen);
	put(&reader, "{\"display\":{\"a");
	result_reader_cut(&reader);
	put(&reader, "rest\"}}\n{\"result\":1}\n");
	assert_string_equal(seen.kinds, "result ");
	result_reader_cut(&reader); /* of output alone: nothing of a line is missing */
	put(&reader, "{\"done\":1}\n");
	assert_string_equal(seen.kinds, "result done ");
	json_decref(seen.last);
	result_reader_fini(&reader);
}

static void lines_of_another_execution_are_left_out_and_counted(void **state)
{
	struct seen seen = {0};
	struct result_reader reader;

	(void)state;
	result_reader_init(&reader, take, &seen);
	reader.marker = "id2";
	put(&reader, "\nid2 {\"display\":1}\n\nid2 {\"result\":2}\n");
	assert_string_equal(seen.kinds, "display result ");
	assert_int_equal(reader.bad, 0);
	put(&reader,
		"id1 {\"result\":3}\n{\"result\":4}\nid2{\"result\":5}\nid22 {\"result\":6}\n");
	assert_string_equal(seen.kinds, "display result ");
	assert_int_equal(reader.bad, 4);
	/* A beginning without an end spoils no line that follows it. */
	put(&reader, "half a li");
	put(&reader, "\nid2 {\"done\":{}}\n");
	assert_string_equal(seen.kinds, "display result done ");
	json_decref(seen.last);
	result_reader_fini(&reader);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_read_in_whatever_pieces_they_come),
		cmocka_unit_test(lines_of_another_execution_are_left_out_and_counted),
		cmocka_unit_test(a_line_that_makes_no_sense_is_left_out_and_counted),
		cmocka_unit_test(a_line_without_end_takes_no_more_memory_than_its_bound),
		cmocka_unit_test(after_a_cut_it_goes_on_with_what_is_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
