/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "wire/wall.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void every_wall_has_a_name_of_its_own(void **state)
{
	(void)state;
	for (int i = 0; i < WALL_COUNT; i++) {
		assert_non_null(wall_name(i));
		for (int j = 0; j < i; j++)
			assert_string_not_equal(wall_name(i), wall_name(j));
	}
}

static void a_list_names_those_that_may_be_missing(void **state)
{
	struct err err;
	uint32_t walls = 99;

	(void)state;
	assert_int_equal(wall_parse_list("", &walls, &err), 0);
	assert_int_equal(walls, 0);
	assert_int_equal(wall_parse_list("memory,seccomp", &walls, &err), 0);
	assert_int_equal(walls, 1u << WALL_MEMORY | 1u << WALL_SECCOMP);
}

static void nothing_else_may_be_missing(void **state)
{
	static const char *const lists[] = {"user_namespace", "namespaces", "network", "filesystem",
		"capabilities", "no_new_privs", "all", "memory;cpu", "mem", "memory,,cpu", ",",
		"memory, cpu", "SECCOMP", "cpu,agent"};
	struct err err;
	uint32_t walls = 99;

	(void)state;
	for (size_t i = 0; i < array_len(lists); i++) {
		if (wall_parse_list(lists[i], &walls, &err) >= 0)
			fail_msg("\"%s\" was taken", lists[i]);
		assert_int_equal(err.kind, ERR_INVALID);
		assert_int_equal(walls, 99);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_wall_has_a_name_of_its_own),
		cmocka_unit_test(a_list_names_those_that_may_be_missing),
		cmocka_unit_test(nothing_else_may_be_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
