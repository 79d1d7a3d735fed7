/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the daemon finds when it starts (src/core/upkeep/reconcile.c): rows and a driver that disagree, as a
 * crash at any moment leaves them. Each test seeds both, opens an engine, and looks at both.
 */
#include "core_fixture.h"

#include "core/engine/agent_link.h"
#include "core/sandbox/orphan.h"
#include "core/upkeep/engine_open.h"
#include "store/db/db_sqlite.h"
#include "store/store_clock.h"
#include "store/store_private.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void seed_at(
	struct world *world, const char *id, enum sandbox_status status, int64_t created_at_ms)
{
	struct sandbox_record record;
	struct err err = {0};

	world_draft(&record, id, "");
	record.status = status;
	record.created_at_ms = record.started_at_ms = created_at_ms;
	if (store_sandbox_insert(world->store, &record, &err) < 0)
		fail_msg("%s", err.message);
	sandbox_record_fini(&record);
}

static void seed(struct world *world, const char *id, enum sandbox_status status)
{
	seed_at(world, id, status, 1000);
}

static enum sandbox_status row_status(struct world *world, const char *id)
{
	struct sandbox_record record;

	assert_true(world_row(world, id, &record));
	sandbox_record_fini(&record);
	return record.status;
}

/* As a daemon that was killed leaves it. */
static void mark(struct world *world, const char *id, const char *word)
{
	assert_int_equal(symlinkat(word, world->unfinished_fd, id), 0);
}

