/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/roster.h"

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

static void empty(struct roster *roster)
{
	while (roster->count > 0)
		roster_remove(roster, roster->sorted[0]);
	free(roster->sorted);
}

static void what_is_added_in_any_order_is_found_and_listed_in_order(void **state)
{
	struct roster roster = {0};
	char ids[300][KEEPER_ID_LEN + 1];

	(void)state;
	for (unsigned i = 0; i < 300; i++) {
		struct held *held = roster_add(&roster, id_of(i * 7919 % 300));

		assert_int_equal(held->lifeline, -1);
		assert_int_equal(held->kill_waiter, -1);
		held->pid = (pid_t)(1000 + i * 7919 % 300);
	}
	assert_int_equal(roster_list(&roster, "", ids, 300), 300);
	for (unsigned i = 0; i < 300; i++) {
		assert_string_equal(ids[i], id_of(i));
		assert_string_equal(roster_find(&roster, id_of(i))->id, id_of(i));
		assert_string_equal(roster_find_pid(&roster, (pid_t)(1000 + i))->id, id_of(i));
	}
	assert_null(roster_find(&roster, id_of(300)));
	assert_null(roster_find(&roster, ""));
	assert_null(roster_find_pid(&roster, 1));
	empty(&roster);
}

static void a_list_goes_on_after_the_last_one_also_when_it_is_gone(void **state)
{
	struct roster roster = {0};
	char ids[3][KEEPER_ID_LEN + 1];

	(void)state;
	for (unsigned i = 0; i < 6; i++)
		roster_add(&roster, id_of(i));
	assert_int_equal(roster_list(&roster, "", ids, 3), 3);
	assert_string_equal(ids[2], id_of(2));
	roster_remove(&roster, roster_find(&roster, id_of(2)));
	assert_int_equal(roster_list(&roster, id_of(2), ids, 3), 3);
	assert_string_equal(ids[0], id_of(3));
	assert_int_equal(roster_list(&roster, id_of(4), ids, 3), 1);
	assert_string_equal(ids[0], id_of(5));
	assert_int_equal(roster_list(&roster, id_of(5), ids, 3), 0);
	assert_int_equal(roster_list(&roster, "", ids, 0), 0);
	empty(&roster);
}

static void who_is_removed_takes_its_lifeline_along(void **state)
{
	struct roster roster = {0};
	struct held *held = roster_add(&roster, id_of(1));
	int lifeline;

	(void)state;
	roster_add(&roster, id_of(0));
	roster_add(&roster, id_of(2));
	lifeline = held->lifeline = open("/dev/null", O_RDONLY | O_CLOEXEC);
	roster_remove(&roster, held);
	assert_int_equal(fcntl(lifeline, F_GETFD), -1);
	assert_null(roster_find(&roster, id_of(1)));
	assert_non_null(roster_find(&roster, id_of(0)));
	assert_non_null(roster_find(&roster, id_of(2)));
	assert_int_equal(roster.count, 2);
	empty(&roster);
}

static void who_has_no_owner_is_on_no_list_until_it_has_one(void **state)
{
	struct roster roster = {0};
	char ids[4][KEEPER_ID_LEN + 1];
	struct held *ahead;

	(void)state;
	roster_add(&roster, id_of(5));
	ahead = roster_add(&roster, id_of(9));
	ahead->has_owner = false;
	assert_int_equal(roster_list(&roster, "", ids, 4), 1);
	ahead->has_owner = true;
	roster_rename(&roster, ahead, id_of(2));
	assert_int_equal(roster_list(&roster, "", ids, 4), 2);
	assert_string_equal(ids[0], id_of(2));
	assert_ptr_equal(roster_find(&roster, id_of(2)), ahead);
	assert_null(roster_find(&roster, id_of(9)));
	assert_string_equal(ahead->group, id_of(9));
	empty(&roster);
}

static void a_uid_range_is_taken_by_whoever_runs_in_it_for_somebody(void **state)
{
	struct roster roster = {0};
	struct held *held = roster_add(&roster, id_of(5));

	(void)state;
	roster_add(&roster, id_of(4))->slot = 3;
	held->slot = 7;
	assert_null(roster_find_slot(&roster, 7)); /* it was reaped */
	held->pid = 1000;
	held->has_owner = false;
	assert_null(roster_find_slot(&roster, 7));
	held->has_owner = true;
	assert_ptr_equal(roster_find_slot(&roster, 7), held);
	assert_null(roster_find_slot(&roster, 8));
	empty(&roster);
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
