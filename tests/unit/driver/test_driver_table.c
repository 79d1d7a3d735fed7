/* SPDX-License-Identifier: Apache-2.0 */
/* The table of drivers (src/driver/driver_table.c). */
#include "driver/driver_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void every_driver_is_found_by_its_name(void **state)
{
	const struct driver_kind *kinds, *found;
	struct err err;
	size_t count;

	(void)state;
	kinds = driver_table_list(&count);
	assert_true(count > 0);
	for (size_t i = 0; i < count; i++) {
		assert_non_null(kinds[i].open);
		assert_true(kinds[i].capabilities < DRIVER_BIT(DRIVER_CAPABILITY_COUNT));
		assert_int_equal(driver_table_find(kinds[i].name, &found, &err), 0);
		assert_ptr_equal(found, &kinds[i]);
		assert_true(i == 0 || strcmp(kinds[i - 1].name, kinds[i].name) < 0);
	}
	assert_int_equal(driver_table_find(DRIVER_TABLE_DEFAULT, &found, &err), 0);
}

static void another_name_is_refused_with_those_that_there_are(void **state)
{
	const struct driver_kind *kind = NULL;
	struct err err;

	(void)state;
	assert_true(driver_table_find("Native", &kind, &err) < 0);
	assert_int_equal(err.kind, ERR_INVALID);
	assert_non_null(strstr(err.message, "native"));
	assert_true(driver_table_find("", &kind, &err) < 0);
	assert_null(kind);
}

/* The daemon asks whether what a driver prepares is gone, and a new daemon prepares it again. */
static void what_is_prepared_can_be_missed(void **state)
{
	const struct driver_config config = {.data_dir = "/nonexistent"};
	const struct driver_kind *kinds;
	size_t count;

	(void)state;
	kinds = driver_table_list(&count);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(!kinds[i].prepare, !kinds[i].is_gone);
		if (kinds[i].is_gone)
			assert_true(kinds[i].is_gone(&config));
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_driver_is_found_by_its_name),
		cmocka_unit_test(another_name_is_refused_with_those_that_there_are),
		cmocka_unit_test(what_is_prepared_can_be_missed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
