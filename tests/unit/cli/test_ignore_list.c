/* SPDX-License-Identifier: Apache-2.0 */
/* Which files beside a Dockerfile are sent. */
#include "cli/ignore_list.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void the_last_pattern_that_fits_counts(void **state)
{
	static const struct {
		const char *text, *name;
		bool has;
	} rows[] = {
		{NULL, "a", false},
		{"", "a", false},
		{"a", "a", true},
		{"a", "b/a", false},
		{"a", "a/b/c", true},
		{"/a/", "a/b", true},
		{"./a", "a", true},
		{"*.log", "x.log", true},
		{"*.log", "d/x.log", false},
		{"*/x.log", "d/x.log", true},
		{"*/x.log", "d/e/x.log", false},
		{"**/*.log", "x.log", true},
		{"**/*.log", "d/e/x.log", true},
		{"**/*.log", "d/e/x.logs", false},
		{"d/**", "d/e/f", true},
		{"d/**", "e/d", false},
		{"d/**/f", "d/f", true},
		{"d/**/f", "d/a/b/f", true},
		{"d/**/f", "d/a/b/g", false},
		{"**", "a/b", true},
		{"*\n!src", "src/a", false},
		{"*\n!src", "other/a", true},
		{"!src\n*", "src/a", true},
		{"*\n!src\nsrc/*.o", "src/a.o", true},
		{"# a\n\n a", "a", false},
		{"a \r\nb\r\n", "a", true},
		{"a \r\nb\r\n", "b", true},
		{"!", "a", false},
		{"/", "a", false},
	};

	(void)state;
	for (size_t i = 0; i < array_len(rows); i++) {
		if (ignore_list_has(rows[i].text, rows[i].name) != rows[i].has)
			fail_msg("%s of \"%s\"", rows[i].name, rows[i].text);
	}
}

static void a_directory_is_looked_through_if_something_may_be_wanted(void **state)
{
	(void)state;
	assert_false(ignore_list_takes_in(NULL));
	assert_false(ignore_list_takes_in("a!b\n#\n"));
	assert_true(ignore_list_takes_in("!a"));
	assert_true(ignore_list_takes_in("*\n!a"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_pattern_that_fits_counts),
		cmocka_unit_test(a_directory_is_looked_through_if_something_may_be_wanted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
