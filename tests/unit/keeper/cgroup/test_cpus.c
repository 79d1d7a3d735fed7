/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/cgroup/cpus.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct cpus cpus;

/* Four processors, of which the first has the number 2. */
static int set_up(void **state)
{
	cpu_set_t usable;

	(void)state;
	CPU_ZERO(&usable);
	for (int i = 2; i < 6; i++)
		CPU_SET(i, &usable);
	cpus_init(&cpus, &usable);
	return 0;
}

static struct cpus_share take(uint64_t limit_millis)
{
	struct cpus_share share;

	cpus_take(&cpus, limit_millis, &share);
	return share;
}

static void a_share_is_the_limit_rounded_up(void **state)
{
	(void)state;
	assert_int_equal(take(10).count, 1);
	assert_int_equal(take(1000).count, 1);
	assert_int_equal(take(1001).count, 2);
	assert_int_equal(take(3000).count, 3);
}

static void a_limit_of_all_or_more_binds_to_nothing(void **state)
{
	const uint64_t limits[] = {3001, 4000, 4001, 4096000};

	(void)state;
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		struct cpus_share share = take(limits[i]);

		assert_int_equal(share.count, 4);
		assert_false(share.is_bound);
	}
}

static void shares_are_spread_evenly_over_what_is_usable(void **state)
{
	(void)state;
	for (int i = 0; i < 40; i++) {
		struct cpus_share share = take(500);

		assert_true(share.is_bound);
		assert_int_equal(CPU_COUNT(&share.set), 1);
		assert_true(CPU_ISSET(2 + i % 4, &share.set));
	}
	for (int i = 0; i < CPU_SETSIZE; i++)
		assert_int_equal(cpus.bound[i], i >= 2 && i < 6 ? 10 : 0);
}

static void what_was_given_back_is_taken_next(void **state)
{
	struct cpus_share shares[4], next;

	(void)state;
	for (int i = 0; i < 4; i++)
		shares[i] = take(1000);
	cpus_give_back(&cpus, &shares[2]);
	next = take(1000);
	assert_true(CPU_ISSET(4, &next.set));
	cpus_give_back(&cpus, &shares[2]); /* once only */
	assert_int_equal(cpus.bound[4], 1);
}

static void a_share_of_several_has_each_only_once(void **state)
{
	struct cpus_share one = take(1000), three = take(3000);

	(void)state;
	assert_int_equal(CPU_COUNT(&three.set), 3);
	assert_false(CPU_ISSET(2, &three.set));
	cpus_give_back(&cpus, &three);
	cpus_give_back(&cpus, &one);
	for (int i = 0; i < CPU_SETSIZE; i++)
		assert_int_equal(cpus.bound[i], 0);
}

static void a_share_suits_limits_that_are_rounded_to_it(void **state)
{
	struct cpus_share one = take(700), all = take(4000);

	(void)state;
	assert_true(cpus_suits(&cpus, &one, 1));
	assert_true(cpus_suits(&cpus, &one, 1000));
	assert_false(cpus_suits(&cpus, &one, 1001));
	assert_false(cpus_suits(&cpus, &one, 4000));
	assert_true(cpus_suits(&cpus, &all, 3001));
	assert_true(cpus_suits(&cpus, &all, 9000));
	assert_false(cpus_suits(&cpus, &all, 3000));
}

static void the_list_names_them_or_is_empty(void **state)
{
	char list[CPUS_LIST_MAX];
	struct cpus_share share = take(2000);
	cpu_set_t all;

	(void)state;
	cpus_list(&share, list);
	assert_string_equal(list, "2,3");
	share = take(4000);
	cpus_list(&share, list);
	assert_string_equal(list, "");
	memset(&all, 0xff, sizeof(all));
	cpus_init(&cpus, &all);
	share = take((CPU_SETSIZE - 1) * 1000);
	cpus_list(&share, list);
	assert_string_equal(list + strlen(list) - 10, ",1021,1022");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_share_is_the_limit_rounded_up, set_up),
		cmocka_unit_test_setup(a_limit_of_all_or_more_binds_to_nothing, set_up),
		cmocka_unit_test_setup(shares_are_spread_evenly_over_what_is_usable, set_up),
		cmocka_unit_test_setup(what_was_given_back_is_taken_next, set_up),
		cmocka_unit_test_setup(a_share_of_several_has_each_only_once, set_up),
		cmocka_unit_test_setup(a_share_suits_limits_that_are_rounded_to_it, set_up),
		cmocka_unit_test_setup(the_list_names_them_or_is_empty, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
