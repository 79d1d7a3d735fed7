/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/namespace/range_cache.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void the_range_that_is_idle_for_the_longest_gives_way(void **state)
{
	struct range_cache cache = {0};
	uint32_t evicted = 0;

	(void)state;
	for (uint32_t slot = 0; slot < RANGE_CACHE_MAX; slot++)
		assert_false(range_cache_add(&cache, slot, &evicted));
	assert_false(range_cache_add(&cache, 0, &evicted)); /* again: it is the youngest now */
	assert_true(range_cache_add(&cache, 1000, &evicted));
	assert_int_equal(evicted, 1);
	assert_true(range_cache_add(&cache, 1001, &evicted));
	assert_int_equal(evicted, 2);
}

static void a_range_in_use_gives_way_to_nobody(void **state)
{
	struct range_cache cache = {0};
	uint32_t evicted = 0;

	(void)state;
	for (uint32_t slot = 0; slot < RANGE_CACHE_MAX; slot++)
		assert_false(range_cache_add(&cache, slot, &evicted));
	range_cache_remove(&cache, 0);
	range_cache_remove(&cache, 7);
	range_cache_remove(&cache, 12345); /* never there */
	assert_false(range_cache_add(&cache, 100, &evicted));
	assert_false(range_cache_add(&cache, 101, &evicted));
	for (uint32_t i = 0; i < RANGE_CACHE_MAX; i++) {
		assert_true(range_cache_add(&cache, 200 + i, &evicted));
		assert_true(evicted != 0 && evicted != 7);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_range_that_is_idle_for_the_longest_gives_way),
		cmocka_unit_test(a_range_in_use_gives_way_to_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
