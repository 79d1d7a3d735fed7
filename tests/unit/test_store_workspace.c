/* SPDX-License-Identifier: Apache-2.0 */
/* Workspaces: they outlive their sandboxes, and no two share a uid range. */
#include "store_fixture.h"
#include "wire/keeper.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void a_workspace_outlives_its_sandbox_and_is_taken_up_by_its_owner(void **state)
{
	struct fixture *fixture = *state;
	uint32_t slot = must_insert(fixture->store, &alice, id_of(1), "");
	struct workspace_record workspace;
	struct err err;

	assert_int_equal(store_sandbox_delete(fixture->store, id_of(1), &err), 0);
	assert_false(exists(fixture->store, NULL, id_of(1)));
	assert_int_equal(
		store_workspace_get(fixture->store, &alice, id_of(1), &workspace, &err), 0);
	assert_int_equal(workspace.slot, slot);
	assert_int_not_equal(must_insert(fixture->store, &bob, id_of(2), ""), slot);
	assert_int_equal(insert(fixture->store, &bob, id_of(1), "", NULL, &err), -EEXIST);
	assert_string_equal(err.code, "id_taken");
	reopen(fixture);
	assert_int_not_equal(must_insert(fixture->store, &bob, id_of(3), ""), slot);
	assert_int_equal(must_insert(fixture->store, &alice, id_of(1), ""), slot);
}

static void a_purged_workspace_frees_its_uid_range(void **state)
{
	struct fixture *fixture = *state;
	uint32_t slot = must_insert(fixture->store, &alice, id_of(1), "");
	struct workspace_record workspace;
	struct err err;

	assert_int_equal(store_workspace_delete(fixture->store, id_of(1), &err), 0);
	assert_false(exists(fixture->store, NULL, id_of(1)));
	assert_int_equal(
		store_workspace_get(fixture->store, NULL, id_of(1), &workspace, &err), -ENOENT);
	assert_int_equal(must_insert(fixture->store, &bob, id_of(2), ""), slot);
	assert_int_equal(
		store_workspace_delete(fixture->store, id_of(1), &err), 0); /* again: fine */
	assert_true(exists(fixture->store, &bob, id_of(2)));
}

static void no_two_workspaces_share_a_uid_range(void **state)
{
	struct fixture *fixture = *state;
	bool taken[64] = {false};
	struct err err;

	for (unsigned i = 0; i < 40; i++) {
		uint32_t slot;

		if (i == 20) {
			for (unsigned j = 0; j < 20; j += 3) {
				struct workspace_record workspace;

				assert_int_equal(store_workspace_get(fixture->store, NULL, id_of(j),
							 &workspace, &err),
					0);
				taken[workspace.slot] = false;
				assert_int_equal(
					store_workspace_delete(fixture->store, id_of(j), &err), 0);
			}
			reopen(fixture);
		}
		slot = must_insert(fixture->store, &alice, id_of(i), "");
		assert_true(slot < array_len(taken));
		assert_false(taken[slot]);
		taken[slot] = true;
	}
}

static void uid_ranges_in_turn_are_foretold_whoever_ends_meanwhile(void **state)
{
	struct fixture *fixture = *state;
	uint32_t foretold, highest = 0;
	struct err err;

	store_workspace_take_turns(fixture->store);
	must_insert(fixture->store, &alice, id_of(0), "");
	foretold = store_workspace_next_slot(fixture->store);
	for (unsigned i = 1; i < 50; i++) {
		uint32_t slot = must_insert(fixture->store, &alice, id_of(i), "");

		assert_int_equal(slot, foretold);
		highest = slot > highest ? slot : highest;
		foretold = store_workspace_next_slot(fixture->store);
		assert_int_equal(store_sandbox_delete(fixture->store, id_of(i), &err), 0);
		assert_int_equal(store_workspace_delete(fixture->store, id_of(i), &err), 0);
	}
	assert_true(highest < 10);
}

