/* SPDX-License-Identifier: Apache-2.0 */
/* How sandboxes come to be, change and go (src/core/sandbox.c, engine.c), over a driver that is played. */
#include "core_fixture.h"
#include "store/access/store_quota.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* --- create --- */

static void a_new_sandbox_runs_and_is_written(void **state)
{
	struct world *world = *state;
	struct sandbox *sandbox = world_create(world, "");
	struct sandbox_record record;

	assert_true(id_is_valid(sandbox_id(sandbox)));
	assert_int_equal(world_status(sandbox), SANDBOX_RUNNING);
	assert_true(world_row(world, sandbox_id(sandbox), &record));
	assert_int_equal(record.status, SANDBOX_RUNNING);
	assert_true(record.started_at_ms >= record.created_at_ms && record.created_at_ms > 0);
	assert_int_equal(record.expires_at_ms, 0);
	sandbox_record_fini(&record);
	world_assert_agree(world, sandbox_id(sandbox));
	sandbox_unref(sandbox);
}

static void a_lifetime_becomes_a_time_of_expiry(void **state)
{
	struct world *world = *state;
	struct sandbox_record draft, record;
	struct sandbox *sandbox;
	struct err err;

	world_draft(&draft, "", "");
	draft.lifetime_s = 60;
	assert_int_equal(sandbox_create(world->engine, &draft, &sandbox, &err), 0);
	sandbox_read(sandbox, &record);
	assert_int_equal(record.expires_at_ms, record.created_at_ms + 60000);
	sandbox_record_fini(&record);
	sandbox_record_fini(&draft);
	sandbox_unref(sandbox);
}

/* Nothing of a failed create may stay, and the same id must be free. */
static void assert_create_leaves_nothing(struct world *world)
{
	const char *id = world_id('a');
	struct sandbox_record draft;
	struct sandbox *sandbox = NULL;
	struct virtual_proc machine;
	struct err err = {0};

	world_draft(&draft, id, "project");
	assert_true(sandbox_create(world->engine, &draft, &sandbox, &err) < 0);
	assert_null(sandbox);
	assert_true(err.message[0]);
	assert_false(world_has_row(world, id));
	assert_false(world_has_workspace(world, id));
	fake_look(&world->driver, id, &machine);
	assert_false(machine.running || machine.has_layer || machine.has_workspace);
	assert_int_equal(sandbox_get(world->engine, NULL, id, &sandbox, &err), -ENOENT);
	fake_set_agent(&world->driver, FAKE_AGENT_SERVES);
	assert_int_equal(sandbox_create(world->engine, &draft, &sandbox, &err), 0);
	sandbox_unref(sandbox);
	sandbox_record_fini(&draft);
}

static void a_create_that_the_driver_refuses_leaves_nothing(void **state)
{
	struct world *world = *state;

	fake_fail(&world->driver, FAKE_START, 1);
	assert_create_leaves_nothing(world);
}

static void a_create_whose_agent_dies_leaves_nothing(void **state)
{
	struct world *world = *state;

	fake_set_agent(&world->driver, FAKE_AGENT_DIES);
	assert_create_leaves_nothing(world);
}

static void a_create_whose_agent_speaks_another_version_leaves_nothing(void **state)
{
	struct world *world = *state;

	fake_set_agent(&world->driver, FAKE_AGENT_LIES);
	assert_create_leaves_nothing(world);
}

static void a_create_that_cannot_be_inserted_leaves_nothing(void **state)
{
	struct world *world = *state;

	store_script.fail[STORE_INSERT] = 1;
	assert_create_leaves_nothing(world);
	assert_int_equal(fake_calls(&world->driver, FAKE_START), 1); /* the second one */
}

static void a_create_that_cannot_be_written_as_running_leaves_nothing(void **state)
{
	struct world *world = *state;

	store_script.fail[STORE_UPDATE] = 1;
	assert_create_leaves_nothing(world);
}

