/* SPDX-License-Identifier: Apache-2.0 */
/* What sandboxes and servers named, on its way to a terminal. */
#include "cli/cli.h"
#include "cli/text/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void expect_tamed(const char *text, const char *expected)
{
	auto_free char *copy = mem_strdup(text);

	table_tame(copy);
	assert_string_equal(copy, expected);
}

static void what_steers_a_terminal_is_replaced(void **state)
{
	(void)state;
	expect_tamed("plain text", "plain text");
	expect_tamed("\033[2J\a\r\n\x7f", "?[2J????");
	expect_tamed("\xc2\x9b"
		     "2J",
		"??2J");
	expect_tamed("a\xe2\x80\xae"
		     "b\xe2\x81\xa6"
		     "c\xe2\x80\xa8",
		"a???b???c???");
}

static void what_is_only_text_stays(void **state)
{
	static const char *const texts[] = {"\xc2\xa0", "\xc5\xbelu\xc5\xa5", "\xe2\x80\x93",
		"\xe2\x86\x92", "\xe2\x81\xa0", "\xf0\x9f\x98\x80", "\xe2\x80", "\xc2", "\xe2"};

	(void)state;
	for (size_t i = 0; i < array_len(texts); i++)
		expect_tamed(texts[i], texts[i]);
}

static void json_says_the_same_without_steering_the_terminal(void **state)
{
	static const char raw[] = "\033[2J\x7f\xc2\x9b\xe2\x80\xae\xc3\xbc\n";
	json_auto_t *document = json_pack("{s:s}", raw, raw);
	auto_free char *text = cli_dump_json(document, JSON_INDENT(2));
	json_auto_t *again = json_loads(text, 0, NULL);
	size_t len;

	(void)state;
	assert_non_null(again);
	assert_true(json_equal(document, again));
	for (const char *at = text; *at; at += len) {
		unsigned code = table_control(at, &len);

		assert_true(code == 0 || code == '\n');
	}
	assert_non_null(strstr(text, "\\u007f\\u009b\\u202e\xc3\xbc"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_steers_a_terminal_is_replaced),
		cmocka_unit_test(what_is_only_text_stays),
		cmocka_unit_test(json_says_the_same_without_steering_the_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