static bool is_marked(struct world *world, const char *id)
{
	struct stat st;

	return fstatat(world->unfinished_fd, id, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static size_t count_orphans(struct world *world)
{
	struct orphan orphans[64];

	return orphan_list(world->engine, "", orphans, array_len(orphans));
}

static struct virtual_proc look(struct world *world, const char *id)
{
	struct virtual_proc machine;

	fake_look(&world->driver, id, &machine);
	return machine;
}

static void an_empty_world_is_fine(void **state)
{
	struct world *world = *state;

	world_open(world);
	assert_int_equal(fake_calls(&world->driver, FAKE_STOP), 0);
	assert_int_equal(fake_calls(&world->driver, FAKE_CLEAN), 0);
}

static void a_running_sandbox_is_taken_up_and_can_be_used(void **state)
{
	struct world *world = *state;
	const char *id = world_id('a');
	struct sandbox *sandbox;
	struct agent_link *link;
	struct err err;

	seed(world, id, SANDBOX_RUNNING);
	fake_plant(&world->driver, id, true);
	world_open(world);
	assert_int_equal(row_status(world, id), SANDBOX_RUNNING);
	assert_true(look(world, id).running);
	assert_int_equal(fake_calls(&world->driver, FAKE_START), 0);
	assert_int_equal(sandbox_get(world->engine, NULL, id, &sandbox, &err), 0);
	assert_int_equal(sandbox_use(sandbox, &link, &err), 0);
	assert_int_equal(fake_calls(&world->driver, FAKE_START), 0);
	agent_link_unref(link);
	assert_int_equal(sandbox_stop(sandbox, END_OPERATOR, &err), 0);
	assert_int_equal(world->driver.shutdowns, 1);
	sandbox_unref(sandbox);
}

static void a_paused_sandbox_is_taken_up_as_it_is(void **state)
{
	struct world *world = *state;
	const char *id = world_id('b');
	struct sandbox *sandbox;
	struct err err;

	seed(world, id, SANDBOX_PAUSED);
	fake_plant(&world->driver, id, true);
	world->driver.machines->frozen = true;
	world_open(world);
	assert_int_equal(row_status(world, id), SANDBOX_PAUSED);
	assert_true(look(world, id).running && look(world, id).frozen);
	assert_int_equal(sandbox_get(world->engine, NULL, id, &sandbox, &err), 0);
	assert_int_equal(sandbox_resume(sandbox, &err), 0);
	assert_false(look(world, id).frozen);
	sandbox_unref(sandbox);
}

static void a_pause_that_was_never_written_is_undone(void **state)
{
	struct world *world = *state;
	const char *id = world_id('b');

	seed(world, id, SANDBOX_RUNNING);
	fake_plant(&world->driver, id, true);
	world->driver.machines->frozen = true;
	world_open(world);
	assert_int_equal(row_status(world, id), SANDBOX_RUNNING);
	assert_true(look(world, id).running && !look(world, id).frozen);
}

static void a_row_that_says_running_of_one_that_does_not_is_stopped(void **state)
{
	struct world *world = *state;
	const char *id = world_id('c');
	struct sandbox_record record;

	seed(world, id, SANDBOX_RUNNING);
	world_open(world);
	assert_true(world_row(world, id, &record));
	assert_int_equal(record.status, SANDBOX_STOPPED);
	assert_int_equal(record.end.reason, END_AGENT_LOST);
	assert_true(record.end.detail[0]);
	sandbox_record_fini(&record);
}

/* The start does not wait for agents; one that is gone is settled as any that vanishes. */
static void one_whose_agent_is_gone_is_stopped(void **state)
{
	struct world *world = *state;
	const char *id = world_id('d');
	struct listener listener;
	struct sandbox *sandbox;
	struct err err;

	seed(world, id, SANDBOX_RUNNING);
	fake_plant(&world->driver, id, true);
	fake_set_agent(&world->driver, FAKE_AGENT_DIES);
	world_open(world);
	world_listener_open(&listener, world->engine, id);
	if (row_status(world, id) != SANDBOX_STOPPED)
		listener_wait(&listener, "sandbox.stopped");
	listener_close(&listener);
	assert_int_equal(row_status(world, id), SANDBOX_STOPPED);
	assert_false(look(world, id).running);
	/* And it starts again as any other. */
	fake_set_agent(&world->driver, FAKE_AGENT_SERVES);
	assert_int_equal(sandbox_get(world->engine, NULL, id, &sandbox, &err), 0);
	assert_int_equal(sandbox_start(sandbox, &err), 0);
	assert_true(look(world, id).running);
	sandbox_unref(sandbox);
}

static void a_start_or_stop_that_was_cut_short_is_as_it_was_acknowledged(void **state)
{
	struct world *world = *state;

	seed(world, world_id('e'), SANDBOX_STOPPED);
	fake_plant(&world->driver, world_id('e'), true);
	seed(world, world_id('f'), SANDBOX_ERROR);
	fake_plant(&world->driver, world_id('f'), true);
	world_open(world);
	assert_int_equal(row_status(world, world_id('e')), SANDBOX_STOPPED);
	assert_int_equal(row_status(world, world_id('f')), SANDBOX_ERROR);
	assert_false(look(world, world_id('e')).running);
	assert_false(look(world, world_id('f')).running);
	assert_true(look(world, world_id('e')).has_layer);
}

static void a_create_that_never_finished_is_gone(void **state)
{
	struct world *world = *state;
	const char *id = world_id('g');

	seed(world, id, SANDBOX_CREATING);
	mark(world, id, "create");
	fake_plant(&world->driver, id, true);
	world_open(world);
	assert_false(world_has_row(world, id));
	assert_false(world_has_workspace(world, id));
	assert_false(look(world, id).running);
	assert_false(look(world, id).has_layer || look(world, id).has_workspace);
	assert_false(is_marked(world, id));
}

/* The database is a copy of the moment of a create, which ended well long ago. */
static void a_row_that_says_creating_is_not_believed_without_a_mark(void **state)
{
	struct world *world = *state;
	const char *id = world_id('g');

	seed(world, id, SANDBOX_CREATING);
	fake_plant(&world->driver, id, true);
	world_open(world);
	assert_int_equal(row_status(world, id), SANDBOX_STOPPED);
	assert_false(look(world, id).running);
	assert_true(look(world, id).has_layer && look(world, id).has_workspace);
}

static void a_create_that_made_no_file_yet_is_gone(void **state)
{
	struct world *world = *state;
	const char *id = world_id('g');

	seed(world, id, SANDBOX_CREATING);
	world_open(world);
	assert_false(world_has_row(world, id) || world_has_workspace(world, id));
}

static void a_purge_that_was_cut_short_lets_go_of_the_id(void **state)
{
	struct world *world = *state;
	const char *id = world_id('g');
	struct sandbox_record record;
	struct err err;

	seed(world, id, SANDBOX_STOPPED);
	assert_int_equal(store_sandbox_delete(world->store, id, &err), 0);
	world_draft(&record, id, "");
	record.status = SANDBOX_CREATING;
	record.template_name[0] = '\0';
	assert_int_equal(store_sandbox_hold(world->store, &record, &err), 0);
	sandbox_record_fini(&record);
	fake_plant(&world->driver, id, false);
	world_open(world);
	assert_false(world_has_row(world, id));
	assert_true(world_has_workspace(world, id));
	assert_true(look(world, id).has_workspace);
	assert_int_equal(sandbox_purge(world->engine, NULL, id, &err), 0);
	assert_false(look(world, id).has_workspace || world_has_workspace(world, id));
}

/* As a purge begins. */
static void mark_purge(struct world *world, const char *id)
{
	assert_int_equal(symlinkat("purge", world->unfinished_fd, id), 0);
}

static void a_purge_that_was_begun_is_carried_through(void **state)
{
	struct world *world = *state;
	const char *running = world_id('g'), *kept = world_id('h');
	struct err err;

	seed(world, running, SANDBOX_RUNNING);
	fake_plant(&world->driver, running, true);
	mark_purge(world, running);
	seed(world, kept, SANDBOX_STOPPED);
	assert_int_equal(store_sandbox_delete(world->store, kept, &err), 0);
	fake_plant(&world->driver, kept, false);
	mark_purge(world, kept);
	world_open(world);
	for (const char *const *id = (const char *const[]){running, kept, NULL}; *id; id++) {
		assert_false(world_has_row(world, *id) || world_has_workspace(world, *id));
		assert_false(look(world, *id).running || look(world, *id).has_workspace);
		assert_int_equal(
			faccessat(world->unfinished_fd, *id, F_OK, AT_SYMLINK_NOFOLLOW), -1);
	}
}

static void a_purge_that_still_cannot_be_ended_is_stopped_and_tried_again(void **state)
{
	struct world *world = *state;
	const char *id = world_id('g');

	seed(world, id, SANDBOX_RUNNING);
	fake_plant(&world->driver, id, true);
	mark_purge(world, id);
	fake_fail(&world->driver, FAKE_CLEAN, 1);
	world_open(world);
	assert_int_equal(row_status(world, id), SANDBOX_STOPPED);
	assert_false(look(world, id).running);
	world_close(world);
	world_open(world);
	assert_false(world_has_row(world, id) || world_has_workspace(world, id));
}

static void a_create_that_never_finished_leaves_the_workspace_it_found(void **state)
{
	struct world *world = *state;
	const char *id = world_id('g');
	struct err err;

	seed_at(world, id, SANDBOX_STOPPED, 1000);
	assert_int_equal(store_sandbox_delete(world->store, id, &err), 0);
	seed_at(world, id, SANDBOX_CREATING, 2000);
	mark(world, id, "recreate");
	fake_plant(&world->driver, id, true);
	world_open(world);
	assert_false(world_has_row(world, id));
	assert_true(world_has_workspace(world, id));
	assert_false(look(world, id).running || look(world, id).has_layer);
	assert_true(look(world, id).has_workspace);
}

static void what_runs_without_a_row_is_ended_and_its_files_are_kept(void **state)
{
	struct world *world = *state;
	struct orphan orphans[2];

	fake_plant(&world->driver, world_id('h'), true);
	mark(world, world_id('k'), "create"); /* also if a mark is left, without a row */
	fake_plant(&world->driver, world_id('k'), false);
	world_open(world);
	assert_false(look(world, world_id('h')).running);
	assert_true(look(world, world_id('h')).has_layer);
	assert_true(look(world, world_id('h')).has_workspace);
	assert_true(look(world, world_id('k')).has_workspace);
	assert_false(is_marked(world, world_id('k')));
	assert_int_equal(fake_calls(&world->driver, FAKE_CLEAN), 0);
	assert_int_equal(orphan_list(world->engine, "", orphans, 2), 2);
	assert_string_equal(orphans[0].id, world_id('h'));
	assert_string_equal(orphans[1].id, world_id('k'));
	assert_int_equal(orphan_list(world->engine, orphans[0].id, orphans, 2), 1);
	assert_string_equal(orphans[0].id, world_id('k'));
}

static void the_id_of_an_orphan_is_given_to_nobody(void **state)
{
	struct world *world = *state;
	struct sandbox_record draft;
	struct sandbox *sandbox;
	struct err err = {0};

	fake_plant(&world->driver, world_id('h'), false);
	world_open(world);
	world_draft(&draft, world_id('h'), "");
	assert_int_equal(sandbox_create(world->engine, &draft, &sandbox, &err), -EEXIST);
	assert_string_equal(err.code, "id_taken");
	sandbox_record_fini(&draft);
	assert_true(look(world, world_id('h')).has_workspace);
}

static void an_orphan_that_is_adopted_keeps_its_files(void **state)
{
	struct world *world = *state;
	const char *id = world_id('h');
	struct sandbox_record draft;
	struct sandbox *sandbox;
	struct err err = {0};

	fake_plant(&world->driver, id, false);
	world_open(world);
	world_draft(&draft, id, "");
	if (orphan_adopt(world->engine, &draft, &sandbox, &err) < 0)
		fail_msg("%s", err.message);
	assert_int_equal(world_status(sandbox), SANDBOX_STOPPED);
	assert_int_equal(count_orphans(world), 0);
	assert_int_equal(orphan_adopt(world->engine, &draft, &sandbox, &err), -ENOENT);
	sandbox_record_fini(&draft);
	assert_int_equal(sandbox_start(sandbox, &err), 0);
	assert_int_equal(fake_calls(&world->driver, FAKE_CLEAN), 0);
	sandbox_unref(sandbox);
	world_close(world);
	world_open(world);
	assert_int_equal(count_orphans(world), 0);
	assert_true(world_has_row(world, id));
}

static void an_orphan_is_adopted_at_the_time_of_the_database(void **state)
{
	struct world *world = *state;
	const char *id = world_id('h');
	struct sandbox_record record;
	struct sandbox *sandbox;
	struct err err = {0};

	fake_plant(&world->driver, id, false);
	world_open(world);
	atomic_store(&world_wall_shift_ms, 3600000);
	world_draft(&record, id, "");
	assert_int_equal(orphan_adopt(world->engine, &record, &sandbox, &err), 0);
	sandbox_record_fini(&record);
	sandbox_unref(sandbox);
	assert_true(world_row(world, id, &record));
	assert_true(record.created_at_ms <= store_clock_ms(world->store));
	assert_true(record.last_active_at_ms <= store_clock_ms(world->store));
	sandbox_record_fini(&record);
}

/* Somebody removed the files by hand. */
static void an_orphan_without_files_is_not_adopted(void **state)
{
	struct world *world = *state;
	struct sandbox_record draft;
	struct sandbox *sandbox;
	struct err err = {0};

	fake_plant(&world->driver, world_id('h'), false);
	world_open(world);
	assert_int_equal(world->driver.base.ops->clean(&world->driver.base, world_id('h'),
				 DRIVER_PART_ALL | DRIVER_PART_WORKSPACE, &err),
		0);
	world_draft(&draft, world_id('h'), "");
	assert_int_equal(orphan_adopt(world->engine, &draft, &sandbox, &err), -ENOENT);
	assert_false(world_has_row(world, world_id('h')));
	sandbox_record_fini(&draft);
}

static void an_orphan_goes_when_it_is_purged(void **state)
{
	struct world *world = *state;
	const char *id = world_id('h');
	struct err err = {0};

	fake_plant(&world->driver, id, false);
	world_open(world);
	fake_fail(&world->driver, FAKE_CLEAN, 1);
	assert_true(orphan_purge(world->engine, id, &err) < 0);
	assert_int_equal(count_orphans(world), 1);
	assert_int_equal(orphan_purge(world->engine, id, &err), 0);
	assert_int_equal(orphan_purge(world->engine, id, &err), -ENOENT);
	assert_false(look(world, id).has_layer || look(world, id).has_workspace);
	sandbox_unref(world_create(world, id));
}

static int give_up(void *arg)
{
	(void)arg;
	return 1;
}

static void a_database_that_cannot_be_read_costs_no_file(void **state)
{
	struct world *world = *state;
	const char *id = world_id('h');
	struct engine *engine = NULL;
	struct err err = {0};

	fake_plant(&world->driver, id, true);
	sqlite3_progress_handler(db_sqlite_handle(world->store->db), 1, give_up, NULL);
	assert_true(engine_open(&world->config, &engine, &err) < 0);
	assert_non_null(strstr(err.message, world->database));
	assert_true(err.remedy[0]);
	sqlite3_progress_handler(db_sqlite_handle(world->store->db), 0, NULL, NULL);
	assert_true(look(world, id).running);
	assert_true(look(world, id).has_layer && look(world, id).has_workspace);
	assert_int_equal(fake_calls(&world->driver, FAKE_CLEAN), 0);
}

static void a_kept_workspace_stays_as_it_is(void **state)
{
	struct world *world = *state;
	const char *id = world_id('i');
	struct err err;

	seed(world, id, SANDBOX_STOPPED);
	assert_int_equal(store_sandbox_delete(world->store, id, &err), 0);
	fake_plant(&world->driver, id, false);
	world_open(world);
	assert_int_equal(fake_calls(&world->driver, FAKE_CLEAN), 0);
	assert_true(look(world, id).has_workspace);
	assert_true(world_has_workspace(world, id));
	assert_int_equal(count_orphans(world), 0);
}

static void a_layer_that_a_delete_could_not_remove_goes(void **state)
{
	struct world *world = *state;
	const char *id = world_id('i');
	struct sandbox *sandbox;
	struct err err;

	world_open(world);
	sandbox = world_create(world, id);
	fake_fail(&world->driver, FAKE_CLEAN, 1);
	assert_int_equal(sandbox_delete(sandbox, END_OPERATOR, &err), 0);
	sandbox_unref(sandbox);
	assert_true(look(world, id).has_layer && is_marked(world, id));
	world_close(world);
	world_open(world);
	assert_false(look(world, id).has_layer || is_marked(world, id));
	assert_true(look(world, id).has_workspace && world_has_workspace(world, id));
}

static void a_finished_create_leaves_no_mark(void **state)
{
	struct world *world = *state;
	const char *id = world_id('i');
	struct sandbox_record draft;
	struct sandbox *sandbox;
	struct err err;

	world_open(world);
	sandbox_unref(world_create(world, id));
	assert_false(is_marked(world, id));
	fake_set_agent(&world->driver, FAKE_AGENT_DIES);
	world_draft(&draft, world_id('j'), "");
	assert_true(sandbox_create(world->engine, &draft, &sandbox, &err) < 0);
	sandbox_record_fini(&draft);
	assert_false(is_marked(world, world_id('j')));
}

static void more_than_a_page_of_everything_is_dealt_with(void **state)
{
	struct world *world = *state;
	char ids[600][ID_LEN + 1];

	/* Over two pages of rows, and of strangers: a quarter stopped, a quarter unfinished, half orphans. */
	for (size_t i = 0; i < array_len(ids); i++) {
		snprintf(ids[i], sizeof(ids[i]), "%026zu", i);
		if (i % 2 == 0)
			seed(world, ids[i], i % 4 == 0 ? SANDBOX_STOPPED : SANDBOX_CREATING);
		if (i % 4 == 2)
			mark(world, ids[i], "create");
		fake_plant(&world->driver, ids[i], true);
	}
	world_open(world);
	for (size_t i = 0; i < array_len(ids); i++) {
		assert_false(look(world, ids[i]).running);
		assert_int_equal(look(world, ids[i]).has_layer, i % 4 != 2);
		assert_int_equal(world_has_row(world, ids[i]), i % 4 == 0);
		assert_int_equal(look(world, ids[i]).has_workspace, i % 4 != 2);
		assert_int_equal(orphan_exists(world->engine, ids[i]), i % 2 == 1);
	}
}

/* Each kind of call fails once, over a world in disorder; then it is run again, and must arrive. */
static void it_can_be_interrupted_anywhere_and_run_again(void **state)
{
	struct world *world = *state;
	unsigned failures = 0;

	for (int op = 0; op < FAKE_OP_COUNT; op++) {
		char ids[5][ID_LEN + 1];
		struct engine *engine = NULL;
		struct err err;

		for (int i = 0; i < 5; i++)
			snprintf(ids[i], sizeof(ids[i]), "%025d%d", op, i);
		seed(world, ids[0], SANDBOX_CREATING);
		mark(world, ids[0], "create");
		seed(world, ids[1], SANDBOX_STOPPED);
		seed(world, ids[2], SANDBOX_RUNNING);
		for (int i = 0; i < 5; i++) /* two strangers, one of which runs */
			fake_plant(&world->driver, ids[i], i != 2 && i != 4);
		fake_fail(&world->driver, op, 1);
		if (engine_open(&world->config, &engine, &err) < 0) {
			failures++;
			assert_non_null(strstr(err.message, "told to fail"));
		}
		engine_close(engine);
		fake_fail(&world->driver, op, 0);
		assert_int_equal(engine_open(&world->config, &engine, &err), 0);
		engine_close(engine);
		assert_false(world_has_row(world, ids[0]));
		assert_int_equal(row_status(world, ids[1]), SANDBOX_STOPPED);
		assert_int_equal(row_status(world, ids[2]), SANDBOX_STOPPED);
		for (int i = 0; i < 5; i++)
			assert_false(look(world, ids[i]).running);
		assert_true(look(world, ids[1]).has_layer);
		assert_false(look(world, ids[0]).has_layer || look(world, ids[0]).has_workspace);
		assert_true(look(world, ids[3]).has_layer && look(world, ids[3]).has_workspace);
		assert_true(look(world, ids[4]).has_layer && look(world, ids[4]).has_workspace);
	}
	assert_true(failures >= 3);
}

static void a_daemon_that_ends_leaves_its_sandboxes_to_the_next(void **state)
{
	struct world *world = *state;
	const char *id = world_id('j');
	struct sandbox *sandbox;
	struct err err;

	world_open(world);
	sandbox_unref(world_create(world, id));
	world_close(world);
	assert_true(look(world, id).running);
	assert_int_equal(row_status(world, id), SANDBOX_RUNNING);
	world_open(world);
	assert_int_equal(fake_calls(&world->driver, FAKE_ADOPT), 1);
	assert_int_equal(fake_calls(&world->driver, FAKE_START), 1);
	assert_int_equal(sandbox_get(world->engine, NULL, id, &sandbox, &err), 0);
	assert_int_equal(world_status(sandbox), SANDBOX_RUNNING);
	sandbox_unref(sandbox);
}

#define IN_A_WORLD(test) cmocka_unit_test_setup_teardown(test, world_setup_closed, world_teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		IN_A_WORLD(an_empty_world_is_fine),
		IN_A_WORLD(a_running_sandbox_is_taken_up_and_can_be_used),
		IN_A_WORLD(a_paused_sandbox_is_taken_up_as_it_is),
		IN_A_WORLD(a_pause_that_was_never_written_is_undone),
		IN_A_WORLD(a_row_that_says_running_of_one_that_does_not_is_stopped),
		IN_A_WORLD(one_whose_agent_is_gone_is_stopped),
		IN_A_WORLD(a_start_or_stop_that_was_cut_short_is_as_it_was_acknowledged),
		IN_A_WORLD(a_create_that_never_finished_is_gone),
		IN_A_WORLD(a_create_that_never_finished_leaves_the_workspace_it_found),
		IN_A_WORLD(a_row_that_says_creating_is_not_believed_without_a_mark),
		IN_A_WORLD(a_create_that_made_no_file_yet_is_gone),
		IN_A_WORLD(a_purge_that_was_cut_short_lets_go_of_the_id),
		IN_A_WORLD(a_purge_that_was_begun_is_carried_through),
		IN_A_WORLD(a_purge_that_still_cannot_be_ended_is_stopped_and_tried_again),
		IN_A_WORLD(what_runs_without_a_row_is_ended_and_its_files_are_kept),
		IN_A_WORLD(the_id_of_an_orphan_is_given_to_nobody),
		IN_A_WORLD(an_orphan_that_is_adopted_keeps_its_files),
		IN_A_WORLD(an_orphan_is_adopted_at_the_time_of_the_database),
		IN_A_WORLD(an_orphan_without_files_is_not_adopted),
		IN_A_WORLD(an_orphan_goes_when_it_is_purged),
		IN_A_WORLD(a_database_that_cannot_be_read_costs_no_file),
		IN_A_WORLD(a_kept_workspace_stays_as_it_is),
		IN_A_WORLD(a_layer_that_a_delete_could_not_remove_goes),
		IN_A_WORLD(a_finished_create_leaves_no_mark),
		IN_A_WORLD(more_than_a_page_of_everything_is_dealt_with),
		IN_A_WORLD(it_can_be_interrupted_anywhere_and_run_again),
		IN_A_WORLD(a_daemon_that_ends_leaves_its_sandboxes_to_the_next),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
