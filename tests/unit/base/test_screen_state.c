/* SPDX-License-Identifier: Apache-2.0 */
/* What a program switched on in the terminal is undone, and nothing else. */
#include "base/screen_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* What undoes a text that comes in pieces of so many bytes. */
static const char *undo(const char *text, size_t piece)
{
	static char result[512];
	struct buf out = BUF_INIT(sizeof(result) - 1);
	struct screen_state state = {0};
	size_t len = strlen(text);

	for (size_t at = 0; at < len; at += piece)
		screen_state_feed(
			&state, (const uint8_t *)text + at, len - at < piece ? len - at : piece);
	screen_state_undo(&state, &out);
	assert_false(out.failed);
	if (out.len > 0)
		memcpy(result, out.data, out.len);
	result[out.len] = '\0';
	out.len = 0;
	screen_state_undo(&state, &out);
	assert_int_equal(out.len, 0); /* it is forgotten */
	buf_fini(&out);
	return result;
}

static void what_was_switched_is_undone(void **state)
{
	static const struct {
		const char *text, *undone;
	} cases[] = {
		{"\033[?1049h\033[2Jvim", "\033[?1049l"},
		{"\033[?1049h\033[?25l\033[?1000;1006h\033[?2004h",
			"\033[?1000l\033[?1006l\033[?2004l\033[?25h\033[?1049l"},
		{"\033[?1h\033=", "\033>\033[?1l"},
		{"\033[5;20rtext", "\0337\033[r\0338"},
		{"\033[31mred", "\033[m"},
		{"\033[4 q", "\033[0 q"},
		{"\033[>1u\033[>5u\033[>7u\033[<u", "\033[<2u"},
		{"\033[>4;2m", "\033[>4m"},
		{"\033]0;title\033\\\033[?2004h", "\033[?2004l"},
		{"\033]0;title\007\033[?2004h", "\033[?2004l"},
	};

	(void)state;
	for (size_t i = 0; i < array_len(cases); i++) {
		for (size_t piece = 1; piece < 12; piece++)
			assert_string_equal(undo(cases[i].text, piece), cases[i].undone);
	}
}

static void what_was_switched_is_switched_in_another_terminal(void **arg)
{
	static const char text[] = "\033[?25l\033[?1000;1006h\033=\033[?1049h\033[31mred\033[?1004h"
				   "\033[?1004l\033[?7l\033[?12";
	struct buf out = BUF_INIT(512);
	struct screen_state state = {0};
	auto_free char *redone = NULL;

	(void)arg;
	screen_state_feed(&state, (const uint8_t *)text, sizeof(text) - 1);
	screen_state_redo(&state, &out);
	redone = buf_take_str(&out);
	assert_string_equal(redone, "\033[?1049h\033[?25l\033[?7l\033[?1006h\033[?1000h\033=");
}

static void what_the_program_undid_itself_is_left_alone(void **state)
{
	static const char *const texts[] = {"", "plain text\r\n",
		"\033[?1049h\033[?25l\033[?25h\033[?1049l", "\033[1;31mred\033[0m",
		"\033[1mbold\033[m", "\033[5;20r\033[r", "\033[?1000h\033c",
		"\033]0;\033[?1049h\007"};

	(void)state;
	/* The last is a title with what is no sequence in it: ESC ends the string, and begins one. */
	for (size_t i = 0; i + 1 < array_len(texts); i++)
		assert_string_equal(undo(texts[i], 3), "");
	assert_string_equal(undo(texts[array_len(texts) - 1], 3), "\033[?1049l");
}

static void any_number_of_parameters_is_fine(void **state)
{
	char text[512] = "\033[?";

	(void)state;
	for (int i = 0; i < 100; i++)
		strcat(text, "9;");
	strcat(text, "1049h\033[?99999999999999999999h\033[?25l");
	assert_string_equal(undo(text, 7), "\033[?25h");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_switched_is_undone),
		cmocka_unit_test(what_was_switched_is_switched_in_another_terminal),
		cmocka_unit_test(what_the_program_undid_itself_is_left_alone),
		cmocka_unit_test(any_number_of_parameters_is_fine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
