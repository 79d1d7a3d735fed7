/* SPDX-License-Identifier: Apache-2.0 */
#include "core/engine/stats_history.h"

#include "base/mem.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define START 1000000u

static void a_step_is_the_mean_of_its_samples_and_is_told_when_it_is_over(void **state)
{
	struct stats_history *history = stats_history_new();
	struct stats_point points[4];

	(void)state;
	for (uint32_t i = 0; i < 5; i++)
		stats_history_add(
			history, &(struct stats_point){
					 .at_s = START + i * 2, .cpu = (float)i, .memory = 100});
	assert_int_equal(stats_history_read(history, false, 0, points, 4), 0);
	stats_history_add(history, &(struct stats_point){.at_s = START + 10, .memory = 50});
	assert_int_equal(stats_history_read(history, false, 0, points, 4), 1);
	assert_int_equal(points[0].at_s, START + 10);
	assert_float_equal(points[0].cpu, 2, 0.001);
	assert_float_equal(points[0].memory, 100, 0.001);
	assert_int_equal(stats_history_read(history, false, START + 11, points, 4), 0);
	assert_int_equal(stats_history_read(history, true, 0, points, 4), 0);
	stats_history_free(history);
}

static void the_oldest_give_way(void **state)
{
	struct stats_history *history = stats_history_new();
	struct stats_point points[STATS_FINE + 1];
	const uint32_t days = 2 * 86400 / STATS_FINE_S;
	size_t count;

	(void)state;
	for (uint32_t i = 0; i < days; i++)
		stats_history_add(history,
			&(struct stats_point){.at_s = START + i * STATS_FINE_S, .disk = (float)i});
	count = stats_history_read(history, false, 0, points, array_len(points));
	assert_int_equal(count, STATS_FINE);
	for (size_t i = 1; i < count; i++)
		assert_int_equal(points[i].at_s - points[i - 1].at_s, STATS_FINE_S);
	assert_int_equal(points[count - 1].at_s, START + (days - 1) * STATS_FINE_S);
	count = stats_history_read(history, true, 0, points, array_len(points));
	assert_int_equal(count, STATS_COARSE);
	for (size_t i = 1; i < count; i++)
		assert_int_equal(points[i].at_s - points[i - 1].at_s, STATS_COARSE_S);
	stats_history_free(history);
	stats_history_free(NULL);
}

static void one_that_lives_shortly_takes_little(void **state)
{
	static struct stats_history *histories[100];
	size_t before = mallinfo2().uordblks;

	(void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	skip(); /* their heap is not that of the C library */
#endif
	for (size_t i = 0; i < array_len(histories); i++) {
		histories[i] = stats_history_new();
		for (uint32_t n = 0; n < 12; n++)
			stats_history_add(histories[i],
				&(struct stats_point){.at_s = START + n * STATS_FINE_S});
	}
	assert_true(mallinfo2().uordblks - before < array_len(histories) * 1024);
	for (size_t i = 0; i < array_len(histories); i++)
		stats_history_free(histories[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_step_is_the_mean_of_its_samples_and_is_told_when_it_is_over),
		cmocka_unit_test(the_oldest_give_way),
		cmocka_unit_test(one_that_lives_shortly_takes_little),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
