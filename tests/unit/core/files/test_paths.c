/* SPDX-License-Identifier: Apache-2.0 */
#include "core/files/paths.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void assert_clean(const char *text, const char *plain)
{
	char path[AGENT_PATH_MAX];
	struct err err = {0};

	if (paths_clean(text, path, &err) < 0)
		fail_msg("%s: %s", text, err.message);
	assert_string_equal(path, plain);
}

static void assert_refused(const char *text, const char *code)
{
	char path[AGENT_PATH_MAX];
	struct err err = {0};

	if (paths_clean(text, path, &err) == 0)
		fail_msg("%s is accepted as %s", text, path);
	assert_int_equal(err.kind, ERR_INVALID);
	assert_string_equal(err.code, code);
}

static void paths_are_brought_into_their_plain_form(void **state)
{
	(void)state;
	assert_clean("/", "/");
	assert_clean("//", "/");
	assert_clean("/.", "/");
	assert_clean("/./././", "/");
	assert_clean("/a", "/a");
	assert_clean("/a/", "/a");
	assert_clean("//a///b//", "/a/b");
	assert_clean("/a/./b/.", "/a/b");
	assert_clean("/.hidden/..b/c..", "/.hidden/..b/c..");
	assert_clean("/...", "/...");
	assert_clean("/a b/\xff\n", "/a b/\xff\n"); /* any bytes but these two */
}

static void what_is_not_plain_to_see_is_refused(void **state)
{
	static const char *const bad[] = {"", "a", "./a", "../a", "/..", "/../", "/a/..", "/a/../b",
		"/a/b/../../c", "//..", "/./.."};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_refused(bad[i], "invalid_path");
}

/* "/x/x/…", of so many bytes. */
static char *long_path(size_t len)
{
	char *text = mem_new(len + 1);

	for (size_t i = 0; i < len; i++)
		text[i] = i % 2 ? 'x' : '/';
	if (len % 2) /* ends with a slash: make the last part longer instead */
		text[len - 1] = 'x';
	return text;
}

static void a_path_has_so_many_bytes_and_no_more(void **state)
{
	char *longest = long_path(AGENT_PATH_MAX - 1), *longer = long_path(AGENT_PATH_MAX);
	char *slashes = mem_new(3 * AGENT_PATH_MAX);

	(void)state;
	assert_clean(longest, longest);
	assert_refused(longer, "path_too_long");
	/* What counts is the plain form. */
	memset(slashes, '/', 2 * AGENT_PATH_MAX);
	slashes[2 * AGENT_PATH_MAX] = 'x';
	assert_clean(slashes, "/x");
	free(longest);
	free(longer);
	free(slashes);
}

static void a_part_has_so_many_bytes_and_no_more(void **state)
{
	char text[NAME_MAX + 3] = "/";

	(void)state;
	memset(text + 1, 'a', NAME_MAX);
	assert_clean(text, text);
	text[NAME_MAX + 1] = 'a';
	assert_refused(text, "path_too_long");
}

static void a_refusal_of_a_huge_path_keeps_its_message_short(void **state)
{
	char *text = mem_new(100001), path[AGENT_PATH_MAX];
	struct err err;

	(void)state;
	memset(text, 'a', 100000);
	memcpy(text, "/../", 4);
	assert_int_equal(paths_clean(text, path, &err), -EINVAL);
	assert_true(strlen(err.message) < sizeof(err.message));
	free(text);
}

static void names_of_entries_are_relative_and_stay(void **state)
{
	static const struct {
		const char *text, *plain;
	} good[] = {{"", ""}, {".", ""}, {"./", ""}, {"./a", "a"}, {"a//b/", "a/b"},
		{"a/./b", "a/b"}, {"..a", "..a"}};
	static const char *const bad[] = {
		"/", "/a", "..", "../a", "a/..", "a/../../b", "./..", "//a"};
	char name[AGENT_PATH_MAX];
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(paths_clean_entry(good[i].text, name, &err), 0);
		assert_string_equal(name, good[i].plain);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (paths_clean_entry(bad[i], name, &err) == 0)
			fail_msg("%s is accepted as %s", bad[i], name);
		assert_string_equal(err.code, "invalid_archive");
	}
}

static void the_longest_name_of_an_entry_fits(void **state)
{
	char *text = long_path(AGENT_PATH_MAX), name[AGENT_PATH_MAX];
	struct err err;

	(void)state;
	assert_int_equal(paths_clean_entry(text + 1, name, &err), 0);
	assert_int_equal(strlen(name), AGENT_PATH_MAX - 1);
	text[0] = 'y';
	assert_int_equal(paths_clean_entry(text, name, &err), -EINVAL);
	assert_string_equal(err.code, "path_too_long");
	free(text);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_are_brought_into_their_plain_form),
		cmocka_unit_test(what_is_not_plain_to_see_is_refused),
		cmocka_unit_test(a_path_has_so_many_bytes_and_no_more),
		cmocka_unit_test(a_part_has_so_many_bytes_and_no_more),
		cmocka_unit_test(a_refusal_of_a_huge_path_keeps_its_message_short),
		cmocka_unit_test(names_of_entries_are_relative_and_stay),
		cmocka_unit_test(the_longest_name_of_an_entry_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