static void the_driver_s_words_say_why_a_sandbox_did_not_start(void **state)
{
	struct world *world = *state;
	struct sandbox_record draft;
	struct sandbox *sandbox = NULL;
	struct err err = {0};

	fake_set_agent(&world->driver, FAKE_AGENT_DIES);
	err_set(&world->driver.cause, ERR_UNAVAILABLE, "the host has no user namespaces");
	world_draft(&draft, "", "");
	assert_int_equal(sandbox_create(world->engine, &draft, &sandbox, &err), -EAGAIN);
	assert_int_equal(err.kind, ERR_UNAVAILABLE);
	assert_non_null(strstr(err.message, "the host has no user namespaces"));
	sandbox_record_fini(&draft);
}

static void a_failed_create_keeps_a_workspace_from_before(void **state)
{
	struct world *world = *state;
	const char *id = world_id('k');
	struct sandbox *sandbox = world_create(world, id);
	struct sandbox_record draft;
	struct virtual_proc machine;
	struct err err;

	assert_int_equal(sandbox_delete(sandbox, END_OPERATOR, &err), 0);
	sandbox_unref(sandbox);
	fake_fail(&world->driver, FAKE_START, 1);
	world_draft(&draft, id, "");
	assert_true(sandbox_create(world->engine, &draft, &sandbox, &err) < 0);
	assert_true(world_has_workspace(world, id));
	assert_false(world_has_row(world, id));
	assert_true(fake_look(&world->driver, id, &machine));
	assert_true(machine.has_workspace);
	sandbox_record_fini(&draft);
}

static struct world *raced;

/* Somebody else has created and deleted one of this id since it was looked for. */
static void come_before(enum store_op op, const char *id)
{
	struct sandbox_record record;
	struct err err;

	if (op != STORE_INSERT || atomic_exchange(&store_script.before, NULL) == NULL)
		return;
	world_draft(&record, id, "");
	assert_int_equal(store_sandbox_hold(raced->store, &record, &err), 0);
	sandbox_record_fini(&record);
	assert_int_equal(store_sandbox_delete(raced->store, id, &err), 0);
	fake_plant(&raced->driver, id, false);
}

static void a_failed_create_keeps_a_workspace_that_came_while_it_began(void **state)
{
	struct world *world = *state;
	const char *id = world_id('k');
	struct sandbox *sandbox = NULL;
	struct sandbox_record draft;
	struct virtual_proc machine;
	struct err err;

	raced = world;
	atomic_store(&store_script.before, come_before);
	fake_fail(&world->driver, FAKE_START, 1);
	world_draft(&draft, id, "");
	assert_true(sandbox_create(world->engine, &draft, &sandbox, &err) < 0);
	sandbox_record_fini(&draft);
	assert_true(world_has_workspace(world, id));
	assert_true(fake_look(&world->driver, id, &machine));
	assert_true(machine.has_workspace);
}

static void an_id_and_a_project_are_given_once(void **state)
{
	struct world *world = *state;
	struct sandbox_record draft;
	struct sandbox *first, *second;
	struct err err;

	world_draft(&draft, world_id('o'), "web");
	assert_int_equal(sandbox_create(world->engine, &draft, &first, &err), 0);
	snprintf(draft.project, sizeof(draft.project), "other");
	assert_int_equal(sandbox_create(world->engine, &draft, &second, &err), -EEXIST);
	assert_string_equal(err.code, "sandbox_exists");
	snprintf(draft.project, sizeof(draft.project), "web");
	draft.id[0] = '\0';
	assert_int_equal(sandbox_create(world->engine, &draft, &second, &err), -EEXIST);
	assert_string_equal(err.code, "project_has_sandbox");
	assert_int_equal(world_status(first), SANDBOX_RUNNING);
	draft.owner = world_stranger;
	snprintf(draft.id, sizeof(draft.id), "%s", world_id('o'));
	assert_int_equal(sandbox_create(world->engine, &draft, &second, &err), -EEXIST);
	assert_string_equal(err.code, "id_taken");
	sandbox_record_fini(&draft);
	sandbox_unref(first);
}

static void a_stranger_finds_nothing(void **state)
{
	struct world *world = *state;
	const char *id = world_id('s');
	struct sandbox *sandbox = world_create(world, id), *other = NULL;
	struct err err;

	assert_int_equal(sandbox_get(world->engine, &world_stranger, id, &other, &err), -ENOENT);
	assert_int_equal(sandbox_purge(world->engine, &world_stranger, id, &err), -ENOENT);
	assert_null(other);
	assert_int_equal(sandbox_get(world->engine, &world_owner, id, &other, &err), 0);
	assert_ptr_equal(other, sandbox);
	sandbox_unref(other);
	assert_int_equal(sandbox_get(world->engine, &world_owner, "../../etc/passwd", &other, &err),
		-ENOENT);
	assert_int_equal(sandbox_purge(world->engine, &world_owner, "", &err), -ENOENT);
	assert_int_equal(world_status(sandbox), SANDBOX_RUNNING);
	sandbox_unref(sandbox);
}

