/* SPDX-License-Identifier: Apache-2.0 */
#include "auth/ticket_table.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define PATH "/v1/sandboxes/x/terminal"

static const struct principal alice = {
	.token_id = "t1", .organization = "acme", .user = "alice", .scopes = 3};

static int setup(void **state)
{
	*state = ticket_table_new();
	return 0;
}

static int teardown(void **state)
{
	ticket_table_free(*state);
	return 0;
}

static void issue(struct ticket_table *book, uint64_t now_ms, char ticket[SECRET_TEXT_MAX])
{
	struct err err;

	assert_int_equal(
		ticket_table_issue(book, &alice, PATH, now_ms, TICKET_LIFE_MS, ticket, &err), 0);
}

static int redeem(struct ticket_table *book, const char *ticket, const char *path, uint64_t now_ms)
{
	struct principal who = {0};
	struct err err = {0};
	int r = ticket_table_redeem(book, ticket, path, now_ms, &who, &err);

	if (r == 0)
		assert_memory_equal(&who, &alice, sizeof(who));
	else
		assert_int_equal(err.kind, ERR_UNAUTHENTICATED);
	return r;
}

static void a_ticket_is_good_once(void **state)
{
	char ticket[SECRET_TEXT_MAX], other[SECRET_TEXT_MAX];

	issue(*state, 1000, ticket);
	issue(*state, 1000, other);
	assert_string_not_equal(ticket, other);
	assert_int_equal(redeem(*state, ticket, PATH, 1000), 0);
	assert_int_equal(redeem(*state, ticket, PATH, 1000), -EACCES);
	assert_int_equal(redeem(*state, other, PATH, 1000), 0);
}

static void a_ticket_lasts_a_minute(void **state)
{
	char ticket[SECRET_TEXT_MAX];

	issue(*state, 1000, ticket);
	assert_int_equal(redeem(*state, ticket, PATH, 1000 + TICKET_LIFE_MS), -EACCES);
	issue(*state, 1000, ticket);
	assert_int_equal(redeem(*state, ticket, PATH, 999 + TICKET_LIFE_MS), 0);
}

/* Shown at the wrong door it may have been seen there: it is used up. */
static void a_ticket_is_good_for_its_path_alone(void **state)
{
	char ticket[SECRET_TEXT_MAX];

	issue(*state, 1000, ticket);
	assert_int_equal(redeem(*state, ticket, PATH "/", 1000), -EACCES);
	assert_int_equal(redeem(*state, ticket, PATH, 1000), -EACCES);
}

static void what_is_no_ticket_is_refused(void **state)
{
	assert_int_equal(redeem(*state, "", PATH, 1000), -EACCES);
	assert_int_equal(redeem(*state, "tkt_", PATH, 1000), -EACCES);
	assert_int_equal(redeem(*state, "slt_0123", PATH, 1000), -EACCES);
}

static void an_owner_has_so_many_and_others_are_not_disturbed(void **state)
{
	struct principal bob = alice;
	char ticket[SECRET_TEXT_MAX];
	struct err err = {0};

	snprintf(bob.user, sizeof(bob.user), "bob");
	for (int i = 0; i < TICKETS_OF_OWNER; i++)
		issue(*state, 1000, ticket);
	assert_int_equal(
		ticket_table_issue(*state, &alice, PATH, 1000, TICKET_LIFE_MS, ticket, &err),
		-EAGAIN);
	assert_int_equal(err.kind, ERR_RATE);
	assert_int_equal(
		ticket_table_issue(*state, &bob, PATH, 1000, TICKET_LIFE_MS, ticket, &err), 0);
	issue(*state, 1000 + TICKET_LIFE_MS, ticket);
}

static void the_book_has_an_end(void **state)
{
	struct principal someone = alice;
	char ticket[SECRET_TEXT_MAX];
	struct err err = {0};
	int issued = 0, r = 0;

	for (int i = 0; r == 0 && i <= TICKETS_MAX; i++) {
		snprintf(someone.user, sizeof(someone.user), "u%d", i);
		r = ticket_table_issue(*state, &someone, PATH, 1000, TICKET_LIFE_MS, ticket, &err);
		issued += r == 0;
	}
	assert_int_equal(issued, TICKETS_MAX);
	assert_int_equal(r, -EAGAIN);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	static const struct CMUnitTest tests[] = {
		TEST(a_ticket_is_good_once),
		TEST(a_ticket_lasts_a_minute),
		TEST(a_ticket_is_good_for_its_path_alone),
		TEST(what_is_no_ticket_is_refused),
		TEST(an_owner_has_so_many_and_others_are_not_disturbed),
		TEST(the_book_has_an_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
