/* SPDX-License-Identifier: Apache-2.0 */
#include "api/text.h"

#include "base/format.h"

#include "base/mem.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include <cmocka.h>

static void the_beginning_of_a_character_at_the_end_is_found(void **state)
{
	static const struct {
		const char *bytes;
		size_t unfinished;
	} texts[] = {
		{"", 0},
		{"a", 0},
		{"\xc3\xbc", 0}, /* whole */
		{"\xc3", 1},	 /* the first of two */
		{"abc\xe2", 1},	 /* the first of three */
		{"abc\xe2\x82", 2},
		{"abc\xe2\x82\xac", 0},
		{"\xf0", 1},
		{"\xf0\x9f", 2},
		{"\xf0\x9f\x98", 3},
		{"\xf0\x9f\x98\x80", 0},
		{"\xf0\x9f\x98\x80\xf0\x9f", 2},
		{"\xff", 0}, /* begins nothing */
		{"\xc0", 0},
		{"\x80\x80\x80\x80", 0}, /* never began */
		{"a\x80", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(format_unfinished(texts[i].bytes, strlen(texts[i].bytes)),
			texts[i].unfinished);
}

/* Cut anywhere and carried over, text stays text. */
static void text_that_is_cut_anywhere_is_whole_again(void **state)
{
	static const char text[] = "a\u00fc\u20ac\U0001f600z";
	const uint8_t *bytes = (const uint8_t *)text;
	size_t len = sizeof(text) - 1;

	(void)state;
	for (size_t cut = 0; cut <= len; cut++) {
		size_t head = cut - format_unfinished(bytes, cut);
		json_t *first = json_stringn(text, head),
		       *rest = json_stringn(text + head, len - head);

		assert_non_null(first);
		assert_non_null(rest);
		json_decref(first);
		json_decref(rest);
	}
}

static void assert_set(const void *data, size_t len, const char *key, const char *value)
{
	json_t *object = json_object();

	text_set(object, "data", data, len);
	assert_int_equal(json_object_size(object), 1);
	assert_non_null(json_object_get(object, key));
	assert_string_equal(json_string_value(json_object_get(object, key)), value);
	json_decref(object);
}

static void text_is_text_and_the_rest_is_base64(void **state)
{
	(void)state;
	assert_set("hello", 5, "data", "hello");
	assert_set(NULL, 0, "data", "");
	assert_set("\xff", 1, "data_base64", "/w==");
	assert_set("a\xff", 2, "data_base64", "Yf8=");
	assert_set("ab\xff", 3, "data_base64", "YWL/");
	assert_set("\xed\xa0\x80", 3, "data_base64", "7aCA"); /* half a surrogate pair is no text */
}

static void a_nul_byte_is_text_and_not_an_end(void **state)
{
	json_t *object = json_object();

	(void)state;
	text_set(object, "data", (const uint8_t *)"a\0b", 3);
	assert_int_equal(json_string_length(json_object_get(object, "data")), 3);
	json_decref(object);
}

static void base64_is_written_in_one_way_only(void **state)
{
	static const char *const wrong[] = {"YQ",
		"YQ=", "YQ===", "YR==", "YWJ=", "Y Q=", "YQ==YQ==", "=YQ=", "YQ=\n",
		"Y-_=", "YWJj----"};
	uint8_t *data = NULL;

	(void)state;
	assert_int_equal(text_decode_base64("YWI=", &data), 2);
	assert_memory_equal(data, "ab", 2);
	free(data);
	assert_int_equal(text_decode_base64("", &data), 0);
	free(data);
	for (size_t i = 0; i < array_len(wrong); i++)
		if (text_decode_base64(wrong[i], &data) != -EINVAL)
			fail_msg("%s is taken", wrong[i]);
}

static void what_a_terminal_would_obey_is_left_out(void **state)
{
	static const struct {
		const char *bytes, *plain;
	} texts[] = {
		{"plain \u00fc\n\tindented", "plain \u00fc\n\tindented"},
		{"\x1b[1;31mred\x1b[0m", "red"},
		{"bell\a back\b line\r\n", "bell back line\n"},
		{"broken \xff \xc3", "broken ? ?"},
		{"cut \x1b[1;3", "cut "},
		{"\x1b", ""},
		{"\x1b]0;title\a", "]0;title"},
	};

	(void)state;
	for (size_t i = 0; i < array_len(texts); i++) {
		struct buf out = BUF_INIT(256);

		text_put_plain(&out, (const uint8_t *)texts[i].bytes, strlen(texts[i].bytes));
		buf_append(&out, "", 1);
		assert_string_equal(out.data, texts[i].plain);
		buf_fini(&out);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_beginning_of_a_character_at_the_end_is_found),
		cmocka_unit_test(text_that_is_cut_anywhere_is_whole_again),
		cmocka_unit_test(text_is_text_and_the_rest_is_base64),
		cmocka_unit_test(base64_is_written_in_one_way_only),
		cmocka_unit_test(a_nul_byte_is_text_and_not_an_end),
		cmocka_unit_test(what_a_terminal_would_obey_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