/* --- reset, delete, purge --- */

static void a_reset_empties_and_runs_again(void **state)
{
	struct world *world = *state;
	struct sandbox *sandbox = world_create(world, "");
	struct err err;

	assert_int_equal(sandbox_reset(sandbox, &err), 0);
	assert_int_equal(world->driver.parts, DRIVER_PART_SYSTEM | DRIVER_PART_SCRATCH);
	assert_int_equal(world_status(sandbox), SANDBOX_RUNNING);
	assert_int_equal(fake_calls(&world->driver, FAKE_START), 2);
	world_assert_agree(world, sandbox_id(sandbox));
	sandbox_unref(sandbox);
}

static void a_reset_of_a_stopped_sandbox_leaves_it_stopped(void **state)
{
	struct world *world = *state;
	struct sandbox *sandbox = world_create(world, "");
	struct err err;

	assert_int_equal(sandbox_stop(sandbox, END_OPERATOR, &err), 0);
	assert_int_equal(sandbox_reset(sandbox, &err), 0);
	assert_int_equal(world_status(sandbox), SANDBOX_STOPPED);
	world_assert_agree(world, sandbox_id(sandbox));
	sandbox_unref(sandbox);
}

static void a_reset_that_fails_midway_never_claims_to_run(void **state)
{
	struct world *world = *state;
	struct sandbox *sandbox = world_create(world, "");
	struct err err;

	fake_fail(&world->driver, FAKE_CLEAN, 1);
	assert_int_equal(sandbox_reset(sandbox, &err), -EAGAIN);
	assert_int_equal(world_status(sandbox), SANDBOX_STOPPED);
	world_assert_agree(world, sandbox_id(sandbox));
	sandbox_unref(sandbox);
}

static void add_label(struct sandbox_record *record, void *arg)
{
	json_decref(record->labels);
	record->labels = json_pack("{s:s}", "name", arg);
}

static void after_a_delete_every_verb_says_not_found(void **state)
{
	struct world *world = *state;
	struct sandbox *sandbox = world_create(world, "");
	struct agent_link *link = NULL;
	struct err err;

	assert_int_equal(sandbox_delete(sandbox, END_OPERATOR, &err), 0);
	assert_int_equal(sandbox_start(sandbox, &err), -ENOENT);
	assert_int_equal(sandbox_stop(sandbox, END_OPERATOR, &err), -ENOENT);
	assert_int_equal(sandbox_pause(sandbox, &err), -ENOENT);
	assert_int_equal(sandbox_resume(sandbox, &err), -ENOENT);
	assert_int_equal(sandbox_reset(sandbox, &err), -ENOENT);
	assert_int_equal(sandbox_delete(sandbox, END_OPERATOR, &err), -ENOENT);
	assert_int_equal(sandbox_use(sandbox, &link, &err), -ENOENT);
	assert_int_equal(sandbox_change(sandbox, add_label, (char[]){"x"}, &err), -ENOENT);
	assert_string_equal(err.code, "sandbox_not_found");
	world_assert_agree(world, sandbox_id(sandbox));
	sandbox_unref(sandbox);
}

static void a_deleted_sandbox_s_workspace_waits_for_the_next_of_its_id(void **state)
{
	struct world *world = *state;
	const char *id = world_id('w');
	struct sandbox *sandbox = world_create(world, id), *again;
	struct virtual_proc machine;
	struct err err;

	assert_int_equal(sandbox_delete(sandbox, END_OPERATOR, &err), 0);
	assert_true(world_has_workspace(world, id));
	fake_look(&world->driver, id, &machine);
	assert_true(machine.has_workspace && !machine.has_layer);
	again = world_create(world, id);
	fake_look(&world->driver, id, &machine);
	assert_true(machine.has_workspace && machine.has_layer);
	sandbox_unref(sandbox);
	sandbox_unref(again);
}

