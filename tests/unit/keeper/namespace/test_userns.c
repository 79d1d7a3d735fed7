/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/namespace/userns.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* As the kernel aligns them. */
static const char whole[] = "         0          0 4294967295\n";

static void root_of_the_host_cuts_wide_ranges(void **state)
{
	struct userns_ranges ranges;
	struct err err;

	(void)state;
	assert_int_equal(userns_cut_ranges(whole, whole, &ranges, &err), 0);
	assert_true(ranges.is_host);
	assert_int_equal(ranges.width, 65536);
	assert_int_equal(ranges.count, KEEPER_SLOT_COUNT);
	assert_int_equal(userns_base(&ranges, 0), 1000000);
	assert_int_equal(userns_base(&ranges, 3), 1000000 + 3 * 65536);
}

static void root_of_a_namespace_cuts_what_was_lent_into_narrow_ones(void **state)
{
	static const char map[] = "         0       1001          1\n"
				  "         1     100000      65536\n";
	struct userns_ranges ranges;
	struct err err;

	(void)state;
	assert_int_equal(userns_cut_ranges(map, map, &ranges, &err), 0);
	assert_false(ranges.is_host);
	assert_int_equal(ranges.count, 64);
	/* Not 0, who is the keeper itself. */
	assert_int_equal(userns_base(&ranges, 0), 1);
	assert_int_equal(userns_base(&ranges, 63), 1 + 63 * 1024);
}

static void the_shorter_of_the_maps_counts_and_only_up_to_its_first_gap(void **state)
{
	static const char uids[] = "0 1001 1\n1 100000 65536\n65537 300000 65536\n";
	static const char gids[] = "0 1001 1\n1 100000 2048\n3000 300000 65536\n";
	struct userns_ranges ranges;
	struct err err;

	(void)state;
	assert_int_equal(userns_cut_ranges(uids, uids, &ranges, &err), 0);
	assert_int_equal(ranges.count, 128);
	assert_int_equal(userns_cut_ranges(uids, gids, &ranges, &err), 0);
	assert_int_equal(ranges.count, 2);
}

static void without_ids_for_one_sandbox_it_is_refused(void **state)
{
	static const char *const maps[] = {
		"", "0 1001 1\n", "0 1001 1\n1 100000 1023\n", "5 5 65536\n"};
	struct userns_ranges ranges;

	(void)state;
	for (size_t i = 0; i < array_len(maps); i++) {
		struct err err = {0};

		assert_true(userns_cut_ranges(maps[i], maps[i], &ranges, &err) < 0);
		assert_int_equal(err.kind, ERR_UNAVAILABLE);
	}
}

static void only_the_identity_of_both_kinds_is_the_host(void **state)
{
	static const char large[] = "0 100000 4000000\n";
	struct userns_ranges ranges;
	struct err err;

	(void)state;
	assert_int_equal(userns_cut_ranges(whole, large, &ranges, &err), 0);
	assert_false(ranges.is_host);
	assert_int_equal(userns_cut_ranges(large, large, &ranges, &err), 0);
	assert_false(ranges.is_host);
}

static void the_range_of_a_uid_is_found_again(void **state)
{
	struct userns_ranges ranges;
	struct err err;

	(void)state;
	assert_int_equal(userns_cut_ranges(whole, whole, &ranges, &err), 0);
	assert_int_equal(userns_slot(&ranges, userns_base(&ranges, 7) + 1000), 7);
	assert_int_equal(userns_slot(&ranges, 0), KEEPER_SLOT_COUNT);
	assert_int_equal(userns_slot(&ranges, KEEPER_UID_FIRST - 1), KEEPER_SLOT_COUNT);
	assert_int_equal(
		userns_slot(&ranges, userns_base(&ranges, KEEPER_SLOT_COUNT)), KEEPER_SLOT_COUNT);
	assert_int_equal(userns_cut_ranges("0 1001 1\n1 100000 4096\n", "0 1001 1\n1 100000 4096\n",
				 &ranges, &err),
		0);
	assert_int_equal(userns_slot(&ranges, userns_base(&ranges, 3) + 1000), 3);
	assert_int_equal(userns_slot(&ranges, 4 * 1024 + 1), KEEPER_SLOT_COUNT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(root_of_the_host_cuts_wide_ranges),
		cmocka_unit_test(root_of_a_namespace_cuts_what_was_lent_into_narrow_ones),
		cmocka_unit_test(the_shorter_of_the_maps_counts_and_only_up_to_its_first_gap),
		cmocka_unit_test(without_ids_for_one_sandbox_it_is_refused),
		cmocka_unit_test(the_range_of_a_uid_is_found_again),
		cmocka_unit_test(only_the_identity_of_both_kinds_is_the_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
