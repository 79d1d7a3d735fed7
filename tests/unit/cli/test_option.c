/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/option.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct values {
	bool flag;
	bool quiet;
	const char *text;
	const char *mode;
	struct option_list list;
	struct option_number number;
	struct option_number seconds;
	struct option_number limit;
	bool both;
};

#define AT(field) offsetof(struct values, field)

static const struct option options[] = {
	{OPTION_FLAG, 'f', "flag", NULL, "", AT(flag)},
	{OPTION_FLAG, 'q', "quiet", NULL, "", AT(quiet)},
	{OPTION_TEXT, 't', "text", "TEXT", "", AT(text)},
	{OPTION_CHOICE, 0, "mode", "MODE", "", AT(mode), "none allowlist internet"},
	{OPTION_LIST, 'e', "env", "K=V", "", AT(list)},
	{OPTION_NUMBER, 'n', "number", "N", "", AT(number)},
	{OPTION_SECONDS, 0, "lifetime", "TIME", "", AT(seconds)},
	{OPTION_LIMIT, 0, "timeout", "TIME", "", AT(limit)},
	{OPTION_FLAG, 0, "both", NULL, "", AT(both), .pair = "tq"},
	{OPTION_END},
};

static struct values v;
static struct err err;
static int operands;

static int parse(int verbatim_after, char **argv)
{
	struct option_binding binding = {options, &v};
	int argc = 0;

	while (argv[argc])
		argc++;
	v = (struct values){0};
	return option_parse(&binding, 1, verbatim_after, argc, argv, &operands, &err);
}

static void release(void)
{
	option_release(&(struct option_binding){options, &v}, 1);
}

#define ARGV(...) ((char **)(const char *[]){__VA_ARGS__, NULL})

static void values_come_in_every_spelling(void **state)
{
	(void)state;
	assert_int_equal(
		parse(OPTION_ANYWHERE, ARGV("-fqt", "x", "-ea=1", "-e", "b=2", "--env=c=3", "--env",
					       "d", "--mode", "none", "op", "--number=7")),
		0);
	assert_true(v.flag && v.quiet);
	assert_string_equal(v.text, "x");
	assert_int_equal(v.list.count, 4);
	assert_string_equal(v.list.items[0], "a=1");
	assert_string_equal(v.list.items[2], "c=3");
	assert_string_equal(v.mode, "none");
	assert_int_equal(v.number.value, 7);
	assert_int_equal(operands, 1);
	release();
	assert_null(v.list.items);
}

static void a_bare_duration_counts_seconds(void **state)
{
	(void)state;
	assert_int_equal(parse(OPTION_ANYWHERE, ARGV("--lifetime", "5", "--timeout", "5")), 0);
	assert_int_equal(v.seconds.value, 5000);
	assert_int_equal(v.limit.value, 5000);
	assert_int_equal(parse(OPTION_ANYWHERE, ARGV("--lifetime", "2h", "--timeout", "10s")), 0);
	assert_int_equal(v.seconds.value, 7200000);
	assert_int_equal(v.limit.value, 10000);
}

static void a_limit_may_be_never(void **state)
{
	(void)state;
	assert_int_equal(parse(OPTION_ANYWHERE, ARGV("--timeout", "never")), 0);
	assert_true(v.limit.is_set && v.limit.is_never);
	assert_true(parse(OPTION_ANYWHERE, ARGV("--lifetime", "never")) < 0);
}

/* -t alone takes a text, and -q alone is another flag. */
static void two_letters_together_may_be_one_flag(void **state)
{
	static const char *const spellings[] = {"-tq", "-qt"};

	(void)state;
	for (size_t i = 0; i < array_len(spellings); i++) {
		assert_int_equal(parse(OPTION_ANYWHERE, ARGV(spellings[i], "-t", "host")), 0);
		assert_true(v.both && !v.quiet);
		assert_string_equal(v.text, "host");
		assert_int_equal(operands, 0);
	}
	assert_int_equal(parse(OPTION_ANYWHERE, ARGV("-fqt", "x")), 0);
	assert_true(!v.both && v.quiet);
}

static void the_first_operand_too_many_ends_the_options(void **state)
{
	char **argv = ARGV("-f", "id", "-q", "cmd", "-t", "--", "x");

	(void)state;
	assert_int_equal(parse(1, argv), 0);
	assert_true(v.flag && v.quiet);
	assert_null(v.text);
	assert_int_equal(operands, 5);
	assert_string_equal(argv[0], "id");
	assert_string_equal(argv[1], "cmd");
	assert_string_equal(argv[2], "-t");
	assert_string_equal(argv[3], "--");
}

static void two_dashes_end_the_options_and_vanish(void **state)
{
	char **argv = ARGV("id", "--", "-q", "--", "-");

	(void)state;
	assert_int_equal(parse(1, argv), 0);
	assert_false(v.quiet);
	assert_int_equal(operands, 4);
	assert_string_equal(argv[1], "-q");
	assert_string_equal(argv[2], "--");
}

static void a_single_dash_is_an_operand(void **state)
{
	char **argv = ARGV("-", "a");

	(void)state;
	assert_int_equal(parse(OPTION_ANYWHERE, argv), 0);
	assert_int_equal(operands, 2);
	assert_string_equal(argv[0], "-");
}

static void bad_options_are_named(void **state)
{
	static char *const bad[][3] = {
		{(char *)"--nope", NULL},
		{(char *)"-z", NULL},
		{(char *)"--text", NULL},
		{(char *)"-t", NULL},
		{(char *)"--flag=1", NULL},
		{(char *)"--mode", (char *)"some", NULL},
		{(char *)"--mode", (char *)"non", NULL},
		{(char *)"--mode", (char *)"", NULL},
		{(char *)"-n", (char *)"-1", NULL},
		{(char *)"-n", (char *)"1x", NULL},
		{(char *)"-n", (char *)"99999999999999999999", NULL},
		{(char *)"--timeout", (char *)"5y", NULL},
	};

	(void)state;
	for (size_t i = 0; i < array_len(bad); i++) {
		char *argv[3] = {bad[i][0], bad[i][1], bad[i][2]};

		assert_true(parse(OPTION_ANYWHERE, argv) < 0);
		assert_int_equal(err.kind, ERR_INVALID);
		assert_non_null(strstr(err.message, bad[i][0][1] == '-' ? "--" : "-"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_come_in_every_spelling),
		cmocka_unit_test(a_bare_duration_counts_seconds),
		cmocka_unit_test(a_limit_may_be_never),
		cmocka_unit_test(two_letters_together_may_be_one_flag),
		cmocka_unit_test(the_first_operand_too_many_ends_the_options),
		cmocka_unit_test(two_dashes_end_the_options_and_vanish),
		cmocka_unit_test(a_single_dash_is_an_operand),
		cmocka_unit_test(bad_options_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
