/* SPDX-License-Identifier: Apache-2.0 */
/* Workspaces: they outlive their sandboxes. */
#include "core/engine/sandbox_handle.h"
#include "store/store_clock.h"
#include "store_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void a_workspace_outlives_its_sandbox_and_is_taken_up_by_its_owner(void **state)
{
	struct fixture *fixture = *state;
	struct workspace_record workspace;
	struct err err;

	must_insert(fixture->store, &alice, id_of(1), "");
	assert_int_equal(store_sandbox_delete(fixture->store, id_of(1), &err), 0);
	assert_false(exists(fixture->store, NULL, id_of(1)));
	assert_int_equal(
		store_workspace_get(fixture->store, &alice, id_of(1), &workspace, &err), 0);
	assert_int_equal(insert(fixture->store, &bob, id_of(1), "", &err), -EEXIST);
	assert_string_equal(err.code, "id_taken");
	reopen(fixture);
	must_insert(fixture->store, &alice, id_of(1), "");
}

static bool note_left(const struct workspace_record *record, void *arg)
{
	struct workspace_record *last = arg;

	*last = *record;
	return true;
}

static void what_a_removed_sandbox_left_is_listed_and_becomes_due(void **state)
{
	struct fixture *fixture = *state;
	struct workspace_record left = {0};
	struct sandbox_record record;
	char ids[4][ID_LEN + 1];
	int64_t now_ms;
	struct err err;

	must_insert(fixture->store, &alice, id_of(1), "");
	must_insert(fixture->store, &alice, id_of(2), "");
	assert_int_equal(store_sandbox_get(fixture->store, &alice, id_of(1), &record, &err), 0);
	snprintf(record.name, sizeof(record.name), "web");
	assert_int_equal(store_sandbox_update(fixture->store, &record, &err), 0);
	sandbox_record_fini(&record);
	assert_int_equal(store_sandbox_delete(fixture->store, id_of(1), &err), 0);
	now_ms = store_clock_ms(fixture->store);
	assert_int_equal(
		store_workspace_list(fixture->store, &alice, NULL, 10, note_left, &left, &err), 0);
	assert_string_equal(left.id, id_of(1));
	assert_string_equal(left.name, "web");
	assert_true(left.removed_at_ms > 0 && left.removed_at_ms <= now_ms);
	left.id[0] = '\0';
	assert_int_equal(
		store_workspace_list(fixture->store, &bob, NULL, 10, note_left, &left, &err), 0);
	assert_string_equal(left.id, "");
	assert_int_equal(
		store_workspace_due(fixture->store, now_ms, left.removed_at_ms - 1, ids, 4, &err),
		0);
	assert_int_equal(store_workspace_due(fixture->store, now_ms, now_ms, ids, 4, &err), 1);
	assert_string_equal(ids[0], id_of(1));
	/* A workspace that is taken up again is left by nobody. */
	must_insert(fixture->store, &alice, id_of(1), "");
	assert_int_equal(store_workspace_due(fixture->store, now_ms, now_ms, ids, 4, &err), 0);
}

/* Nobody knows when it was left, so its time begins with the first look. */
static void a_workspace_from_before_becomes_due_too(void **state)
{
	struct fixture *fixture = *state;
	char ids[4][ID_LEN + 1];
	struct err err;

	must_insert(fixture->store, &alice, id_of(1), "");
	assert_int_equal(store_sandbox_delete(fixture->store, id_of(1), &err), 0);
	store_close(fixture->store);
	fixture->store = NULL;
	execute(fixture->path, "UPDATE workspaces SET removed_at = 0");
	open_store(fixture);
	assert_int_equal(store_workspace_due(fixture->store, 1000, 999, ids, 4, &err), 0);
	assert_int_equal(store_workspace_due(fixture->store, 2000, 1000, ids, 4, &err), 1);
}

static void a_purged_workspace_is_gone(void **state)
{
	struct fixture *fixture = *state;
	struct workspace_record workspace;
	struct err err;

	must_insert(fixture->store, &alice, id_of(1), "");
	assert_int_equal(store_workspace_delete(fixture->store, id_of(1), &err), 0);
	assert_false(exists(fixture->store, NULL, id_of(1)));
	assert_int_equal(
		store_workspace_get(fixture->store, NULL, id_of(1), &workspace, &err), -ENOENT);
	must_insert(fixture->store, &bob, id_of(2), "");
	assert_int_equal(
		store_workspace_delete(fixture->store, id_of(1), &err), 0); /* again: fine */
	assert_true(exists(fixture->store, &bob, id_of(2)));
}

