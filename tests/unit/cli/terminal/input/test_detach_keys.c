/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/terminal/input/detach_keys.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Types text in pieces; what was passed on, and whether the keys were found. */
static void expect(const char *typed, size_t piece, const char *passed, bool found)
{
	struct buf out = BUF_INIT(256);
	struct detach_keys keys = {0};
	size_t len = strlen(typed);
	bool has_found = false;
	char *text;

	for (size_t at = 0; at < len && !has_found; at += piece) {
		size_t n = len - at < piece ? len - at : piece;

		has_found = detach_keys_filter(&keys, (const uint8_t *)typed + at, n, &out);
	}
	text = buf_take_str(&out);
	assert_string_equal(text, passed);
	assert_int_equal(has_found, found);
	free(text);
}

static void expect_for_every_split(const char *typed, const char *passed, bool found)
{
	for (size_t piece = 1; piece <= strlen(typed); piece++)
		expect(typed, piece, passed, found);
}

static void the_keys_are_found_however_they_are_split(void **state)
{
	(void)state;
	expect_for_every_split("\x10\x11", "", true);
	expect_for_every_split("ls\r\x10\x11", "ls\r", true);
	expect_for_every_split("a\x10\x10\x11", "a\x10", true);
	expect_for_every_split("a\x10\x11never", "a", true);
}

static void what_is_not_the_keys_is_passed_on_whole(void **state)
{
	(void)state;
	expect_for_every_split("plain \xc5\xbe", "plain \xc5\xbe", false);
	expect_for_every_split("\x11\x10x", "\x11\x10x", false);
	expect_for_every_split("\x10\x10\x10y\x11", "\x10\x10\x10y\x11", false);
}

static void a_key_that_is_held_back_can_be_let_go(void **state)
{
	struct buf out = BUF_INIT(16);
	struct detach_keys keys = {0};

	(void)state;
	assert_false(detach_keys_filter(&keys, (const uint8_t *)"\x10", 1, &out));
	assert_true(keys.is_holding);
	assert_int_equal(out.len, 0);
	detach_keys_release(&keys, &out);
	detach_keys_release(&keys, &out);
	assert_false(keys.is_holding);
	assert_int_equal(out.len, 1);
	assert_false(detach_keys_filter(&keys, (const uint8_t *)"\x11", 1, &out));
	assert_memory_equal(out.data, "\x10\x11", 2);
	buf_fini(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_keys_are_found_however_they_are_split),
		cmocka_unit_test(what_is_not_the_keys_is_passed_on_whole),
		cmocka_unit_test(a_key_that_is_held_back_can_be_let_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
