/* SPDX-License-Identifier: Apache-2.0 */
/* Which uid range is next: the lowest, or one of a few in turn. */
#include "store/slot_set.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void the_lowest_free_one_is_next(void **state)
{
	struct slot_set set = {0};

	(void)state;
	slot_set_mark(&set, 1);
	assert_int_equal(slot_set_take(&set), 0);
	assert_int_equal(slot_set_take(&set), 2);
	slot_set_free(&set, 1);
	assert_int_equal(slot_set_take(&set), 1);
	assert_int_equal(slot_set_next(&set), 3);
}

static void in_turn_one_that_was_freed_comes_last_of_eight(void **state)
{
	struct slot_set set = {0};

	(void)state;
	slot_set_take_turns(&set);
	for (uint32_t slot = 0; slot < 8; slot++) {
		assert_int_equal(slot_set_take(&set), slot);
		slot_set_free(&set, slot);
	}
	assert_int_equal(slot_set_next(&set), 0);
}

static void when_all_are_taken_none_is_next_until_one_is_freed(void **state)
{
	struct slot_set set = {0};

	(void)state;
	for (uint32_t slot = 0; slot < KEEPER_SLOT_COUNT; slot++)
		assert_int_equal(slot_set_take(&set), slot);
	assert_int_equal(slot_set_take(&set), KEEPER_SLOT_COUNT);
	slot_set_free(&set, 7);
	assert_int_equal(slot_set_take(&set), 7);
}

static void one_that_does_not_exist_changes_nothing(void **state)
{
	struct slot_set set = {0};

	(void)state;
	slot_set_mark(&set, KEEPER_SLOT_COUNT);
	slot_set_free(&set, UINT32_MAX);
	assert_int_equal(slot_set_next(&set), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_lowest_free_one_is_next),
		cmocka_unit_test(in_turn_one_that_was_freed_comes_last_of_eight),
		cmocka_unit_test(when_all_are_taken_none_is_next_until_one_is_freed),
		cmocka_unit_test(one_that_does_not_exist_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
