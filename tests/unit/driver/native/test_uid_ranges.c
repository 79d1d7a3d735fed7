/* SPDX-License-Identifier: Apache-2.0 */
/* Which uid range each sandbox has (src/driver/native/uid_ranges.c). */
#include "driver/native/uid_ranges.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char *id_of(unsigned number)
{
	static char ids[4][ID_LEN + 1];
	static unsigned next;
	char *id = ids[next++ % 4];

	snprintf(id, ID_LEN + 1, "%026u", number);
	return id;
}

static uint32_t must_take(struct uid_ranges *ranges, unsigned number)
{
	uint32_t slot = UID_RANGE_UNKNOWN, found = UID_RANGE_UNKNOWN;

	assert_int_equal(uid_ranges_take(ranges, id_of(number), &slot), 0);
	assert_true(uid_ranges_find(ranges, id_of(number), &found));
	assert_int_equal(found, slot);
	return slot;
}

static void the_lowest_free_one_is_next(void **state)
{
	struct uid_ranges ranges;

	(void)state;
	uid_ranges_init(&ranges, false);
	assert_int_equal(uid_ranges_note(&ranges, id_of(100), 1), 0);
	assert_int_equal(must_take(&ranges, 1), 0);
	assert_int_equal(must_take(&ranges, 2), 2);
	uid_ranges_release(&ranges, id_of(100));
	assert_int_equal(must_take(&ranges, 3), 1);
	assert_int_equal(uid_ranges_next(&ranges), 3);
	uid_ranges_fini(&ranges);
}

static void a_few_take_turns(void **state)
{
	struct uid_ranges ranges;

	(void)state;
	uid_ranges_init(&ranges, true);
	for (unsigned i = 0; i < 8; i++) {
		assert_int_equal(must_take(&ranges, i), i);
		uid_ranges_release(&ranges, id_of(i));
	}
	assert_int_equal(uid_ranges_next(&ranges), 0);
	uid_ranges_fini(&ranges);
}

/* The last one is for those who write layers. */
static void when_all_are_taken_there_is_none(void **state)
{
	struct uid_ranges ranges;
	uint32_t slot = 5;

	(void)state;
	uid_ranges_init(&ranges, true);
	for (unsigned i = 0; i < KEEPER_LAYER_SLOT; i++)
		assert_int_equal(must_take(&ranges, i), i);
	assert_int_equal(uid_ranges_take(&ranges, id_of(KEEPER_LAYER_SLOT), &slot), -ENOSPC);
	assert_int_equal(slot, 5);
	assert_false(uid_ranges_find(&ranges, id_of(KEEPER_LAYER_SLOT), &slot));
	assert_int_equal(uid_ranges_next(&ranges), UID_RANGE_NONE);
	uid_ranges_release(&ranges, id_of(7));
	assert_int_equal(must_take(&ranges, KEEPER_LAYER_SLOT), 7);
	uid_ranges_fini(&ranges);
}

/* Files that are still root's, or cannot be looked at, take no range; but they are known. */
static void files_of_no_range_take_none(void **state)
{
	struct uid_ranges ranges;
	uint32_t slot = 5;

	(void)state;
	uid_ranges_init(&ranges, false);
	assert_false(uid_ranges_find(&ranges, id_of(1), &slot));
	assert_int_equal(uid_ranges_note(&ranges, id_of(1), UID_RANGE_NONE), 0);
	assert_int_equal(uid_ranges_note(&ranges, id_of(2), UID_RANGE_UNKNOWN), 0);
	assert_true(uid_ranges_find(&ranges, id_of(1), &slot));
	assert_int_equal(slot, UID_RANGE_NONE);
	assert_true(uid_ranges_find(&ranges, id_of(2), &slot));
	assert_int_equal(slot, UID_RANGE_UNKNOWN);
	assert_int_equal(must_take(&ranges, 1), 0);
	uid_ranges_release(&ranges, id_of(2));
	uid_ranges_release(&ranges, id_of(2));
	uid_ranges_release(&ranges, id_of(1));
	assert_int_equal(uid_ranges_next(&ranges), 0);
	uid_ranges_fini(&ranges);
}

/* Somebody copied a workspace: the copy does not get the range, nor does its end free it. */
static void no_two_sandboxes_have_one_range(void **state)
{
	struct uid_ranges ranges;
	uint32_t slot;

	(void)state;
	uid_ranges_init(&ranges, false);
	assert_int_equal(uid_ranges_note(&ranges, id_of(1), 0), 0);
	assert_int_equal(uid_ranges_note(&ranges, id_of(1), 0), 0);
	assert_int_equal(uid_ranges_note(&ranges, id_of(2), 0), -EEXIST);
	assert_true(uid_ranges_find(&ranges, id_of(2), &slot));
	assert_int_equal(slot, UID_RANGE_UNKNOWN);
	uid_ranges_release(&ranges, id_of(2));
	assert_int_equal(uid_ranges_next(&ranges), 1);
	uid_ranges_fini(&ranges);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_lowest_free_one_is_next),
		cmocka_unit_test(a_few_take_turns),
		cmocka_unit_test(when_all_are_taken_there_is_none),
		cmocka_unit_test(files_of_no_range_take_none),
		cmocka_unit_test(no_two_sandboxes_have_one_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
