/* SPDX-License-Identifier: Apache-2.0 */
/* Names of processes, and which failures are waited out. */
#include "cli/process_ref.h"
#include "cli/terminal/process/reconnect.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct err err;

static void what_is_no_name_never_reaches_a_path(void **state)
{
	static const char *const bad[] = {
		"", "p7/stdin", "../p7", "p7?x", "P7", "p 7", "-1", "p12345678901234567890123"};
	struct process_ref ref;

	(void)state;
	for (size_t i = 0; i < array_len(bad); i++) {
		assert_true(process_ref_find(
				    NULL, "01k9aaaaaaaaaaaaaaaaaaaaaa", bad[i], &ref, &err) < 0);
		assert_int_equal(err.kind, ERR_INVALID);
	}
}

static void a_name_and_a_number_become_a_path(void **state)
{
	struct process_ref ref;
	char *path;

	(void)state;
	assert_int_equal(process_ref_find(NULL, "01k9aaaaaaaaaaaaaaaaaaaaaa", "p7", &ref, &err), 0);
	path = process_ref_path(&ref, "/wait");
	assert_string_equal(path, "/v1/sandboxes/01k9aaaaaaaaaaaaaaaaaaaaaa/processes/p7/wait");
	free(path);
	assert_int_equal(
		process_ref_find(NULL, "01k9aaaaaaaaaaaaaaaaaaaaaa", "1234", &ref, &err), 0);
	assert_string_equal(ref.process, "1234");
}

static void a_name_that_the_daemon_made_up_is_checked_too(void **state)
{
	json_t *good = json_pack("{s:s}", "id", "p8");
	json_t *bad = json_pack("{s:s}", "id", "p8/../../x");
	struct process_ref ref = {.process = "p1"};

	(void)state;
	assert_true(process_ref_name(bad, &ref, &err) < 0);
	assert_true(process_ref_name(NULL, &ref, &err) < 0);
	assert_string_equal(ref.process, "p1");
	assert_int_equal(process_ref_name(good, &ref, &err), 0);
	assert_string_equal(ref.process, "p8");
	json_decref(good);
	json_decref(bad);
}

static void only_what_passes_is_waited_for(void **state)
{
	(void)state;
	err_explain(&err, ERR_UNAVAILABLE, "connection_lost", NULL, "x");
	assert_true(reconnect_is_for(&err));
	err_explain(&err, ERR_UNAVAILABLE, "unreachable", NULL, "x");
	assert_true(reconnect_is_for(&err));
	err_explain(&err, ERR_UNAVAILABLE, "interrupted", NULL, "x");
	assert_false(reconnect_is_for(&err));
	err_set(&err, ERR_NOT_FOUND, "x");
	assert_false(reconnect_is_for(&err));
	err_set(&err, ERR_INTERNAL, "x");
	assert_false(reconnect_is_for(&err));
}

static void reconnect_begins_with_a_connection_and_grows(void **state)
{
	struct reconnect reconnect = {0};
	int last_ms;

	(void)state;
	assert_int_equal(reconnect_delay_ms(&reconnect), 0);
	reconnect_connected(&reconnect);
	last_ms = reconnect_delay_ms(&reconnect);
	assert_true(last_ms > 0);
	for (int i = 0; i < 8; i++) {
		int delay_ms = reconnect_delay_ms(&reconnect);

		assert_in_range(delay_ms, last_ms, 1000);
		last_ms = delay_ms;
		/* A connection that was lost at once does not make it fresh. */
		reconnect_connected(&reconnect);
	}
	assert_int_equal(last_ms, 1000);
	reconnect.deadline_ms = 1;
	assert_int_equal(reconnect_delay_ms(&reconnect), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_no_name_never_reaches_a_path),
		cmocka_unit_test(a_name_and_a_number_become_a_path),
		cmocka_unit_test(a_name_that_the_daemon_made_up_is_checked_too),
		cmocka_unit_test(only_what_passes_is_waited_for),
		cmocka_unit_test(reconnect_begins_with_a_connection_and_grows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
