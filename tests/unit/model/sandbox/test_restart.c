/* SPDX-License-Identifier: Apache-2.0 */
/* Whether and when a start command is run again (src/model/sandbox/restart.c). */
#include "model/sandbox/restart.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void pauses_double_up_to_a_minute(void **state)
{
	static const uint64_t expected_s[] = {1, 2, 4, 8, 16, 32, 60, 60, 60};
	uint32_t failures = 0;

	(void)state;
	for (size_t i = 0; i < array_len(expected_s); i++)
		assert_int_equal(restart_pause_ms(&failures, 100), expected_s[i] * 1000);
	assert_int_equal(failures, array_len(expected_s));
}

static void one_that_was_well_for_a_while_begins_anew(void **state)
{
	uint32_t failures = 5;

	(void)state;
	assert_int_equal(restart_pause_ms(&failures, RESTART_WELL_MS - 1), 32000);
	assert_int_equal(restart_pause_ms(&failures, RESTART_WELL_MS), 1000);
	assert_int_equal(restart_pause_ms(&failures, 0), 2000);
}

static void failures_beyond_number_still_pause_a_minute(void **state)
{
	uint32_t failures = UINT32_MAX - 1;

	(void)state;
	assert_int_equal(restart_pause_ms(&failures, 0), 60000);
}

static void failures_are_tried_again_and_the_rest_is_left_alone(void **state)
{
	static const struct {
		enum end_reason reason;
		int exit_code;
		enum restart_decision decision;
	} ends[] = {
		{END_EXITED, 0, RESTART_DONE},
		{END_EXITED, 1, RESTART_AGAIN},
		{END_EXITED, 127, RESTART_AGAIN},
		{END_SIGNAL, 143, RESTART_AGAIN},
		{END_OOM, 137, RESTART_AGAIN},
		{END_PIDS_LIMIT, 1, RESTART_AGAIN},
		{END_DISK_FULL, 1, RESTART_AGAIN},
		{END_AGENT_LOST, 137, RESTART_AGAIN},
		{END_KILLED, 137, RESTART_KILLED},
	};

	(void)state;
	for (size_t i = 0; i < array_len(ends); i++)
		assert_int_equal(
			restart_judge(ends[i].reason, ends[i].exit_code), ends[i].decision);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(pauses_double_up_to_a_minute),
		cmocka_unit_test(one_that_was_well_for_a_while_begins_anew),
		cmocka_unit_test(failures_beyond_number_still_pause_a_minute),
		cmocka_unit_test(failures_are_tried_again_and_the_rest_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