static void a_delete_that_cannot_be_written_can_be_tried_again(void **state)
{
	struct world *world = *state;
	struct sandbox *sandbox = world_create(world, "");
	struct err err;

	store_script.fail[STORE_DELETE] = 1;
	assert_int_equal(sandbox_delete(sandbox, END_OPERATOR, &err), -ENOSPC);
	assert_true(world_has_row(world, sandbox_id(sandbox)));
	assert_int_equal(sandbox_delete(sandbox, END_OPERATOR, &err), 0);
	world_assert_agree(world, sandbox_id(sandbox));
	sandbox_unref(sandbox);
}

static void a_purge_removes_a_running_sandbox_with_its_workspace(void **state)
{
	struct world *world = *state;
	const char *id = world_id('p');
	struct sandbox *sandbox = world_create(world, id);
	struct virtual_proc machine;
	struct err err;

	assert_int_equal(sandbox_purge(world->engine, &world_owner, id, &err), 0);
	assert_false(world_has_row(world, id));
	assert_false(world_has_workspace(world, id));
	fake_look(&world->driver, id, &machine);
	assert_false(machine.running || machine.has_layer || machine.has_workspace);
	assert_int_equal(sandbox_purge(world->engine, &world_owner, id, &err), -ENOENT);
	sandbox_unref(sandbox);
}

static void a_purge_after_a_delete_removes_the_workspace(void **state)
{
	struct world *world = *state;
	const char *id = world_id('q');
	struct sandbox *sandbox = world_create(world, id);
	struct virtual_proc machine;
	struct err err;

	assert_int_equal(sandbox_delete(sandbox, END_OPERATOR, &err), 0);
	assert_int_equal(sandbox_purge(world->engine, &world_stranger, id, &err), -ENOENT);
	assert_true(world_has_workspace(world, id));
	assert_int_equal(sandbox_purge(world->engine, &world_owner, id, &err), 0);
	assert_false(world_has_workspace(world, id));
	fake_look(&world->driver, id, &machine);
	assert_false(machine.has_workspace);
	sandbox_unref(sandbox);
}

static void a_purge_that_cannot_be_written_can_be_tried_again(void **state)
{
	struct world *world = *state;
	const char *id = world_id('q');
	struct sandbox *sandbox = world_create(world, id);
	struct err err;

	assert_int_equal(sandbox_delete(sandbox, END_OPERATOR, &err), 0);
	sandbox_unref(sandbox);
	atomic_store(&store_script.fail[STORE_WORKSPACE_DELETE], 1);
	assert_int_equal(sandbox_purge(world->engine, &world_owner, id, &err), -ENOSPC);
	/* Nothing of the attempt stays: the id is as free, or as taken, as before. */
	assert_false(world_has_row(world, id));
	assert_true(world_has_workspace(world, id));
	assert_int_equal(sandbox_purge(world->engine, &world_owner, id, &err), 0);
	assert_false(world_has_workspace(world, id));
	sandbox_unref(world_create(world, id));
}

static void a_purge_that_cannot_clean_keeps_the_row_of_the_workspace(void **state)
{
	struct world *world = *state;
	const char *id = world_id('r');
	struct sandbox *sandbox = world_create(world, id);
	struct err err;

	assert_int_equal(sandbox_delete(sandbox, END_OPERATOR, &err), 0);
	fake_fail(&world->driver, FAKE_CLEAN, 1);
	assert_int_equal(sandbox_purge(world->engine, &world_owner, id, &err), -EAGAIN);
	assert_true(world_has_workspace(world, id));
	assert_int_equal(sandbox_purge(world->engine, &world_owner, id, &err), 0);
	sandbox_unref(sandbox);
}

static void what_a_purge_could_not_clean_is_gone_before_the_next_of_its_id_starts(void **state)
{
	struct world *world = *state;
	const char *id = world_id('r');
	struct sandbox *sandbox = world_create(world, id), *again;
	unsigned cleans;
	struct err err;

	fake_fail(&world->driver, FAKE_CLEAN, 1);
	assert_int_equal(sandbox_purge(world->engine, &world_owner, id, &err), -EAGAIN);
	cleans = fake_calls(&world->driver, FAKE_CLEAN);
	world->driver.parts = 0;
	again = world_create(world, id);
	assert_int_equal(fake_calls(&world->driver, FAKE_CLEAN), cleans + 1);
	assert_int_equal(world->driver.parts, DRIVER_PART_ALL | DRIVER_PART_WORKSPACE);
	sandbox_unref(sandbox);
	sandbox_unref(again);
}

