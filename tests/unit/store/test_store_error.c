/* SPDX-License-Identifier: Apache-2.0 */
/* A database that cannot be read: that is never taken for a row that is not there. */
#include "store/db/db_sqlite.h"
#include "store/store_private.h"
#include "store_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Makes SQLite give up each statement of the store after its first step. */
static int give_up(void *arg)
{
	(void)arg;
	return 1;
}

static void break_store(struct fixture *fixture)
{
	sqlite3_progress_handler(db_sqlite_handle(fixture->store->db), 1, give_up, NULL);
}

static void mend_store(struct fixture *fixture)
{
	sqlite3_progress_handler(db_sqlite_handle(fixture->store->db), 0, NULL, NULL);
}

static void assert_explained(struct fixture *fixture, int r, const struct err *err)
{
	assert_true(r < 0);
	assert_int_not_equal(r, -ENOENT);
	assert_int_not_equal(err->kind, ERR_NOT_FOUND);
	assert_int_not_equal(err->kind, ERR_UNAUTHENTICATED);
	assert_non_null(strstr(err->message, fixture->path));
	assert_true(err->remedy[0]);
}

static void a_workspace_that_cannot_be_read_is_no_missing_one(void **state)
{
	struct fixture *fixture = *state;
	struct workspace_record workspace;
	struct err err = {0};
	int r;

	must_insert(fixture->store, &alice, id_of(1), "");
	break_store(fixture);
	r = store_workspace_get(fixture->store, NULL, id_of(1), &workspace, &err);
	assert_explained(fixture, r, &err);
	r = store_workspace_delete(fixture->store, id_of(1), &err);
	assert_explained(fixture, r, &err);
	mend_store(fixture);
	assert_int_equal(store_workspace_get(fixture->store, NULL, id_of(1), &workspace, &err), 0);
}

static void a_sandbox_that_cannot_be_read_is_no_missing_one(void **state)
{
	struct fixture *fixture = *state;
	struct sandbox_record record;
	struct err err = {0};
	int r;

	must_insert(fixture->store, &alice, id_of(1), "web");
	break_store(fixture);
	r = store_sandbox_get(fixture->store, NULL, id_of(1), &record, &err);
	assert_explained(fixture, r, &err);
	r = store_sandbox_find(fixture->store, &alice, "web", "", &record, &err);
	assert_explained(fixture, r, &err);
	mend_store(fixture);
	assert_true(exists(fixture->store, &alice, id_of(1)));
}

static void see_token(const struct token_record *token, void *arg)
{
	(void)token;
	++*(unsigned *)arg;
}

/* An owner that is NULL is the daemon, who sees all. */
static void an_owner_that_cannot_be_bound_is_not_everybody(void **state)
{
	struct fixture *fixture = *state;
	const struct token_record token = {.id = "t", .owner = alice};
	const unsigned char hash[32] = {1};
	struct owner owner = bob;
	struct err err = {0};
	unsigned count = 0;
	int r;

	snprintf(owner.organization, sizeof(owner.organization), "%063d", 1);
	assert_int_equal(store_token_put(fixture->store, &token, hash, &err), 0);
	/* No text may be longer than this, but the row is not. A bind without memory fails in the same way. */
	sqlite3_limit(db_sqlite_handle(fixture->store->db), SQLITE_LIMIT_LENGTH, 60);
	r = store_token_list(fixture->store, &owner, "", 9, see_token, &count, &err);
	assert_explained(fixture, r, &err);
	assert_int_equal(count, 0);
	owner = alice;
	r = store_token_list(fixture->store, &owner, "", 9, see_token, &count, &err);
	assert_int_equal(r, 0);
	assert_int_equal(count, 1);
}

static void a_link_that_cannot_be_read_is_no_wrong_one(void **state)
{
	struct fixture *fixture = *state;
	const unsigned char hash[32] = {1};
	struct preview_link link;
	struct err err = {0};
	int r;

	break_store(fixture);
	r = store_preview_link_get(fixture->store, hash, &link, &err);
	assert_explained(fixture, r, &err);
	mend_store(fixture);
}

static void a_token_that_cannot_be_read_is_no_wrong_one(void **state)
{
	struct fixture *fixture = *state;
	const unsigned char hash[32] = {1};
	struct token_record token;
	struct err err = {0};
	int r;

	break_store(fixture);
	r = store_token_find(fixture->store, hash, 0, &token, &err);
	assert_explained(fixture, r, &err);
	mend_store(fixture);
}

#define WITH_STORE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		WITH_STORE(a_workspace_that_cannot_be_read_is_no_missing_one),
		WITH_STORE(a_sandbox_that_cannot_be_read_is_no_missing_one),
		WITH_STORE(an_owner_that_cannot_be_bound_is_not_everybody),
		WITH_STORE(a_link_that_cannot_be_read_is_no_wrong_one),
		WITH_STORE(a_token_that_cannot_be_read_is_no_wrong_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
