/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/sandbox/sandbox_table.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char *id_of(unsigned n)
{
	static char ids[4][KEEPER_ID_LEN + 1];
	static unsigned next;
	char *id = ids[next++ % array_len(ids)];

	snprintf(id, KEEPER_ID_LEN + 1, "%026u", n);
	return id;
}

static void empty(struct sandbox_table *table)
{
	while (table->count > 0)
		sandbox_table_remove(table, table->sorted[0]);
	free(table->sorted);
}

static void what_is_added_in_any_order_is_found_and_listed_in_order(void **state)
{
	struct sandbox_table table = {0};
	char ids[300][KEEPER_ID_LEN + 1];

	(void)state;
	for (unsigned i = 0; i < 300; i++) {
		struct sandbox_entry *entry = sandbox_table_add(&table, id_of(i * 7919 % 300));

		assert_int_equal(entry->lifeline, -1);
		assert_int_equal(entry->kill_waiter, -1);
		entry->pid = (pid_t)(1000 + i * 7919 % 300);
	}
	assert_int_equal(sandbox_table_list(&table, "", ids, 300), 300);
	for (unsigned i = 0; i < 300; i++) {
		assert_string_equal(ids[i], id_of(i));
		assert_string_equal(sandbox_table_find(&table, id_of(i))->id, id_of(i));
		assert_string_equal(
			sandbox_table_find_pid(&table, (pid_t)(1000 + i))->id, id_of(i));
	}
	assert_null(sandbox_table_find(&table, id_of(300)));
	assert_null(sandbox_table_find(&table, ""));
	assert_null(sandbox_table_find_pid(&table, 1));
	empty(&table);
}

static void a_list_goes_on_after_the_last_one_also_when_it_is_gone(void **state)
{
	struct sandbox_table table = {0};
	char ids[3][KEEPER_ID_LEN + 1];

	(void)state;
	for (unsigned i = 0; i < 6; i++)
		sandbox_table_add(&table, id_of(i));
	assert_int_equal(sandbox_table_list(&table, "", ids, 3), 3);
	assert_string_equal(ids[2], id_of(2));
	sandbox_table_remove(&table, sandbox_table_find(&table, id_of(2)));
	assert_int_equal(sandbox_table_list(&table, id_of(2), ids, 3), 3);
	assert_string_equal(ids[0], id_of(3));
	assert_int_equal(sandbox_table_list(&table, id_of(4), ids, 3), 1);
	assert_string_equal(ids[0], id_of(5));
	assert_int_equal(sandbox_table_list(&table, id_of(5), ids, 3), 0);
	assert_int_equal(sandbox_table_list(&table, "", ids, 0), 0);
	empty(&table);
}

static void who_is_removed_takes_its_lifeline_along(void **state)
{
	struct sandbox_table table = {0};
	struct sandbox_entry *entry = sandbox_table_add(&table, id_of(1));
	int lifeline;

	(void)state;
	sandbox_table_add(&table, id_of(0));
	sandbox_table_add(&table, id_of(2));
	lifeline = entry->lifeline = open("/dev/null", O_RDONLY | O_CLOEXEC);
	sandbox_table_remove(&table, entry);
	assert_int_equal(fcntl(lifeline, F_GETFD), -1);
	assert_null(sandbox_table_find(&table, id_of(1)));
	assert_non_null(sandbox_table_find(&table, id_of(0)));
	assert_non_null(sandbox_table_find(&table, id_of(2)));
	assert_int_equal(table.count, 2);
	empty(&table);
}

static void who_has_no_owner_is_on_no_list_until_it_has_one(void **state)
{
	struct sandbox_table table = {0};
	char ids[4][KEEPER_ID_LEN + 1];
	struct sandbox_entry *ahead;

	(void)state;
	sandbox_table_add(&table, id_of(5));
	ahead = sandbox_table_add(&table, id_of(9));
	ahead->has_owner = false;
	assert_int_equal(sandbox_table_list(&table, "", ids, 4), 1);
	ahead->has_owner = true;
	sandbox_table_rename(&table, ahead, id_of(2));
	assert_int_equal(sandbox_table_list(&table, "", ids, 4), 2);
	assert_string_equal(ids[0], id_of(2));
	assert_ptr_equal(sandbox_table_find(&table, id_of(2)), ahead);
	assert_null(sandbox_table_find(&table, id_of(9)));
	assert_string_equal(ahead->group, id_of(9));
	empty(&table);
}

static void a_uid_range_is_taken_by_whoever_runs_in_it_for_somebody(void **state)
{
	struct sandbox_table table = {0};
	struct sandbox_entry *entry = sandbox_table_add(&table, id_of(5));

	(void)state;
	sandbox_table_add(&table, id_of(4))->slot = 3;
	entry->slot = 7;
	assert_null(sandbox_table_find_slot(&table, 7)); /* it was reaped */
	entry->pid = 1000;
	entry->has_owner = false;
	assert_null(sandbox_table_find_slot(&table, 7));
	entry->has_owner = true;
	assert_ptr_equal(sandbox_table_find_slot(&table, 7), entry);
	assert_null(sandbox_table_find_slot(&table, 8));
	empty(&table);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_added_in_any_order_is_found_and_listed_in_order),
		cmocka_unit_test(a_list_goes_on_after_the_last_one_also_when_it_is_gone),
		cmocka_unit_test(who_is_removed_takes_its_lifeline_along),
		cmocka_unit_test(who_has_no_owner_is_on_no_list_until_it_has_one),
		cmocka_unit_test(a_uid_range_is_taken_by_whoever_runs_in_it_for_somebody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