static void one_whose_workspace_is_gone_does_not_start_with_another(void **state)
{
	struct world *world = *state;
	const char *id = world_id('r');
	struct sandbox *sandbox = world_create(world, id);
	struct sandbox_record draft;
	struct sandbox *again;
	struct err err;

	assert_int_equal(sandbox_stop(sandbox, END_OPERATOR, &err), 0);
	fake_lose_workspace(&world->driver, id);
	assert_int_equal(sandbox_start(sandbox, &err), -EEXIST);
	assert_string_equal(err.code, "workspace_missing");
	assert_int_equal(world_status(sandbox), SANDBOX_ERROR);
	/* Nor is one made on it. */
	assert_int_equal(sandbox_delete(sandbox, END_OPERATOR, &err), 0);
	world_draft(&draft, id, "");
	assert_int_equal(sandbox_create(world->engine, &draft, &again, &err), -EEXIST);
	assert_string_equal(err.code, "workspace_missing");
	assert_true(world_has_workspace(world, id));
	/* Unless it was purged. */
	assert_int_equal(sandbox_purge(world->engine, &world_owner, id, &err), 0);
	assert_int_equal(sandbox_create(world->engine, &draft, &again, &err), 0);
	sandbox_record_fini(&draft);
	sandbox_unref(again);
	sandbox_unref(sandbox);
}

static void a_change_is_written_or_not_made(void **state)
{
	struct world *world = *state;
	struct sandbox *sandbox = world_create(world, "");
	struct sandbox_record record;
	struct err err;

	assert_int_equal(sandbox_change(sandbox, add_label, (char[]){"one"}, &err), 0);
	store_script.fail[STORE_UPDATE] = 1;
	assert_int_equal(sandbox_change(sandbox, add_label, (char[]){"two"}, &err), -ENOSPC);
	sandbox_read(sandbox, &record);
	assert_string_equal(json_string_value(json_object_get(record.labels, "name")), "one");
	sandbox_record_fini(&record);
	assert_true(world_row(world, sandbox_id(sandbox), &record));
	assert_string_equal(json_string_value(json_object_get(record.labels, "name")), "one");
	sandbox_record_fini(&record);
	sandbox_unref(sandbox);
}

static void set_disk(struct sandbox_record *record, void *arg)
{
	record->resources.disk_bytes = *(const uint64_t *)arg;
}

static void check_disk(struct world *world, struct sandbox *sandbox, uint64_t row, uint64_t driver)
{
	struct sandbox_record record;
	struct virtual_proc machine;

	assert_true(world_row(world, sandbox_id(sandbox), &record));
	assert_int_equal(record.resources.disk_bytes, row);
	sandbox_record_fini(&record);
	assert_true(fake_look(&world->driver, sandbox_id(sandbox), &machine));
	assert_int_equal(machine.disk_bytes, driver);
}

static void a_new_size_of_the_disk_is_the_driver_s_and_the_row_s_or_nobody_s(void **state)
{
	struct world *world = *state;
	struct sandbox *sandbox = world_create(world, "");
	uint64_t small = 1 << 20, large = 1 << 30, larger = 2ull << 30;
	struct err err;

	assert_int_equal(sandbox_change(sandbox, set_disk, &small, &err), 0);
	check_disk(world, sandbox, small, small);
	assert_int_equal(sandbox_change(sandbox, add_label, (char[]){"one"}, &err), 0);
	assert_int_equal(world->driver.calls[FAKE_RESIZE], 1);
	fake_fail(&world->driver, FAKE_RESIZE, 1);
	assert_int_equal(sandbox_change(sandbox, set_disk, &large, &err), -EAGAIN);
	check_disk(world, sandbox, small, small);
	store_script.fail[STORE_UPDATE] = 1;
	assert_int_equal(sandbox_change(sandbox, set_disk, &large, &err), -ENOSPC);
	check_disk(world, sandbox, small, small);
	assert_int_equal(sandbox_stop(sandbox, END_OPERATOR, &err), 0);
	assert_int_equal(sandbox_change(sandbox, set_disk, &larger, &err), 0);
	check_disk(world, sandbox, larger, small);
	sandbox_unref(sandbox);
}

