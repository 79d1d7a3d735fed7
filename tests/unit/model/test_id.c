/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "model/id.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
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
		cmocka_unit_test(only_26_of_the_alphabet_are_an_id),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
