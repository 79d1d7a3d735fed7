/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/rootfs/cpuinfo.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define REST   "model name\t: Fast\nsiblings\t: 4\ncpu cores\t: 2\nflags\t\t: a b\n\n"
#define X86(n) "processor\t: " #n "\n" REST

static void assert_cut(const char *host, unsigned count, const char *expected)
{
	FILE *in = fmemopen((void *)host, strlen(host), "r");
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	assert_int_equal(cpuinfo_cut(in, out, count), 0);
	fclose(in);
	fclose(out);
	assert_string_equal(text, expected);
	free(text);
}

static void as_many_processors_are_left_as_were_asked_for(void **state)
{
	(void)state;
	assert_cut(X86(0) X86(1) X86(2) X86(3), 1,
		"processor\t: 0\nmodel name\t: Fast\nsiblings\t: 1\ncpu cores\t: 1\n"
		"flags\t\t: a b\n\n");
	assert_cut(X86(0) X86(1) X86(2) X86(3), 3,
		"processor\t: 0\nmodel name\t: Fast\nsiblings\t: 3\ncpu cores\t: 2\n"
		"flags\t\t: a b\n\n"
		"processor\t: 1\nmodel name\t: Fast\nsiblings\t: 3\ncpu cores\t: 2\n"
		"flags\t\t: a b\n\n"
		"processor\t: 2\nmodel name\t: Fast\nsiblings\t: 3\ncpu cores\t: 2\n"
		"flags\t\t: a b\n\n");
}

static void all_of_them_are_the_file_as_it_was(void **state)
{
	(void)state;
	assert_cut(X86(0) X86(1) X86(2) X86(3), 4, X86(0) X86(1) X86(2) X86(3));
	assert_cut(X86(0), 9, X86(0));
	assert_cut("", 1, "");
}

static void what_is_about_the_board_stays(void **state)
{
	(void)state;
	assert_cut("processor\t: 0\nBogoMIPS\t: 1\n\nprocessor\t: 1\nBogoMIPS\t: 1\n\n"
		   "Hardware\t: Board\nRevision\t: 1\n",
		1, "processor\t: 0\nBogoMIPS\t: 1\n\nHardware\t: Board\nRevision\t: 1\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_many_processors_are_left_as_were_asked_for),
		cmocka_unit_test(all_of_them_are_the_file_as_it_was),
		cmocka_unit_test(what_is_about_the_board_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