static int64_t counted(struct world *world, const char *id)
{
	struct workspace_record workspace;
	struct err err;

	assert_int_equal(store_workspace_get(world->store, NULL, id, &workspace, &err), 0);
	return workspace.disk_bytes;
}

static void a_smaller_disk_counts_what_is_on_it(void **state)
{
	struct world *world = *state;
	struct sandbox *sandbox = world_create(world, world_id('a'));
	uint64_t small = 1 << 20, large = 1 << 30;
	struct err err;

	atomic_store(&world->driver.used_bytes, 5u << 20);
	assert_int_equal(sandbox_change(sandbox, set_disk, &small, &err), 0);
	assert_int_equal(counted(world, world_id('a')), 5u << 20);
	atomic_store(&world->driver.used_bytes, 0);
	assert_int_equal(sandbox_change(sandbox, set_disk, &large, &err), 0);
	assert_int_equal(sandbox_change(sandbox, set_disk, &small, &err), 0);
	assert_int_equal(counted(world, world_id('a')), small);
	/* A larger one that did not come about. */
	fake_fail(&world->driver, FAKE_RESIZE, 1);
	assert_int_equal(sandbox_change(sandbox, set_disk, &large, &err), -EAGAIN);
	assert_int_equal(counted(world, world_id('a')), small);
	sandbox_unref(sandbox);
}

static void a_workspace_taken_up_with_a_smaller_disk_counts_what_is_on_it(void **state)
{
	struct world *world = *state;
	struct sandbox *sandbox = world_create(world, world_id('a'));
	struct sandbox_record draft;
	struct err err;

	assert_int_equal(sandbox_delete(sandbox, END_OPERATOR, &err), 0);
	sandbox_unref(sandbox);
	assert_int_equal(counted(world, world_id('a')), 1 << 30);
	atomic_store(&world->driver.used_bytes, 5u << 20);
	world_draft(&draft, world_id('a'), "");
	draft.resources.disk_bytes = 1 << 20;
	assert_int_equal(sandbox_create(world->engine, &draft, &sandbox, &err), 0);
	assert_int_equal(counted(world, world_id('a')), 5u << 20);
	assert_int_equal(sandbox_delete(sandbox, END_OPERATOR, &err), 0);
	sandbox_unref(sandbox);
	/* A create that fails leaves no larger count behind. */
	draft.resources.disk_bytes = 8ull << 30;
	fake_fail(&world->driver, FAKE_START, 1);
	assert_true(sandbox_create(world->engine, &draft, &sandbox, &err) < 0);
	assert_int_equal(counted(world, world_id('a')), 5u << 20);
	sandbox_record_fini(&draft);
}

/* --- ensure --- */

static void ensure_creates_finds_and_wakes(void **state)
{
	struct world *world = *state;
	struct sandbox *first = NULL, *again = NULL;
	struct sandbox_record draft;
	struct err err;
	bool created = false;

	world_draft(&draft, "", "shop");
	assert_int_equal(sandbox_ensure(world->engine, &draft, &first, &created, &err), 0);
	assert_true(created);
	assert_int_equal(sandbox_ensure(world->engine, &draft, &again, &created, &err), 0);
	assert_false(created);
	assert_ptr_equal(first, again);
	sandbox_unref(again);
	assert_int_equal(sandbox_stop(first, END_IDLE, &err), 0);
	assert_int_equal(sandbox_ensure(world->engine, &draft, &again, &created, &err), 0);
	assert_false(created);
	assert_int_equal(world_status(again), SANDBOX_RUNNING);
	sandbox_unref(again);
	/* By its id as well. */
	snprintf(draft.id, sizeof(draft.id), "%s", sandbox_id(first));
	draft.project[0] = '\0';
	assert_int_equal(sandbox_ensure(world->engine, &draft, &again, &created, &err), 0);
	assert_false(created);
	assert_ptr_equal(first, again);
	sandbox_unref(again);
	sandbox_unref(first);
	sandbox_record_fini(&draft);
}

