/* SPDX-License-Identifier: Apache-2.0 */
/* What a driver cannot do is refused with the reason, and nothing is done (core/engine/capability.c). */
#include "core/project/project_upload.h"
#include "core/sandbox/sandbox_request.h"
#include "core/snapshot/changes.h"
#include "core/snapshot/snapshots.h"
#include "core/template/templates.h"
#include "core_fixture.h"
#include "model/sandbox/member_spec.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
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

/* --- what the driver that is played never could --- */

static const struct sandbox_defaults defaults = {.resources = {.cpu_millis = 500,
							 .memory_bytes = 64 << 20,
							 .disk_bytes = 1 << 30,
							 .pids = 64},
	.network = {.modes = "none", .rules = ""},
	.idle_timeout_s = 900,
	.templates = "host"};

/* A world in which requests are served, with projects. */
static int setup_requests(void **state)
{
	struct projects_config config = {.file_max = 1 << 20, .types = "*"};
	char path[96];
	struct world *world;

	if (world_setup_closed(state) < 0)
		return -1;
	world = *state;
	snprintf(path, sizeof(path), "%s/projects", world->dir);
	assert_int_equal(mkdir(path, 0700), 0);
	config.dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(config.dir_fd >= 0);
	config.store = world->store;
	config.bus = world->bus;
	world->config.defaults = defaults;
	world->config.projects = projects_new(&config);
	world_open(world);
	return 0;
}

static int teardown_requests(void **state)
{
	struct world *world = *state;

	world_close(world);
	close(projects_config_of(world->config.projects)->dir_fd);
	projects_free(world->config.projects);
	return world_teardown(state);
}

static void assert_request_refused(
	struct world *world, const struct sandbox_spec *spec, const char *words)
{
	struct caller caller = {world_owner, SCOPE_ORDINARY};
	struct sandbox_request_result result = {0};
	struct err err = {0};

	assert_refused(
		sandbox_request_create(world->engine, &caller, spec, &result, &err), &err, words);
	assert_null(result.sandbox);
	assert_int_equal(fake_calls(&world->driver, FAKE_START), 0);
}

static void snapshots_are_refused(void **state)
{
	struct world *world = *state;
	struct sandbox_spec spec = {.id = world_id('b'), .snapshot = world_id('s')};
	struct snapshot_record record;
	struct snapshots_fork fork;
	struct sandbox *sandbox;
	struct err err = {0};

	assert_request_refused(world, &spec, "make snapshots");
	assert_false(world_has_row(world, spec.id));
	sandbox = world_create(world, world_id('a'));
	assert_refused(
		snapshots_take(sandbox, "before", false, &record, &err), &err, "make snapshots");
	assert_refused(snapshots_fork(sandbox, 1, &fork, &err), &err, "make snapshots");
	assert_int_equal(world_status(sandbox), SANDBOX_RUNNING);
	sandbox_unref(sandbox);
}

static void images_and_all_that_is_made_of_layers_are_refused(void **state)
{
	static const char *const packages[] = {"requests"};
	struct world *world = *state;
	struct sandbox_spec spec = {
		.id = world_id('b'), .dependencies = {.python = {packages, array_len(packages)}}};
	struct changes_query query = {.after = ""};
	struct sandbox_record draft;
	struct sandbox *sandbox;
	struct err err = {0};

	world_draft(&draft, world_id('a'), "");
	json_object_set_new(draft.image, "stack", json_string("0123"));
	assert_create_refused(world, &draft, "start sandboxes from images");
	sandbox_record_fini(&draft);
	assert_request_refused(world, &spec, "start sandboxes from images");
	assert_refused(templates_begin(world->engine, &err), &err, "start sandboxes from images");
	sandbox = world_create(world, world_id('a'));
	assert_refused(changes_find(sandbox, &query, &err), &err, "start sandboxes from images");
	sandbox_unref(sandbox);
}

static void members_are_refused(void **state)
{
	static const struct member_spec members[] = {{.role = "database", .command = "true"}};
	struct world *world = *state;
	struct sandbox_spec spec = {
		.id = world_id('b'), .members = members, .member_count = array_len(members)};

	assert_request_refused(world, &spec, "give a sandbox members");
	assert_false(world_has_row(world, spec.id));
}

/* Gives the project a file. */
static void must_upload(struct projects *projects, const struct project_record *project)
{
	const struct caller caller = {world_owner, SCOPE_ORDINARY};
	struct project_upload *upload;
	struct err err = {0};

	if (project_upload_open(projects, project, &caller, false, &upload, &err) < 0 ||
		project_upload_begin(upload, "a.txt", false, &err) < 0 ||
		project_upload_write(upload, "text\n", 5, &err) < 0 ||
		project_upload_end(upload, &err) < 0 || project_upload_commit(upload, &err) < 0)
		fail_msg("%s", err.message);
	project_upload_close(upload);
}

/* One without files has none to show, and is a name that any driver can have. */
static void files_of_a_project_are_refused_where_there_are_any(void **state)
{
	struct world *world = *state;
	struct sandbox *sandbox = NULL;
	struct project_record project;
	struct sandbox_record draft;
	struct err err = {0};

	assert_int_equal(
		projects_take(world->config.projects, &world_owner, "p", &project, &err), 0);
	world_draft(&draft, world_id('a'), "p");
	assert_int_equal(sandbox_create(world->engine, &draft, &sandbox, &err), 0);
	sandbox_unref(sandbox);
	sandbox_record_fini(&draft);
	must_upload(world->config.projects, &project);
	project_record_fini(&project);
	sandbox = NULL;
	world_draft(&draft, world_id('b'), "p");
	snprintf(draft.session, sizeof(draft.session), "other"); /* a project has one without */
	assert_refused(sandbox_create(world->engine, &draft, &sandbox, &err), &err,
		"show the files of a project");
	assert_null(sandbox);
	assert_false(world_has_row(world, draft.id));
	world_assert_agree(world, draft.id);
	sandbox_record_fini(&draft);
}

#define ASKED(test)    cmocka_unit_test_setup_teardown(test, setup_requests, teardown_requests)
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
		ASKED(snapshots_are_refused),
		ASKED(images_and_all_that_is_made_of_layers_are_refused),
		ASKED(members_are_refused),
		ASKED(files_of_a_project_are_refused_where_there_are_any),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
