/* SPDX-License-Identifier: Apache-2.0 */
/* What a driver cannot do is refused with the reason, and nothing is done (core/engine/capability.c). */
#include "core_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void take_away(struct world *world, enum driver_capability capability)
{
	world->driver.base.capabilities &= ~DRIVER_BIT(capability);
}

static void assert_refused(int r, const struct err *err, const char *words)
{
	assert_true(r < 0);
	assert_int_equal(err->kind, ERR_INVALID);
	assert_string_equal(err->code, "unsupported_by_driver");
	if (!strstr(err->message, words) || !strstr(err->message, "fake"))
		fail_msg("%s", err->message);
}

/* A create must be refused before a row is written or the driver is asked. */
static void assert_create_refused(
	struct world *world, const struct sandbox_record *draft, const char *words)
{
	struct sandbox *sandbox = NULL;
	struct err err = {0};

	assert_refused(sandbox_create(world->engine, draft, &sandbox, &err), &err, words);
	assert_null(sandbox);
	assert_false(world_has_row(world, draft->id));
	assert_false(world_has_workspace(world, draft->id));
	assert_int_equal(fake_calls(&world->driver, FAKE_START), 0);
}

static char internet[] = "internet", none[] = "none";

static void set_network(struct sandbox_record *record, void *mode)
{
	json_object_set_new(record->network, "mode", json_string(mode));
}

static void set_disk(struct sandbox_record *record, void *bytes)
{
	record->resources.disk_bytes = *(uint64_t *)bytes;
}

static void every_capability_has_a_name_of_its_own(void **state)
{
	(void)state;
	for (unsigned i = 0; i < DRIVER_CAPABILITY_COUNT; i++) {
		assert_true(driver_capability_name(i)[0]);
		for (unsigned j = 0; j < i; j++)
			assert_string_not_equal(
				driver_capability_name(i), driver_capability_name(j));
	}
}

static void a_policy_that_nothing_enforces_is_refused(void **state)
{
	struct world *world = *state;
	struct sandbox_record draft;

	take_away(world, DRIVER_EGRESS_POLICY);
	world_draft(&draft, world_id('a'), "");
	set_network(&draft, internet);
	assert_create_refused(world, &draft, "connections out");
	set_network(&draft, none);
	json_object_set_new(draft.network, "secrets", json_pack("[s]", "key"));
	assert_create_refused(world, &draft, "connections out");
	sandbox_record_fini(&draft);
}

static void a_sandbox_without_network_needs_no_policy(void **state)
{
	struct world *world = *state;
	struct sandbox *sandbox;
	struct err err = {0};

	take_away(world, DRIVER_EGRESS_POLICY);
	sandbox = world_create(world, world_id('a'));
	assert_refused(
		sandbox_change(sandbox, set_network, internet, &err), &err, "connections out");
	/* The row is as it was, and the sandbox still runs. */
	world_assert_agree(world, world_id('a'));
	assert_int_equal(world_status(sandbox), SANDBOX_RUNNING);
	sandbox_unref(sandbox);
}

/* Its row is from a time, or another driver, with a policy: it must not start without one. */
static void a_start_is_refused_like_a_create(void **state)
{
	struct world *world = *state;
	struct sandbox *sandbox = world_create(world, world_id('a'));
	struct err err = {0};

	assert_int_equal(sandbox_change(sandbox, set_network, internet, &err), 0);
	assert_int_equal(sandbox_stop(sandbox, END_OPERATOR, &err), 0);
	close(world->driver.exit_peer);
	take_away(world, DRIVER_EGRESS_POLICY);
	assert_refused(sandbox_start(sandbox, &err), &err, "connections out");
	assert_int_equal(fake_calls(&world->driver, FAKE_START), 1);
	world_assert_agree(world, world_id('a'));
	sandbox_unref(sandbox);
}

static void a_disk_limit_that_nothing_enforces_is_refused(void **state)
{
	struct world *world = *state;
	struct sandbox_record draft;
	struct sandbox *sandbox = NULL;
	struct err err = {0};

	take_away(world, DRIVER_DISK_LIMIT);
	world_draft(&draft, world_id('a'), "");
	assert_create_refused(world, &draft, "limit the disk");
	draft.resources.disk_bytes = 0;
	assert_int_equal(sandbox_create(world->engine, &draft, &sandbox, &err), 0);
	sandbox_record_fini(&draft);
	sandbox_unref(sandbox);
}

static void a_limit_that_cannot_change_while_it_runs_changes_when_it_is_stopped(void **state)
{
	struct world *world = *state;
	struct sandbox *sandbox = world_create(world, world_id('a'));
	uint64_t bytes = 2ull << 30;
	struct sandbox_record record;
	struct err err = {0};

	take_away(world, DRIVER_LIVE_RESIZE);
	assert_refused(sandbox_change(sandbox, set_disk, &bytes, &err), &err, "change the limits");
	assert_int_equal(fake_calls(&world->driver, FAKE_RESIZE), 0);
	assert_int_equal(sandbox_stop(sandbox, END_OPERATOR, &err), 0);
	assert_int_equal(sandbox_change(sandbox, set_disk, &bytes, &err), 0);
	sandbox_read(sandbox, &record);
	assert_int_equal(record.resources.disk_bytes, bytes);
	sandbox_record_fini(&record);
	sandbox_unref(sandbox);
}

static void a_pause_is_refused_and_the_sandbox_runs_on(void **state)
{
	struct world *world = *state;
	struct sandbox *sandbox = world_create(world, world_id('a'));
	struct err err = {0};

	take_away(world, DRIVER_FREEZE);
	assert_refused(sandbox_pause(sandbox, &err), &err, "pause");
	assert_int_equal(fake_calls(&world->driver, FAKE_FREEZE), 0);
	assert_int_equal(world_status(sandbox), SANDBOX_RUNNING);
	sandbox_unref(sandbox);
}

/* A new daemon cannot reach what the old one left: it ends it, and the row says so. */
static void what_cannot_be_adopted_is_stopped(void **state)
{
	struct world *world = *state;
	struct sandbox_record record;

	sandbox_unref(world_create(world, world_id('a')));
	world_close(world);
	take_away(world, DRIVER_ADOPT);
	take_away(world, DRIVER_FREEZE);
	world_open(world);
	assert_int_equal(fake_calls(&world->driver, FAKE_ADOPT), 0);
	assert_true(world_row(world, world_id('a'), &record));
	assert_int_equal(record.status, SANDBOX_STOPPED);
	sandbox_record_fini(&record);
	world_assert_agree(world, world_id('a'));
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_capability_has_a_name_of_its_own),
		IN_WORLD(a_policy_that_nothing_enforces_is_refused),
		IN_WORLD(a_sandbox_without_network_needs_no_policy),
		IN_WORLD(a_start_is_refused_like_a_create),
		IN_WORLD(a_disk_limit_that_nothing_enforces_is_refused),
		IN_WORLD(a_limit_that_cannot_change_while_it_runs_changes_when_it_is_stopped),
		IN_WORLD(a_pause_is_refused_and_the_sandbox_runs_on),
		IN_WORLD(what_cannot_be_adopted_is_stopped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