static void ensure_makes_one_anew_whose_start_failed(void **state)
{
	struct world *world = *state;
	auto_(sandbox_unrefp) struct sandbox *first = NULL, *again = NULL;
	struct sandbox_record draft;
	bool created;
	struct err err;

	world_draft(&draft, "", "web");
	assert_int_equal(sandbox_ensure(world->engine, &draft, &first, &created, &err), 0);
	assert_int_equal(sandbox_stop(first, END_OPERATOR, &err), 0);
	fake_fail(&world->driver, FAKE_START, 2);
	assert_true(sandbox_start(first, &err) < 0);
	assert_int_equal(world_status(first), SANDBOX_ERROR);
	/* It fails again: still the same one, still in error. */
	assert_true(sandbox_ensure(world->engine, &draft, &again, &created, &err) < 0);
	assert_int_equal(world_status(first), SANDBOX_ERROR);
	world->driver.parts = 0;
	assert_int_equal(sandbox_ensure(world->engine, &draft, &again, &created, &err), 0);
	assert_true(created);
	assert_ptr_equal(again, first);
	assert_int_equal(world_status(first), SANDBOX_RUNNING);
	assert_int_equal(world->driver.parts, DRIVER_PART_SYSTEM); /* the workspace stays */
	world_assert_agree(world, sandbox_id(first));
	sandbox_record_fini(&draft);
}

static void want_of_quota_is_no_fault_of_the_sandbox(void **state)
{
	struct world *world = *state;
	auto_(sandbox_unrefp) struct sandbox *sandbox = world_create(world, world_id('a'));
	struct quota quota;
	struct err err;

	assert_int_equal(sandbox_stop(sandbox, END_OPERATOR, &err), 0);
	assert_int_equal(quota_parse("running=0", &quota), 0);
	assert_int_equal(store_quota_put(world->store, &world_owner, &quota, &err), 0);
	assert_int_equal(sandbox_start(sandbox, &err), -EAGAIN);
	assert_string_equal(err.code, "quota_exceeded");
	assert_int_equal(world_status(sandbox), SANDBOX_STOPPED);
	assert_int_equal(store_quota_delete(world->store, &world_owner, &err), 0);
	assert_int_equal(sandbox_start(sandbox, &err), 0);
}

static void ensure_does_not_give_away_somebody_else_s(void **state)
{
	struct world *world = *state;
	struct sandbox *mine = world_create(world, world_id('m')), *theirs = NULL;
	struct sandbox_record draft;
	struct err err;
	bool created;

	world_draft(&draft, world_id('m'), "");
	draft.owner = world_stranger;
	assert_int_equal(sandbox_ensure(world->engine, &draft, &theirs, &created, &err), -EEXIST);
	assert_null(theirs);
	assert_false(created);
	sandbox_record_fini(&draft);
	sandbox_unref(mine);
}

/* --- events --- */

static void events_come_in_order_and_end_with_the_subscription(void **state)
{
	struct world *world = *state;
	struct sandbox *sandbox = world_create(world, ""), *other = world_create(world, "");
	struct listener listener;
	size_t count;
	struct err err;

	world_listener_open(&listener, world->engine, sandbox_id(sandbox));
	assert_int_equal(sandbox_pause(sandbox, &err), 0);
	assert_int_equal(sandbox_resume(sandbox, &err), 0);
	assert_int_equal(sandbox_stop(other, END_OPERATOR, &err), 0); /* not of this subscription */
	assert_int_equal(sandbox_stop(sandbox, END_OPERATOR, &err), 0);
	assert_int_equal(sandbox_delete(sandbox, END_OPERATOR, &err), 0);
	listener_wait(&listener, "sandbox.deleted");
	assert_int_equal(listener.count, 4);
	assert_string_equal(listener.types[0], "sandbox.paused");
	assert_string_equal(listener.types[1], "sandbox.running");
	assert_string_equal(listener.types[2], "sandbox.stopped");
	for (size_t i = 1; i < listener.count; i++)
		assert_true(listener.sequences[i] > listener.sequences[i - 1]);
	count = listener.count;
	listener_close(&listener);
	assert_int_equal(sandbox_start(other, &err), 0);
	assert_int_equal(listener.count, count);
	sandbox_unref(sandbox);
	sandbox_unref(other);
}

