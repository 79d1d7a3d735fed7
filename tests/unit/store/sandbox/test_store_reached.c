/* SPDX-License-Identifier: Apache-2.0 */
/* What sandboxes reached. */
#include "store_fixture.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define RULES 150 /* several pages */

struct seen {
	struct store *store;
	unsigned count;
	char last[64];
};

static void add(struct fixture *fixture, unsigned sandbox, unsigned n)
{
	char rule[64];
	struct err err;

	snprintf(rule, sizeof(rule), "host-%03u.example:443", n);
	assert_int_equal(store_reached_add(fixture->store, id_of(sandbox), rule, &err), 0);
}

/* Asks the store again: that would never return with its lock held. */
static void each(const char *rule, void *arg)
{
	struct seen *seen = arg;

	assert_true(exists(seen->store, &alice, id_of(1)));
	assert_true(strcmp(seen->last, rule) < 0);
	snprintf(seen->last, sizeof(seen->last), "%s", rule);
	seen->count++;
}

static unsigned count(struct fixture *fixture, unsigned sandbox)
{
	struct seen seen = {.store = fixture->store};
	struct err err;

	assert_int_equal(store_reached_list(fixture->store, id_of(sandbox), each, &seen, &err), 0);
	return seen.count;
}

static void rules_are_listed_once_in_order_without_a_lock(void **state)
{
	struct fixture *fixture = *state;

	must_insert(fixture->store, &alice, id_of(1), "one");
	must_insert(fixture->store, &alice, id_of(2), "two");
	for (unsigned n = RULES; n > 0; n--)
		add(fixture, 1, n);
	for (unsigned n = 1; n <= RULES; n++)
		add(fixture, 1, n);
	add(fixture, 2, 1);
	assert_int_equal(count(fixture, 1), RULES);
	assert_int_equal(count(fixture, 2), 1);
}

static void rules_are_bounded_and_need_a_sandbox(void **state)
{
	struct fixture *fixture = *state;

	must_insert(fixture->store, &alice, id_of(1), "one");
	add(fixture, 3, 1);
	assert_int_equal(count(fixture, 3), 0);
	for (unsigned n = 0; n < STORE_REACHED_MAX + 10; n++)
		add(fixture, 1, n);
	assert_int_equal(count(fixture, 1), STORE_REACHED_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			rules_are_listed_once_in_order_without_a_lock, setup, teardown),
		cmocka_unit_test_setup_teardown(
			rules_are_bounded_and_need_a_sandbox, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