static void the_last_free_uid_range_is_taken_whosever_turn_it_is(void **state)
{
	const unsigned last = KEEPER_SLOT_COUNT - 1, freed = last - 4;
	struct fixture *fixture = *state;
	/* All are taken but the very last. */
	auto_free char *sql = mem_printf(
		"WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < %u) "
		"INSERT INTO workspaces (id, organization, user, slot, created_at) "
		"SELECT printf('%%026d', i), 'org', 'alice', i, 1 FROM n",
		last);
	struct err err;

	execute(fixture->path, sql);
	reopen(fixture);
	store_workspace_take_turns(fixture->store);
	assert_int_equal(must_insert(fixture->store, &bob, id_of(last), ""), last);
	assert_int_equal(insert(fixture->store, &bob, id_of(last + 1), "", NULL, &err), -EAGAIN);
	assert_int_equal(store_workspace_delete(fixture->store, id_of(freed), &err), 0);
	assert_int_equal(store_workspace_next_slot(fixture->store), freed);
	assert_int_equal(must_insert(fixture->store, &bob, id_of(last + 1), ""), freed);
}

static void a_failed_insert_keeps_no_uid_range(void **state)
{
	struct fixture *fixture = *state;
	uint32_t first = must_insert(fixture->store, &alice, id_of(1), "web");
	struct err err;

	for (unsigned i = 0; i < 10; i++) {
		struct workspace_record workspace;

		assert_int_equal(
			insert(fixture->store, &alice, id_of(50), "web", NULL, &err), -EEXIST);
		assert_int_equal(
			store_workspace_get(fixture->store, NULL, id_of(50), &workspace, &err),
			-ENOENT);
	}
	assert_int_equal(must_insert(fixture->store, &alice, id_of(2), ""), first + 1);
}

static void when_all_uid_ranges_are_taken_the_answer_says_what_to_do(void **state)
{
	struct fixture *fixture = *state;
	char sql[256];
	struct err err;

	snprintf(sql, sizeof(sql),
		"WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %d)"
		" INSERT INTO workspaces SELECT printf('%%026d', i), 'o', 'u', i, 0 FROM n",
		KEEPER_SLOT_COUNT - 1);
	execute(fixture->path, sql);
	reopen(fixture);
	assert_int_equal(
		insert(fixture->store, &alice, "new00000000000000000000000", "", NULL, &err),
		-EAGAIN);
	assert_string_equal(err.code, "no_uid_range");
	assert_true(err.remedy[0]);
	assert_int_equal(store_workspace_delete(fixture->store, id_of(17), &err), 0);
	assert_int_equal(must_insert(fixture->store, &alice, "new00000000000000000000000", ""), 17);
}

/* A database that was tampered with, or written by a version with more ranges, is no reason to die. */
static void a_uid_range_that_cannot_be_is_deleted_as_any_other(void **state)
{
	struct fixture *fixture = *state;
	struct err err;

	execute(fixture->path, "INSERT INTO workspaces VALUES"
			       " ('zzzzzzzzzzzzzzzzzzzzzzzzzz', 'o', 'u', 999999999, 0)");
	reopen(fixture);
	assert_int_equal(
		store_workspace_delete(fixture->store, "zzzzzzzzzzzzzzzzzzzzzzzzzz", &err), 0);
	assert_int_equal(must_insert(fixture->store, &alice, id_of(1), ""), 0);
}

#define OPENED(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		OPENED(a_workspace_outlives_its_sandbox_and_is_taken_up_by_its_owner),
		OPENED(a_purged_workspace_frees_its_uid_range),
		OPENED(no_two_workspaces_share_a_uid_range),
		OPENED(uid_ranges_in_turn_are_foretold_whoever_ends_meanwhile),
		OPENED(the_last_free_uid_range_is_taken_whosever_turn_it_is),
		OPENED(a_failed_insert_keeps_no_uid_range),
		OPENED(when_all_uid_ranges_are_taken_the_answer_says_what_to_do),
		OPENED(a_uid_range_that_cannot_be_is_deleted_as_any_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
