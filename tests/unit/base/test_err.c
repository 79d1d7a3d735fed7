/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void every_kind_has_a_class_of_its_own(void **state)
{
	(void)state;
	for (int kind = ERR_INVALID; kind < ERR_KIND_COUNT; kind++) {
		const struct err_class *class = err_class(kind);

		assert_non_null(class->code);
		assert_true(strlen(class->code) < sizeof(((struct err *)0)->code));
		assert_in_range(class->http_status, 400, 599);
		assert_true(class->exit_code > 0 && class->exit_code < 128);
		assert_true(class->errnum > 0);
		for (int other = ERR_INVALID; other < kind; other++)
			assert_string_not_equal(class->code, err_class(other)->code);
	}
	assert_int_equal(err_class(ERR_NONE)->errnum, 0);
}

static void an_error_has_kind_code_and_message(void **state)
{
	struct err err;

	(void)state;
	memset(&err, 0xff, sizeof(err));
	assert_int_equal(err_set(&err, ERR_NOT_FOUND, "no %s %d", "thing", 5), -ENOENT);
	assert_int_equal(err.kind, ERR_NOT_FOUND);
	assert_string_equal(err.code, "not_found");
	assert_string_equal(err.message, "no thing 5");
	assert_string_equal(err.remedy, "");
	assert_int_equal(
		err_explain(&err, ERR_CONFLICT, "taken", "choose another", "it is taken"), -EEXIST);
	assert_string_equal(err.code, "taken");
	assert_string_equal(err.remedy, "choose another");
	assert_int_equal(err_explain(&err, ERR_CONFLICT, NULL, NULL, "it is taken"), -EEXIST);
	assert_string_equal(err.code, "conflict");
	assert_string_equal(err.remedy, "");
}

static void nobody_has_to_want_to_know(void **state)
{
	(void)state;
	assert_int_equal(err_set(NULL, ERR_TIMEOUT, "x"), -ETIMEDOUT);
	assert_int_equal(err_explain(NULL, ERR_RATE, "x", "y", "z"), -EAGAIN);
	assert_int_equal(err_from(NULL, -EXDEV, "x"), -EXDEV);
	err_prefix(NULL, "x");
}

static void a_system_call_s_failure_chooses_the_kind(void **state)
{
	static const struct {
		int errnum, kind;
	} cases[] = {{ENOSPC, ERR_NO_SPACE}, {EDQUOT, ERR_NO_SPACE}, {EAGAIN, ERR_UNAVAILABLE},
		{EMFILE, ERR_UNAVAILABLE}, {ENFILE, ERR_UNAVAILABLE}, {ENOMEM, ERR_UNAVAILABLE},
		{ETIMEDOUT, ERR_TIMEOUT}, {ENOENT, ERR_INTERNAL}, {EIO, ERR_INTERNAL},
		{EPERM, ERR_INTERNAL}};
	struct err err;

	(void)state;
	for (size_t i = 0; i < array_len(cases); i++) {
		errno = cases[i].errnum;
		assert_int_equal(err_sys(&err, "open %s", "x"), -cases[i].errnum);
		assert_int_equal(err.kind, cases[i].kind);
		assert_non_null(strstr(err.message, "open x: "));
		assert_non_null(strstr(err.message, strerror(cases[i].errnum)));
		assert_int_equal(err_from(&err, -cases[i].errnum, "open"), -cases[i].errnum);
		assert_int_equal(err.kind, cases[i].kind);
	}
}

static void a_message_too_long_loses_its_end(void **state)
{
	char huge[1000];
	struct err err;

	(void)state;
	memset(huge, 'x', sizeof(huge) - 1);
	huge[sizeof(huge) - 1] = '\0';
	err_explain(&err, ERR_INVALID, huge, huge, "begin %s", huge);
	assert_int_equal(strlen(err.code), sizeof(err.code) - 1);
	assert_int_equal(strlen(err.remedy), sizeof(err.remedy) - 1);
	assert_int_equal(strlen(err.message), sizeof(err.message) - 1);
	assert_int_equal(strncmp(err.message, "begin xxx", 9), 0);
	errno = EIO;
	err_sys(&err, "%s", huge);
	assert_int_equal(strlen(err.message), sizeof(err.message) - 1);
	err_prefix(&err, "prefix");
	assert_int_equal(strncmp(err.message, "prefix: xxx", 11), 0);
	assert_int_equal(strlen(err.message), sizeof(err.message) - 1);
}

static void a_prefix_keeps_the_rest(void **state)
{
	struct err err;

	(void)state;
	err_explain(&err, ERR_RATE, "code", "remedy", "too many");
	err_prefix(&err, "sandbox %d", 7);
	assert_string_equal(err.message, "sandbox 7: too many");
	assert_string_equal(err.code, "code");
	assert_string_equal(err.remedy, "remedy");
	assert_int_equal(err.kind, ERR_RATE);
}

/* Counts the characters of two bytes behind an optional first one, and fails if half of one is there. */
static void is_whole(const char *text, size_t first)
{
	size_t len = strlen(text) - 3;

	assert_true(len >= 300);
	assert_string_equal(text + len, "...");
	assert_int_equal((len - first) % 2, 0);
	assert_memory_equal(text + len - 2, "\u00e4", 2);
}

static void a_message_too_long_loses_no_half_of_a_character(void **state)
{
	char long_text[2 * sizeof(((struct err *)0)->message) + 1] = "";
	struct err err;

	(void)state;
	while (strlen(long_text) < sizeof(long_text) - 2)
		strcat(long_text, "\u00e4");
	for (size_t first = 0; first < 2; first++) {
		const char *before = first ? "x" : "";

		err_set(&err, ERR_INVALID, "%s%s", before, long_text);
		is_whole(err.message, first);
		err_set(&err, ERR_INVALID, "%s", long_text);
		err_prefix(&err, "%s", before);
		is_whole(err.message, first + 2);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_has_a_class_of_its_own),
		cmocka_unit_test(an_error_has_kind_code_and_message),
		cmocka_unit_test(nobody_has_to_want_to_know),
		cmocka_unit_test(a_system_call_s_failure_chooses_the_kind),
		cmocka_unit_test(a_message_too_long_loses_its_end),
		cmocka_unit_test(a_message_too_long_loses_no_half_of_a_character),
		cmocka_unit_test(a_prefix_keeps_the_rest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
