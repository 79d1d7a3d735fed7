/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/native/prebuild.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct keeper_request build_in(uint32_t slot, uint64_t memory_bytes)
{
	struct keeper_request request = {.kind = KEEPER_BUILD, .slot = slot};

	request.limits = (struct keeper_limits){.memory_bytes = memory_bytes, .disk_bytes = 1};
	strcpy(request.id, "01jaaaaaaaaaaaaaaaaaaaaaaa");
	strcpy(request.hostname, "sandbox");
	return request;
}

#define NONE KEEPER_SLOT_COUNT

/* Notes a build, after which the next uid range comes; returns how many orders there are. */
static size_t note(struct prebuild *prebuild, uint32_t slot, uint64_t memory_bytes, uint32_t held,
	struct keeper_request orders[PREBUILD_ORDERS_MAX])
{
	struct keeper_request built = build_in(slot, memory_bytes);

	return prebuild_note(prebuild, &built, held, slot + 1, orders);
}

static void after_a_build_the_next_is_ordered_in_the_next_range(void **state)
{
	struct keeper_request orders[PREBUILD_ORDERS_MAX];
	struct prebuild prebuild = {0};

	(void)state;
	assert_int_equal(note(&prebuild, 7, 100, NONE, orders), 1);
	assert_int_equal(orders[0].kind, KEEPER_PREBUILD);
	assert_int_equal(orders[0].slot, 8);
	assert_int_equal(orders[0].limits.memory_bytes, 100);
	assert_string_equal(orders[0].hostname, "sandbox");
	assert_string_equal(orders[0].id, "");
	assert_int_equal(note(&prebuild, 8, 100, NONE, orders), 1); /* it was taken */
	assert_int_equal(orders[0].slot, 9);
}

static void while_one_is_held_no_other_is_ordered(void **state)
{
	struct keeper_request orders[PREBUILD_ORDERS_MAX];
	struct prebuild prebuild = {0};

	(void)state;
	assert_int_equal(note(&prebuild, 7, 100, NONE, orders), 1);
	assert_int_equal(note(&prebuild, 20, 100, 8, orders), 0);
}

static void one_that_is_passed_over_too_often_is_dropped_for_another(void **state)
{
	struct keeper_request orders[PREBUILD_ORDERS_MAX];
	struct prebuild prebuild = {0};

	(void)state;
	assert_int_equal(note(&prebuild, 7, 100, NONE, orders), 1);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(note(&prebuild, 20 + i, 100, 8, orders), 0);
	assert_int_equal(note(&prebuild, 30, 100, 8, orders), 2);
	assert_int_equal(orders[0].kind, KEEPER_DROP);
	assert_int_equal(orders[0].slot, 8);
	assert_int_equal(orders[1].kind, KEEPER_PREBUILD);
	assert_int_equal(orders[1].slot, 31);
}

static void one_that_is_taken_each_time_is_not_passed_over(void **state)
{
	struct keeper_request orders[PREBUILD_ORDERS_MAX];
	struct prebuild prebuild = {0};

	(void)state;
	for (uint32_t i = 0; i < 20; i++)
		assert_int_equal(note(&prebuild, 7 + i, 100, 9 + i, orders), 0);
}

static void if_builds_differ_nothing_is_ordered(void **state)
{
	struct keeper_request orders[PREBUILD_ORDERS_MAX];
	struct prebuild prebuild = {0};

	(void)state;
	assert_int_equal(note(&prebuild, 7, 100, NONE, orders), 1);
	assert_int_equal(note(&prebuild, 8, 200, NONE, orders), 0);
	assert_int_equal(note(&prebuild, 9, 300, NONE, orders), 0);
	assert_int_equal(note(&prebuild, 10, 300, NONE, orders), 1);
}

static void without_a_disk_or_a_range_nothing_is_ordered(void **state)
{
	struct keeper_request orders[PREBUILD_ORDERS_MAX], built = build_in(7, 100);
	struct prebuild prebuild = {0};

	(void)state;
	assert_int_equal(prebuild_note(&prebuild, &built, NONE, NONE, orders), 0);
	built.limits.disk_bytes = 0;
	assert_int_equal(prebuild_note(&prebuild, &built, NONE, 8, orders), 0);
	assert_int_equal(prebuild_note(&prebuild, &built, NONE, 8, orders), 0);
}

static void disks_are_kept_only_where_they_are_limited(void **state)
{
	(void)state;
	assert_int_equal(prebuild_spares(true).spare_disks, PREBUILD_DISKS);
	assert_int_equal(prebuild_spares(false).spare_disks, 0);
	assert_int_equal(prebuild_spares(false).spare_networks, PREBUILD_NETWORKS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(after_a_build_the_next_is_ordered_in_the_next_range),
		cmocka_unit_test(while_one_is_held_no_other_is_ordered),
		cmocka_unit_test(one_that_is_passed_over_too_often_is_dropped_for_another),
		cmocka_unit_test(one_that_is_taken_each_time_is_not_passed_over),
		cmocka_unit_test(if_builds_differ_nothing_is_ordered),
		cmocka_unit_test(without_a_disk_or_a_range_nothing_is_ordered),
		cmocka_unit_test(disks_are_kept_only_where_they_are_limited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