static void a_failed_insert_keeps_no_workspace(void **state)
{
	struct fixture *fixture = *state;
	struct workspace_record workspace;
	struct err err;

	must_insert(fixture->store, &alice, id_of(1), "web");
	assert_int_equal(insert(fixture->store, &alice, id_of(50), "web", &err), -EEXIST);
	assert_int_equal(
		store_workspace_get(fixture->store, NULL, id_of(50), &workspace, &err), -ENOENT);
}

/* What refers to workspaces must be as it was after the table was made anew without them. */
static void a_database_with_uid_ranges_is_taken_up_without_them(void **state)
{
	struct process_record process;
	struct fixture *fixture = *state;
	struct workspace_record workspace;
	struct err err;

	must_insert(fixture->store, &alice, id_of(1), "web");
	must_insert(fixture->store, &bob, id_of(2), "");
	assert_int_equal(store_sandbox_delete(fixture->store, id_of(2), &err), 0);
	assert_int_equal(store_workspace_set_disk(fixture->store, id_of(2), 4096, &err), 0);
	process_record_init(&process);
	snprintf(process.sandbox_id, sizeof(process.sandbox_id), "%s", id_of(1));
	process.number = 1;
	assert_int_equal(store_process_insert(fixture->store, &process, &err), 0);
	process_record_fini(&process);
	execute(fixture->path, BACK_TO_SCHEMA_17);
	reopen(fixture);
	assert_true(exists(fixture->store, &alice, id_of(1)));
	assert_int_equal(store_workspace_get(fixture->store, &bob, id_of(2), &workspace, &err), 0);
	assert_int_equal(workspace.disk_bytes, 4096);
	assert_int_equal(store_process_get(fixture->store, id_of(1), 1, &process, &err), 0);
	process_record_fini(&process);
	/* References hold again: a row without its workspace is refused. */
	process_record_init(&process);
	snprintf(process.sandbox_id, sizeof(process.sandbox_id), "%s", id_of(3));
	process.number = 1;
	assert_true(store_process_insert(fixture->store, &process, &err) < 0);
	process_record_fini(&process);
	must_insert(fixture->store, &alice, id_of(4), "");
	assert_int_equal(store_workspace_delete(fixture->store, id_of(1), &err), 0);
	assert_false(exists(fixture->store, &alice, id_of(1)));
}

static int64_t counted(struct fixture *fixture, unsigned n)
{
	struct workspace_record workspace;
	struct err err;

	assert_int_equal(store_workspace_get(fixture->store, NULL, id_of(n), &workspace, &err), 0);
	return workspace.disk_bytes;
}

/* As the schema before this one left them: a sandbox, and a workspace whose sandbox was deleted. */
static void workspaces_of_an_older_database_count_their_limit_or_are_to_be_measured(void **state)
{
	struct fixture *fixture = *state;
	char ids[4][ID_LEN + 1];
	struct err err;

	must_insert(fixture->store, &alice, id_of(1), "");
	must_insert(fixture->store, &alice, id_of(2), "");
	assert_int_equal(store_sandbox_delete(fixture->store, id_of(2), &err), 0);
	execute(fixture->path, "UPDATE sandboxes SET disk_bytes = 4096");
	execute(fixture->path, BACK_TO_SCHEMA_11);
	reopen(fixture);
	assert_int_equal(counted(fixture, 1), 4096);
	assert_int_equal(counted(fixture, 2), -1);
	assert_int_equal(store_workspace_unmeasured(fixture->store, "", ids, 4, &err), 2);
	assert_int_equal(store_workspace_set_output(fixture->store, id_of(1), 0, &err), 0);
	assert_int_equal(store_workspace_set_output(fixture->store, id_of(2), 0, &err), 0);
	assert_int_equal(store_workspace_unmeasured(fixture->store, "", ids, 4, &err), 1);
	assert_string_equal(ids[0], id_of(2));
	assert_int_equal(store_workspace_note_measured(fixture->store, id_of(2), 8192, &err), 0);
	assert_int_equal(counted(fixture, 2), 8192);
	assert_int_equal(store_workspace_unmeasured(fixture->store, "", ids, 4, &err), 0);
	/* Somebody else was faster: what they wrote stays. */
	assert_int_equal(store_workspace_note_measured(fixture->store, id_of(2), 1, &err), 0);
	assert_int_equal(counted(fixture, 2), 8192);
}

#define OPENED(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		OPENED(a_workspace_outlives_its_sandbox_and_is_taken_up_by_its_owner),
		OPENED(what_a_removed_sandbox_left_is_listed_and_becomes_due),
		OPENED(a_workspace_from_before_becomes_due_too),
		OPENED(a_purged_workspace_is_gone),
		OPENED(a_failed_insert_keeps_no_workspace),
		OPENED(a_database_with_uid_ranges_is_taken_up_without_them),
		OPENED(workspaces_of_an_older_database_count_their_limit_or_are_to_be_measured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
