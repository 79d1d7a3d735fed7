/* SPDX-License-Identifier: Apache-2.0 */
#include "base/share_pool.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct share_pool *make(unsigned limit)
{
	struct share_limits limits = share_limits_of(limit);

	return share_pool_new(&limits);
}

static void an_owner_has_a_quarter_and_others_have_theirs(void **state)
{
	struct share_pool *pool = make(16);
	struct share *mine[4], *other, *none = NULL;

	(void)state;
	for (size_t i = 0; i < array_len(mine); i++)
		assert_int_equal(share_pool_take(pool, 1, false, &mine[i]), 0);
	assert_int_equal(share_used(mine[0]), 4);
	assert_int_equal(share_owner(mine[3]), 1);
	assert_int_equal(share_pool_take(pool, 1, false, &none), -EDQUOT);
	assert_null(none);
	/* The operator has a share as well: it keeps others out no more than they keep it out. */
	assert_int_equal(share_pool_take(pool, 1, true, &none), -EDQUOT);
	assert_int_equal(share_pool_take(pool, 2, false, &other), 0);
	share_give_back(mine[0]);
	assert_int_equal(share_pool_take(pool, 1, false, &mine[0]), 0);
	for (size_t i = 0; i < array_len(mine); i++)
		share_give_back(mine[i]);
	share_give_back(other);
	share_give_back(NULL);
	assert_int_equal(share_pool_used(pool), 0);
	share_pool_free(pool);
}

static void where_the_pool_says_so_the_operator_has_no_share_but_all(void **state)
{
	struct share_limits limits = share_limits_of(8);
	struct share *taken[8], *none;
	struct share_pool *pool;

	(void)state;
	limits.spares_operator = true;
	pool = share_pool_new(&limits);
	for (size_t i = 0; i < array_len(taken); i++)
		assert_int_equal(share_pool_take(pool, 1, true, &taken[i]), 0);
	assert_int_equal(share_pool_take(pool, 1, true, &none), -EAGAIN);
	for (size_t i = 0; i < array_len(taken); i++)
		share_give_back(taken[i]);
	share_pool_free(pool);
}

static void the_last_places_are_the_operators(void **state)
{
	struct share_pool *pool = make(32); /* of which two are reserved */
	struct share *taken[32], *none;
	unsigned count = 0;
	int r = 0;

	(void)state;
	for (uint64_t owner = 0; count < 30 && r == 0; owner++) {
		while (count < 30 && (r = share_pool_take(pool, owner, false, &taken[count])) == 0)
			count++;
		r = r == -EDQUOT ? 0 : r;
	}
	assert_int_equal(count, 30);
	assert_int_equal(share_pool_take(pool, 99, false, &none), -EAGAIN);
	assert_int_equal(share_pool_take(pool, 100, true, &taken[30]), 0);
	assert_int_equal(share_pool_take(pool, 100, true, &taken[31]), 0);
	assert_int_equal(share_pool_take(pool, 100, true, &none), -EAGAIN);
	for (size_t i = 0; i < array_len(taken); i++)
		share_give_back(taken[i]);
	share_pool_free(pool);
}

static void the_smallest_pools_serve_somebody(void **state)
{
	(void)state;
	for (unsigned limit = 1; limit < 8; limit++) {
		struct share_pool *pool = make(limit);
		struct share *share;

		assert_int_equal(share_pool_take(pool, 7, false, &share), 0);
		share_give_back(share);
		share_pool_free(pool);
	}
}

static void *take_and_give_back(void *arg)
{
	struct share_pool *pool = arg;

	for (uint64_t i = 0; i < 20000; i++) {
		struct share *share = NULL;

		if (share_pool_take(pool, i % 7, i % 5 == 0, &share) == 0)
			share_give_back(share);
	}
	return NULL;
}

static void threads_leave_nothing_behind(void **state)
{
	struct share_pool *pool = make(8);
	pthread_t threads[4];

	(void)state;
	for (size_t i = 0; i < array_len(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, take_and_give_back, pool), 0);
	for (size_t i = 0; i < array_len(threads); i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(share_pool_used(pool), 0);
	share_pool_free(pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_owner_has_a_quarter_and_others_have_theirs),
		cmocka_unit_test(where_the_pool_says_so_the_operator_has_no_share_but_all),
		cmocka_unit_test(the_last_places_are_the_operators),
		cmocka_unit_test(the_smallest_pools_serve_somebody),
		cmocka_unit_test(threads_leave_nothing_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
