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

static void a_word_is_replaced_as_a_whole_and_if_there_is_room(void **state)
{
	char text[32] = "sandlot resume ID, IDS or ID";

	(void)state;
	hint_replace(text, sizeof(text), "ID", "web");
	assert_string_equal(text, "sandlot resume web, IDS or web");
	hint_replace(text, sizeof(text), "web", "a-name-that-is-long");
	assert_string_equal(text, "sandlot resume web, IDS or web");
}

static void a_field_becomes_the_option_that_stands_for_it(void **state)
{
	char message[200];

	(void)state;
	hint_from_message(
		"field resources.memory must be from 16 MiB to 1 PiB", message, sizeof(message));
	assert_string_equal(message, "--memory must be from 16 MiB to 1 PiB");
	hint_from_message("field network.allow has an entry", message, sizeof(message));
	assert_string_equal(message, "--allow has an entry");
	hint_from_message("field resources is no object", message, sizeof(message));
	assert_string_equal(message, "field resources is no object");
	hint_from_remedy(
		"run commands with checkpoint: true, or restore a snapshot", hint, sizeof(hint));
	assert_string_equal(
		hint, "run commands with \"sandlot exec --checkpoint\", or restore a snapshot");
	hint_from_remedy("list the templates that there are", hint, sizeof(hint));
	assert_string_equal(hint, "\"sandlot template ls\" lists those there are");
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
		cmocka_unit_test(a_word_is_replaced_as_a_whole_and_if_there_is_room),
		cmocka_unit_test(a_field_becomes_the_option_that_stands_for_it),
		cmocka_unit_test(a_route_without_a_command_is_not_shown),
		cmocka_unit_test(a_long_remedy_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
