/* SPDX-License-Identifier: Apache-2.0 */
#include "model/access/scope.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void names_and_bits_are_the_same_set(void **state)
{
	char text[SCOPE_TEXT_MAX];
	unsigned all = 0;

	(void)state;
	for (size_t i = 0; i < scope_count; i++) {
		const struct scope_row *row = &scope_table[i];

		assert_int_equal(all & row->scope, 0);
		all |= row->scope;
		assert_int_equal(scope_find(row->name, strlen(row->name)), row->scope);
		assert_true(strlen(row->meaning) > 10);
	}
	assert_int_equal(all, SCOPE_ORDINARY | SCOPE_ADMIN);
	scope_format(all, text);
	assert_int_equal(scope_parse(text), all);
	scope_format(0, text);
	assert_string_equal(text, "");
}

static void what_is_no_name_gives_nothing(void **state)
{
	(void)state;
	assert_int_equal(scope_parse(""), 0);
	assert_int_equal(scope_parse("  "), 0);
	assert_int_equal(scope_parse("rea reads READ admin,read * openid"), 0);
	assert_int_equal(scope_parse(" openid  read profile run "), SCOPE_READ | SCOPE_RUN);
}

static void admin_includes_all_and_nothing_else_includes_another(void **state)
{
	(void)state;
	for (size_t i = 0; i < scope_count; i++) {
		for (size_t j = 0; j < scope_count; j++)
			assert_int_equal(scope_allows(scope_table[i].scope, scope_table[j].scope),
				i == j || scope_table[i].scope == SCOPE_ADMIN);
		assert_false(scope_allows(0, scope_table[i].scope));
	}
	assert_false(scope_allows(SCOPE_ORDINARY, SCOPE_ADMIN));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_and_bits_are_the_same_set),
		cmocka_unit_test(what_is_no_name_gives_nothing),
		cmocka_unit_test(admin_includes_all_and_nothing_else_includes_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
