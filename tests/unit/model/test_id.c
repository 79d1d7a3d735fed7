/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "model/id.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void ids_sort_by_time_of_birth(void **state)
{
	static const int64_t times[] = {
		0, 1, 31, 32, 1767323045678, 1767323045679, (1ll << 48) - 1};
	char last[ID_LEN + 1] = "", id[ID_LEN + 1];

	(void)state;
	for (size_t i = 0; i < array_len(times); i++) {
		id_new(times[i], id);
		assert_true(strncmp(last, id, 10) < 0 || i == 0);
		memcpy(last, id, sizeof(id));
	}
}

static void ids_are_valid_distinct_and_without_mistakable_letters(void **state)
{
	char ids[1000][ID_LEN + 1];

	(void)state;
	for (size_t i = 0; i < array_len(ids); i++) {
		id_new(1767323045678, ids[i]);
		assert_int_equal(strlen(ids[i]), ID_LEN);
		assert_true(id_is_valid(ids[i]));
		assert_null(strpbrk(ids[i], "ilou"));
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(ids[i], ids[j]);
	}
}

static void ids_of_a_millisecond_sort_in_the_order_in_which_they_were_made(void **state)
{
	static const int64_t first = 1767323045678;
	char last[3][ID_LEN + 1] = {"", "", ""}, id[ID_LEN + 1];

	(void)state;
	/* Of three milliseconds in turn, as by threads that looked at the clock before others did. */
	for (int i = 0; i < 3000; i++) {
		int64_t at = (i * 2) % 3;

		id_new(first + at, id);
		assert_true(strcmp(last[at], id) < 0);
		memcpy(last[at], id, sizeof(id));
	}
	assert_true(strcmp(last[0], last[1]) < 0 && strcmp(last[1], last[2]) < 0);
}

static void an_id_does_not_tell_the_next(void **state)
{
	char ids[256][ID_LEN + 1];

	(void)state;
	for (size_t i = 0; i < array_len(ids); i++)
		id_new(1767323045679, ids[i]);
	/* The last five digits are as random as those of the first: two alike are rare. */
	for (size_t i = 1, alike = 0; i < array_len(ids); i++) {
		alike += strcmp(ids[i] + ID_LEN - 5, ids[i - 1] + ID_LEN - 5) == 0;
		assert_true(alike < 2);
	}
}

static void *make_many(void *arg)
{
	char(*ids)[ID_LEN + 1] = arg;

	for (size_t i = 0; i < 1000; i++)
		id_new(1767323045680 + (int64_t)i / 100, ids[i]);
	return NULL;
}

static int compare(const void *one, const void *other)
{
	return strcmp(one, other);
}

static void ids_of_many_threads_are_distinct_and_grow_for_each(void **state)
{
	static char ids[4][1000][ID_LEN + 1];
	pthread_t threads[4];

	(void)state;
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, make_many, ids[i]), 0);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	for (size_t i = 0; i < 4; i++) {
		for (size_t j = 1; j < 1000; j++)
			assert_true(strcmp(ids[i][j - 1], ids[i][j]) < 0);
	}
	qsort(ids, 4000, sizeof(ids[0][0]), compare);
	for (size_t i = 1; i < 4000; i++)
		assert_string_not_equal(
			ids[(i - 1) / 1000][(i - 1) % 1000], ids[i / 1000][i % 1000]);
}

static void only_26_of_the_alphabet_are_an_id(void **state)
{
	static const char *const bad[] = {"", "a", "0000000000000000000000000",
		"000000000000000000000000000", "0000000000000000000000000A",
		"0000000000000000000000000-", "../../../../../../../etc/x",
		"0000000000000000000000000\n", "000000000000/0000000000000",
		"000000000000000000000000\xc3\xbc"};

	(void)state;
	assert_true(id_is_valid("00000000000000000000000000"));
	assert_true(id_is_valid("zilouzilouzilouzilouzilou9")); /* clients may choose any letters */
	for (size_t i = 0; i < array_len(bad); i++)
		assert_false(id_is_valid(bad[i]));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids_sort_by_time_of_birth),
		cmocka_unit_test(ids_are_valid_distinct_and_without_mistakable_letters),
		cmocka_unit_test(ids_of_a_millisecond_sort_in_the_order_in_which_they_were_made),
		cmocka_unit_test(an_id_does_not_tell_the_next),
		cmocka_unit_test(ids_of_many_threads_are_distinct_and_grow_for_each),
		cmocka_unit_test(only_26_of_the_alphabet_are_an_id),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