/* What follows the id of a purged one must not tell of whoever has it next. */
static void events_go_on_with_the_same_id_but_not_with_another_owner(void **state)
{
	struct world *world = *state;
	const char *id = world_id('w');
	struct sandbox *sandbox = world_create(world, id);
	struct sandbox_record draft;
	struct listener listener;
	struct err err;

	world_listener_open(&listener, world->engine, id);
	assert_int_equal(sandbox_purge(world->engine, &world_owner, id, &err), 0);
	sandbox_unref(sandbox);
	sandbox = world_create(world, id);
	listener_wait(&listener, "sandbox.deleted");
	listener_wait(&listener, "sandbox.running");
	assert_int_equal(sandbox_purge(world->engine, &world_owner, id, &err), 0);
	sandbox_unref(sandbox);
	world_draft(&draft, id, "");
	draft.owner = world_stranger;
	assert_int_equal(sandbox_create(world->engine, &draft, &sandbox, &err), 0);
	sandbox_record_fini(&draft);
	assert_int_equal(sandbox_stop(sandbox, END_OPERATOR, &err), 0);
	listener_wait(&listener, "sandbox.deleted");
	listener_wait(&listener, "over");
	assert_int_equal(listener.taken, listener.count);
	listener_close(&listener);
	sandbox_unref(sandbox);
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		IN_WORLD(a_new_sandbox_runs_and_is_written),
		IN_WORLD(a_lifetime_becomes_a_time_of_expiry),
		IN_WORLD(a_create_that_the_driver_refuses_leaves_nothing),
		IN_WORLD(a_create_whose_agent_dies_leaves_nothing),
		IN_WORLD(a_create_whose_agent_speaks_another_version_leaves_nothing),
		IN_WORLD(a_create_that_cannot_be_inserted_leaves_nothing),
		IN_WORLD(a_create_that_cannot_be_written_as_running_leaves_nothing),
		IN_WORLD(the_driver_s_words_say_why_a_sandbox_did_not_start),
		IN_WORLD(a_failed_create_keeps_a_workspace_from_before),
		IN_WORLD(a_failed_create_keeps_a_workspace_that_came_while_it_began),
		IN_WORLD(an_id_and_a_project_are_given_once),
		IN_WORLD(a_stranger_finds_nothing),
		IN_WORLD(a_reset_empties_and_runs_again),
		IN_WORLD(a_reset_of_a_stopped_sandbox_leaves_it_stopped),
		IN_WORLD(a_reset_that_fails_midway_never_claims_to_run),
		IN_WORLD(after_a_delete_every_verb_says_not_found),
		IN_WORLD(a_deleted_sandbox_s_workspace_waits_for_the_next_of_its_id),
		IN_WORLD(a_delete_that_cannot_be_written_can_be_tried_again),
		IN_WORLD(a_purge_removes_a_running_sandbox_with_its_workspace),
		IN_WORLD(a_purge_after_a_delete_removes_the_workspace),
		IN_WORLD(a_purge_that_cannot_be_written_can_be_tried_again),
		IN_WORLD(a_purge_that_cannot_clean_keeps_the_row_of_the_workspace),
		IN_WORLD(what_a_purge_could_not_clean_is_gone_before_the_next_of_its_id_starts),
		IN_WORLD(one_whose_workspace_is_gone_does_not_start_with_another),
		IN_WORLD(a_change_is_written_or_not_made),
		IN_WORLD(a_new_size_of_the_disk_is_the_driver_s_and_the_row_s_or_nobody_s),
		IN_WORLD(a_smaller_disk_counts_what_is_on_it),
		IN_WORLD(a_workspace_taken_up_with_a_smaller_disk_counts_what_is_on_it),
		IN_WORLD(ensure_creates_finds_and_wakes),
		IN_WORLD(ensure_makes_one_anew_whose_start_failed),
		IN_WORLD(want_of_quota_is_no_fault_of_the_sandbox),
		IN_WORLD(ensure_does_not_give_away_somebody_else_s),
		IN_WORLD(events_come_in_order_and_end_with_the_subscription),
		IN_WORLD(events_go_on_with_the_same_id_but_not_with_another_owner),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
