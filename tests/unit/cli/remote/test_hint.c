/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/remote/hint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static char hint[200];

static void a_route_becomes_the_command_that_stands_for_it(void **state)
{
	(void)state;
	hint_from_remedy("list yours with GET /v1/sandboxes", hint, sizeof(hint));
	assert_string_equal(hint, "list yours with \"sandlot ls\"");
	hint_from_remedy("list them with GET /v1/sandboxes/{id}/processes", hint, sizeof(hint));
	assert_string_equal(hint, "list them with \"sandlot ps -a ID\"");
	hint_from_remedy("choose another id, or none", hint, sizeof(hint));
	assert_string_equal(hint, "choose another id, or none");
}

static void a_route_without_a_command_is_not_shown(void **state)
{
	(void)state;
	hint_from_remedy("use TRACE /v1/sandboxes/{id}/nothing", hint, sizeof(hint));
	assert_string_equal(hint, "");
}

static void a_long_remedy_is_cut(void **state)
{
	char remedy[8192];

	(void)state;
	memset(remedy, 'a', sizeof(remedy));
	remedy[300] = '\0';
	hint_from_remedy(remedy, hint, sizeof(hint));
	assert_int_equal(strlen(hint), sizeof(hint) - 1);
	remedy[300] = 'a';
	remedy[sizeof(remedy) - 1] = '\0';
	hint_from_remedy(remedy, hint, sizeof(hint));
	assert_string_equal(hint, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_route_becomes_the_command_that_stands_for_it),
		cmocka_unit_test(a_route_without_a_command_is_not_shown),
		cmocka_unit_test(a_long_remedy_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
