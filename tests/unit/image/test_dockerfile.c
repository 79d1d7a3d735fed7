/* SPDX-License-Identifier: Apache-2.0 */
#include "image/dockerfile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void assert_instruction(const struct dockerfile *file, size_t index, unsigned line,
	const char *name, const char *text)
{
	assert_true(index < file->count);
	assert_int_equal(file->list[index].line, line);
	assert_string_equal(file->list[index].name, name);
	assert_string_equal(file->list[index].text, text);
}

static void lines_are_joined_and_comments_skipped(void **state)
{
	struct dockerfile file;
	struct err err;

	(void)state;
	assert_int_equal(dockerfile_split("# syntax=docker/dockerfile:1\n"
					  "\n"
					  "from  debian12 \r\n"
					  "  # a comment\n"
					  "RUN apt-get update && \\\n"
					  "  # of the next line\n"
					  "\n"
					  "    apt-get install x \\  \n"
					  "    # the last\n"
					  "\tcurl\n"
					  "CMD # no comment\\\n",
				 &file, &err),
		0);
	assert_int_equal(file.count, 3);
	assert_instruction(&file, 0, 3, "FROM", "debian12");
	assert_instruction(&file, 1, 5, "RUN", "apt-get update && apt-get install x curl");
	assert_instruction(&file, 2, 11, "CMD", "# no comment");
	dockerfile_fini(&file);
}

static void what_is_not_supported_is_refused_with_its_line(void **state)
{
	static const struct {
		const char *text, *message;
	} bad[] = {
		{"# escape=`\nFROM x\n",
			"line 1: an escape character other than \\ is not supported"},
		{"FROM x\n\nRUN <<EOF\necho\nEOF\n",
			"line 3: here-documents (<<) are not supported"},
		{"FROM x\nRUN cat <<-'E' > f\n", "line 2: here-documents (<<) are not supported"},
		{"FROM x\nRUN a \\\n  <<E\n", "line 2: here-documents (<<) are not supported"},
		{"FROM x\nAVERYLONGINSTRUCTION y\n",
			"line 2: AVERYLONGINSTRUCTION y is no instruction"},
	};
	struct dockerfile file;
	struct err err;

	(void)state;
	for (size_t i = 0; i < array_len(bad); i++) {
		assert_true(dockerfile_split(bad[i].text, &file, &err) < 0);
		assert_string_equal(err.message, bad[i].message);
	}
	/* Neither a shift nor a here-string is one. */
	assert_int_equal(dockerfile_split("RUN echo $((1<<X)) && cat <<<word\n", &file, &err), 0);
	dockerfile_fini(&file);
}

static void a_text_that_is_too_large_is_refused(void **state)
{
	auto_free char *text = mem_new(DOCKERFILE_MAX + 2);
	struct dockerfile file;
	struct err err;

	(void)state;
	memset(text, 'x', DOCKERFILE_MAX + 1);
	assert_true(dockerfile_split(text, &file, &err) < 0);
	assert_int_equal(err.kind, ERR_TOO_LARGE);
	text[DOCKERFILE_MAX] = '\0';
	text[3] = ' ';
	assert_true(dockerfile_split(text, &file, &err) < 0);
	assert_string_equal(err.message, "line 1: the instruction is too long");
	for (size_t i = 0; i < DOCKERFILE_MAX; i++)
		text[i] = i % 2 ? '\n' : 'a';
	assert_true(dockerfile_split(text, &file, &err) < 0);
	assert_string_equal(err.message, "line 257: there are too many instructions");
}

static const char *find(void *arg, const char *name)
{
	(void)arg;
	if (strcmp(name, "A") == 0)
		return "one two";
	return strcmp(name, "EMPTY") == 0 ? "" : NULL;
}

static const struct dockerfile_variables variables = {.find = find};

static void variables_and_quotes_are_replaced(void **state)
{
	static const struct {
		const char *text, *expanded;
	} good[] = {
		{"x$A", "xone two"},
		{"${A}y", "one twoy"},
		{"$NONE.", "."},
		{"${NONE:-other}", "other"},
		{"${EMPTY:-other}", "other"},
		{"${A:-other}", "one two"},
		{"${A:+set}", "set"},
		{"${NONE:+set}", ""},
		{"${NONE:-${EMPTY:-$A}}", "one two"},
		{"\\$A", "$A"},
		{"'$A'", "$A"},
		{"\"$A \\\" \\$A \\n\"", "one two \" $A \\n"},
		{"a$", "a$"},
		{"$ 1", "$ 1"},
		{"tail\\", "tail\\"},
	};
	static const char *const bad[] = {"${", "${}", "${A", "${A-x}", "${A:?x}", "'", "\"",
		"\"$A", "${A:-${A:-${A:-${A:-${A:-${A:-${A:-${A:-${A:-}}}}}}}}}"};
	struct err err;

	(void)state;
	for (size_t i = 0; i < array_len(good); i++) {
		auto_free char *text = NULL;

		assert_int_equal(dockerfile_expand(good[i].text, &variables, &text, &err), 0);
		assert_string_equal(text, good[i].expanded);
	}
	for (size_t i = 0; i < array_len(bad); i++) {
		char *text = NULL;

		assert_true(dockerfile_expand(bad[i], &variables, &text, &err) < 0);
		assert_null(text);
	}
}

static void values_of_variables_are_not_split(void **state)
{
	json_t *words = NULL, *expected;
	struct err err;

	(void)state;
	assert_int_equal(
		dockerfile_words("  a=$A\t'b c'\"d\" \"\" e\\ f ", &variables, &words, &err), 0);
	expected = json_pack("[s, s, s, s]", "a=one two", "b cd", "", "e f");
	assert_true(json_equal(words, expected));
	json_decref(expected);
	json_decref(words);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_joined_and_comments_skipped),
		cmocka_unit_test(what_is_not_supported_is_refused_with_its_line),
		cmocka_unit_test(a_text_that_is_too_large_is_refused),
		cmocka_unit_test(variables_and_quotes_are_replaced),
		cmocka_unit_test(values_of_variables_are_not_split),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
