/* SPDX-License-Identifier: Apache-2.0 */
/* Old output of terminals: questions go, everything else stays, and no byte more or less. */
#include "api/process/replay_filter.h"
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Filters a text that is cut into pieces; the result is as long, and is returned without NULs. */
static const char *filter(const char *text, size_t piece)
{
	static uint8_t out[8192];
	static char shown[8192];
	struct replay_filter state = {0};
	size_t len = strlen(text), done = 0, count = 0;

	for (size_t at = 0; at < len; at += piece)
		done += replay_filter_run(&state, (const uint8_t *)text + at,
			len - at < piece ? len - at : piece, out + done);
	done += replay_filter_finish(&state, out + done);
	assert_int_equal(done, len);
	for (size_t i = 0; i < done; i++) {
		if (out[i])
			shown[count++] = (char)out[i];
	}
	shown[count] = '\0';
	return shown;
}

static void questions_are_taken_out(void **state)
{
	static const char *const questions[] = {
		"\033[c",
		"\033[0c",
		"\033[>c",
		"\033[>0c",
		"\033[=c",
		"\033Z",
		"\005", /* who are you */
		"\033[5n",
		"\033[6n",
		"\033[?6n",
		"\033[?15n",
		"\033[?996n", /* how, where */
		"\033[x",
		"\033[>q",
		"\033[>0q",
		"\033[?u",
		"\033[?4m",
		"\033[?1;1;0S",
		"\033[?2026$p",
		"\033[4$p",
		"\033[1$w",
		"\033[1;1;1;1;1;1*y",
		"\033[&u",
		"\033[11t",
		"\033[13t",
		"\033[14;2t",
		"\033[16t",
		"\033[18t",
		"\033[21t",
		"\033]10;?\007",
		"\033]11;?\033\\",
		"\033]4;1;?\007",
		"\033]4;1;?;2;?\033\\",
		"\033]52;c;?\007",
		"\033]52;c;aGVsbG8=\007",
		"\033]50;?\033\\",
		"\033]21;cursor=?\033\\",
		"\033]1337;ReportCellSize\007",
		"\033P+q544e\033\\",
		"\033P$qm\033\\",
		"\033_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\033\\",
		"\302\2336n",
		"\302\220+q544e\302\234",
		"\302\23511;?\302\234",
		"\302\232",
	};

	(void)state;
	for (size_t i = 0; i < array_len(questions); i++) {
		char text[128];

		snprintf(text, sizeof(text), "before%safter", questions[i]);
		for (size_t piece = 1; piece <= sizeof(text); piece += 3)
			if (strcmp(filter(text, piece), "beforeafter") != 0)
				fail_msg("question %zu in pieces of %zu", i, piece);
	}
}

static void everything_else_stays(void **state)
{
	static const char *const kept[] = {
		"plain text\r\n\twith lines\a",
		"\033[31mred\033[0m",
		"\033[2J\033[H",
		"\033[?1049h\033[?25l",
		"\033[?2004h\033[?1000h",
		"\033[>1u\033[=1;1u\033[<u",
		"\033[>4;2m",
		"\033[?17c",
		"\033[8;24;80t",
		"\033[22;0t\033[23;0t",
		"\033[4 q",
		"\033[!p",
		"\033[1\"q",
		"\033]0;what? a title\007",
		"\033]8;;http://example.org/?q=1\033\\link\033]8;;\033\\",
		"\033]10;#ffffff\007",
		"\033P0;1|17/ab\033\\",
		"\033Pq#0;2;0;0;0~\033\\",
		"\033(B\0337\0338\033=",
		"\303\251\302\240\302\265 \342\202\254",
		"\033c",
	};

	(void)state;
	for (size_t i = 0; i < array_len(kept); i++) {
		for (size_t piece = 1; piece < 40; piece += 4)
			if (strcmp(filter(kept[i], piece), kept[i]) != 0)
				fail_msg("text %zu in pieces of %zu", i, piece);
	}
}

static void a_sequence_that_is_cut_off_does_not_hide_the_next(void **state)
{
	(void)state;
	assert_string_equal(filter("\033]0;half\033[6nrest", 3), "\033]0;halfrest");
	assert_string_equal(filter("\033[1;\033[6nrest", 1), "\033[1;rest");
	assert_string_equal(filter("\033[6\0306nrest", 1), "\033[6\0306nrest");
	assert_string_equal(filter("\033P+q\033[6nrest", 2), "rest");
	assert_string_equal(filter("\033\033[6nrest", 1), "\033rest");
}

/* The live output that follows may complete it, and its answer is awaited. */
static void what_is_not_complete_at_the_end_is_passed_on(void **state)
{
	(void)state;
	assert_string_equal(filter("text\033[6", 1), "text\033[6");
	assert_string_equal(filter("text\033]11;?", 4), "text\033]11;?");
}

static void a_string_that_is_too_long_is_taken_out(void **state)
{
	char text[6000] = "\033]4";

	(void)state;
	while (strlen(text) < 5000)
		strcat(text, ";0;?");
	strcat(text, "\007rest");
	assert_string_equal(filter(text, 700), "rest");
	snprintf(text, sizeof(text), "\033[%02000d;1nrest", 6);
	assert_string_equal(filter(text, 100), "rest");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(questions_are_taken_out),
		cmocka_unit_test(everything_else_stays),
		cmocka_unit_test(a_sequence_that_is_cut_off_does_not_hide_the_next),
		cmocka_unit_test(what_is_not_complete_at_the_end_is_passed_on),
		cmocka_unit_test(a_string_that_is_too_long_is_taken_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
