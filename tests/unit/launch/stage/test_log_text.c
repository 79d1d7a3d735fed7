/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "launch/stage/log_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void words_of_programs_become_text(void **state)
{
	static const struct {
		const char *said, *text;
	} cases[] = {
		{"plain", "plain"},
		{"grün ➜ 日本 🎉", "grün ➜ 日本 🎉"},
		{"\x1b[1m\x1b[38;5;10mVITE\x1b[39m\x1b[22m ready", "VITE ready"},
		{"\x1b]0;title\adone", "done"},
		{"\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", "link"},
		{"a\x1b[2Kb\x1b=c\x1b", "abc"},
		{"a\tb\x01\x7f", "a b??"},
		{"bad \xff\xc3(\xc0\xaf\xed\xa0\x80", "bad ?"
						      "?(?????"},
		{"\xf4\x90\x80\x80", "????"},
		{"cut gr\xc3", "cut gr"},
		{"cut \xf0\x9f\x8e", "cut "},
		{"\xc2\x9b"
		 "31m \xe2\x80\xae",
			"?31m ?"},
		{"\x1b[", ""},
		{"\x1b]never ends", ""},
		{"", ""},
	};

	(void)state;
	for (size_t i = 0; i < array_len(cases); i++) {
		char text[64];

		snprintf(text, sizeof(text), "%s", cases[i].said);
		log_text_clean(text);
		assert_string_equal(text, cases[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_of_programs_become_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
