/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The use cases without any HTTP or JSON of a request: a caller, plain structs, and src/core. What works
 * here works for every way into the daemon.
 */
#include "core/engine/sandbox_network.h"
#include "core/preview/preview_access.h"
#include "core/preview/wake_rules.h"
#include "core/process/command_run.h"
#include "core/sandbox/limit_warning.h"
#include "core/sandbox/sandbox_request.h"
#include "core/sandbox/sandbox_stats.h"
#include "core/token/token_request.h"
#include "process_stage.h"
#include "wire/agent.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct caller owner_with(unsigned scopes)
{
	return (struct caller){world_owner, scopes};
}

static const struct sandbox_defaults defaults = {.resources = {.cpu_millis = 500,
							 .memory_bytes = 64 << 20,
							 .disk_bytes = 1 << 30,
							 .pids = 64},
	.network = {.modes = "none,browser=internet", .rules = ""},
	.idle_timeout_s = 900,
	.templates = "host"};

static atomic_uint_fast64_t generation;

static int setup(void **state)
{
	struct world *world;

	if (world_setup_closed(state) < 0)
		return -1;
	world = *state;
	world->config.defaults = defaults;
	world->config.preview_generation = &generation;
	world_open(world);
	return 0;
}

static struct sandbox *must_create(
	struct world *world, const struct caller *caller, const struct sandbox_spec *spec)
{
	struct sandbox_request_result result = {0};
	struct err err = {0};

	if (sandbox_request_create(world->engine, caller, spec, &result, &err) < 0)
		fail_msg("%s", err.message);
	return result.sandbox;
}

static void assert_refused(struct world *world, unsigned scopes, const struct sandbox_spec *spec,
	enum err_kind kind, const char *code)
{
	struct caller caller = owner_with(scopes);
	struct sandbox_request_result result = {0};
	struct err err = {0};

	assert_true(sandbox_request_create(world->engine, &caller, spec, &result, &err) < 0);
	assert_null(result.sandbox);
	assert_int_equal(err.kind, kind);
	assert_string_equal(err.code, code);
	assert_int_equal(fake_calls(&world->driver, FAKE_START), 0);
}

/* --- create --- */

static void a_create_of_zeros_gets_the_defaults(void **state)
{
	struct world *world = *state;
	struct caller caller = owner_with(SCOPE_ORDINARY);
	struct sandbox *sandbox = must_create(world, &caller, &(struct sandbox_spec){0});
	struct sandbox_record record;

	sandbox_read(sandbox, &record);
	assert_true(id_is_valid(record.id));
	assert_string_equal(record.template_name, "host");
	assert_string_equal(record.project, "");
	assert_true(sandbox_record_is_of(&record, &world_owner));
	assert_memory_equal(&record.resources, &defaults.resources, sizeof(record.resources));
	assert_int_equal(record.idle_timeout_s, 900);
	assert_int_equal(record.lifetime_s, SANDBOX_NO_LIMIT);
	assert_true(record.is_private);
	assert_string_equal(json_string_value(json_object_get(record.network, "mode")), "none");
	sandbox_record_fini(&record);
	sandbox_unref(sandbox);
}

static void a_create_is_as_it_was_asked_for(void **state)
{
	struct world *world = *state;
	struct caller caller = owner_with(SCOPE_ORDINARY);
	const struct text_pair env[] = {{"A", "1"}}, labels[] = {{"team", "x"}};
	const struct port_spec ports[] = {
		{.number = 3000}, {.number = 8080, .is_public = CHOICE_YES, .keeps_prefix = true}};
	const char *const allow[] = {"example.org:443"};
	struct sandbox_spec spec = {.id = world_id('a'),
		.project = "p",
		.resources.pids = 10,
		.env = {env, 1},
		.labels = {labels, 1},
		.ports = ports,
		.port_count = 2,
		.network.allow = {allow, 1},
		.idle_timeout_s = SANDBOX_NO_LIMIT,
		.lifetime_s = 60,
		.is_private = CHOICE_NO};
	struct sandbox *sandbox = must_create(world, &caller, &spec);
	json_auto_t *network = json_pack("{s:s, s:[s]}", "mode", "allowlist", "allow", allow[0]);
	json_auto_t *kept = json_pack(
		"[i, {s:i, s:b, s:s}]", 3000, "port", 8080, "public", 1, "prefix", "keep");
	struct sandbox_record record;

	sandbox_read(sandbox, &record);
	assert_string_equal(record.id, world_id('a'));
	assert_string_equal(record.project, "p");
	assert_int_equal(record.resources.pids, 10);
	assert_int_equal(record.resources.cpu_millis, defaults.resources.cpu_millis);
	assert_string_equal(json_string_value(json_object_get(record.env, "A")), "1");
	assert_string_equal(json_string_value(json_object_get(record.labels, "team")), "x");
	assert_true(json_equal(record.network, network));
	assert_true(json_equal(record.ports, kept));
	assert_int_equal(record.idle_timeout_s, SANDBOX_NO_LIMIT);
	assert_int_equal(record.expires_at_ms, record.created_at_ms + 60000);
	assert_false(record.is_private);
	sandbox_record_fini(&record);
	sandbox_unref(sandbox);
}

static void what_nobody_may_have_is_refused_before_anything_is_made(void **state)
{
	struct world *world = *state;
	const struct text_pair env[] = {{"1A", ""}};
	const char *const private[] = {"10.0.0.0/8"}, *const secrets[] = {"none-such"};
	const struct start_spec start = {.name = "main", .command = "sleep 1"};
	const struct port_spec twice[] = {{.number = 1}, {.number = 1}};

#define REFUSED(scopes, kind, code, ...)                                                           \
	assert_refused(world, scopes, &(struct sandbox_spec){__VA_ARGS__}, kind, code)
	REFUSED(SCOPE_ORDINARY, ERR_INVALID, "template_not_found", .template_name = "none-such");
	REFUSED(SCOPE_ORDINARY, ERR_INVALID, "template_not_offered", .template_name = "browser");
	REFUSED(SCOPE_ORDINARY, ERR_INVALID, "invalid_field", .id = "../x");
	REFUSED(SCOPE_ORDINARY, ERR_INVALID, "invalid_field", .project = "-");
	REFUSED(SCOPE_ORDINARY, ERR_INVALID, "invalid_field", .env = {env, 1});
	REFUSED(SCOPE_ORDINARY, ERR_INVALID, "invalid_field", .resources.memory_bytes = 1);
	REFUSED(SCOPE_ORDINARY, ERR_INVALID, "invalid_field", .ports = twice, .port_count = 2);
	REFUSED(SCOPE_ORDINARY, ERR_INVALID, "invalid_field", .network.mode = "all");
	REFUSED(SCOPE_ORDINARY, ERR_INVALID, "invalid_field", .network.connections = 7);
	REFUSED(SCOPE_ORDINARY, ERR_INVALID, "invalid_field", .lifetime_s = -2);
	REFUSED(SCOPE_ORDINARY, ERR_INVALID, "secret_not_found", .network.secrets = {secrets, 1});
	REFUSED(SCOPE_ORDINARY, ERR_DENIED, "private_rule", .network.allow = {private, 1});
	REFUSED(SCOPE_MANAGE, ERR_DENIED, "missing_scope", .starts = &start, .start_count = 1);
#undef REFUSED
}

static void a_second_try_gets_what_the_first_has_made(void **state)
{
	struct world *world = *state;
	struct caller caller = owner_with(SCOPE_ORDINARY);
	struct sandbox_spec spec = {.id = world_id('b')};
	struct sandbox *first = must_create(world, &caller, &spec), *second;
	struct sandbox_request_result result = {0};
	struct sandbox_record record;
	struct err err;

	assert_int_equal(
		sandbox_request_create(world->engine, &caller, &spec, &result, &err), -EEXIST);
	sandbox_read(first, &record);
	sandbox_record_fini(&record);
	spec.tried_at_ms = record.created_at_ms;
	second = must_create(world, &caller, &spec);
	assert_ptr_equal(first, second);
	assert_int_equal(fake_calls(&world->driver, FAKE_START), 1);
	sandbox_unref(second);
	sandbox_unref(first);
}

static void ensure_makes_one_of_a_project_and_finds_it_again(void **state)
{
	struct world *world = *state;
	struct caller caller = owner_with(SCOPE_ORDINARY);
	struct sandbox_spec spec = {.project = "p"};
	struct sandbox_request_result first = {0}, second = {0};
	struct err err;

	assert_int_equal(sandbox_request_ensure(world->engine, &caller, &spec, &first, &err), 0);
	assert_true(first.is_created);
	assert_int_equal(sandbox_request_ensure(world->engine, &caller, &spec, &second, &err), 0);
	assert_false(second.is_created);
	assert_ptr_equal(first.sandbox, second.sandbox);
	sandbox_unref(first.sandbox);
	sandbox_unref(second.sandbox);
}

static void a_change_says_what_is_new_and_leaves_the_rest(void **state)
{
	struct world *world = *state;
	struct caller caller = owner_with(SCOPE_MANAGE);
	const struct text_pair labels[] = {{"a", "b"}};
	const struct port_spec port = {.number = 3000};
	struct sandbox *sandbox = must_create(
		world, &caller, &(struct sandbox_spec){.labels = {labels, 1}, .lifetime_s = 60});
	const struct start_spec start = {.name = "main", .command = "sleep 1"};
	uint64_t before = atomic_load(&generation);
	struct sandbox_record record;
	struct sandbox_port shown;
	struct err err;

	assert_int_equal(
		sandbox_request_change(sandbox, &caller,
			&(struct sandbox_change){.starts = &start, .start_count = 1}, &err),
		-EPERM);
	assert_int_equal(sandbox_request_change(sandbox, &caller,
				 &(struct sandbox_change){.idle_timeout_s = 5}, &err),
		0);
	assert_int_equal(atomic_load(&generation), before);
	assert_int_equal(sandbox_request_change(sandbox, &caller,
				 &(struct sandbox_change){.ports = &port, .port_count = 1}, &err),
		0);
	assert_true(atomic_load(&generation) > before);
	assert_int_equal(
		sandbox_request_change_port(sandbox,
			&(struct sandbox_port_change){.number = 8080, .is_public = CHOICE_YES},
			&shown, &err),
		0);
	assert_true(shown.is_public);
	sandbox_read(sandbox, &record);
	assert_int_equal(record.idle_timeout_s, 5);
	assert_int_equal(record.lifetime_s, 60);
	assert_int_equal(json_object_size(record.labels), 1);
	assert_int_equal(json_array_size(record.ports), 2);
	sandbox_record_fini(&record);
	sandbox_unref(sandbox);
}

/* --- lists, figures --- */

struct names {
	char ids[8][ID_LEN + 1];
	size_t count;
};

static bool note_id(const struct sandbox_record *record, void *arg)
{
	struct names *names = arg;

	memcpy(names->ids[names->count++], record->id, ID_LEN + 1);
	return true;
}

static struct names list(
	struct world *world, const struct caller *caller, const struct sandbox_filter *filter)
{
	struct names names = {0};
	struct err err = {0};

	if (sandbox_request_list(world->engine, caller, filter, note_id, &names, &err) < 0)
		fail_msg("%s", err.message);
	return names;
}

static void a_caller_lists_their_own_by_filter_and_page(void **state)
{
	struct world *world = *state;
	struct caller caller = owner_with(SCOPE_READ), stranger = {world_stranger, SCOPE_ADMIN};
	const struct text_pair labels[] = {{"a", "b"}};
	struct names names;
	struct err err;

	sandbox_unref(must_create(world, &caller, &(struct sandbox_spec){.id = world_id('1')}));
	sandbox_unref(must_create(world, &caller,
		&(struct sandbox_spec){.id = world_id('2'), .labels = {labels, 1}}));
	assert_int_equal(list(world, &stranger, &(struct sandbox_filter){.limit = 8}).count, 0);
	assert_int_equal(list(world, &caller, &(struct sandbox_filter){.limit = 8}).count, 2);
	names = list(world, &caller,
		&(struct sandbox_filter){.limit = 8, .label = {"a", "b"}, .status = "running"});
	assert_int_equal(names.count, 1);
	assert_string_equal(names.ids[0], world_id('2'));
	names = list(world, &caller, &(struct sandbox_filter){.limit = 8, .after = world_id('1')});
	assert_int_equal(names.count, 1);
	assert_string_equal(names.ids[0], world_id('2'));
	assert_int_equal(sandbox_request_list(world->engine, &caller,
				 &(struct sandbox_filter){.limit = 8, .status = "dreaming"},
				 note_id, &names, &err),
		-EINVAL);
	assert_int_equal(sandbox_request_list(world->engine, &caller,
				 &(struct sandbox_filter){.limit = 8, .after = "../x"}, note_id,
				 &names, &err),
		-EINVAL);
}

static void figures_are_those_of_the_driver_and_the_limits(void **state)
{
	struct world *world = *state;
	struct caller caller = owner_with(SCOPE_ORDINARY);
	struct sandbox *sandbox = must_create(world, &caller, &(struct sandbox_spec){0});
	struct sandbox_network_report network;
	struct sandbox_stats stats;
	struct err err;

	world->driver.stats = (struct driver_stats){.cpu_us = 7, .memory_bytes = 8, .pids = 2};
	atomic_store(&world->driver.used_bytes, 4096);
	assert_int_equal(sandbox_stats_read(sandbox, &stats, &err), 0);
	assert_int_equal(stats.cpu_us, 7);
	assert_int_equal(stats.memory_bytes, 8);
	assert_int_equal(stats.pids, 2);
	assert_int_equal(stats.disk_bytes, 4096);
	assert_int_equal(stats.limits.pids, defaults.resources.pids);
	assert_int_equal(sandbox_stop(sandbox, END_OPERATOR, &err), 0);
	assert_int_equal(sandbox_stats_read(sandbox, &stats, &err), 0);
	assert_int_equal(stats.cpu_us, 0);
	assert_int_equal(stats.disk_bytes, 4096);
	sandbox_network_read(sandbox, &network);
	assert_int_equal(network.counters.connections, 0);
	sandbox_network_report_fini(&network);
	sandbox_unref(sandbox);
}

/* --- commands --- */

static bool has_variable(const struct command *command, const char *variable)
{
	for (char **entry = command->env; *entry; entry++) {
		if (strcmp(*entry, variable) == 0)
			return true;
	}
	return false;
}

static void a_line_runs_with_the_defaults_and_its_output_comes(void **state)
{
	struct world *world = *state;
	struct caller caller = owner_with(SCOPE_ORDINARY);
	const struct text_pair own[] = {{"B", "2"}}, env[] = {{"A", "1"}, {"B", "1"}};
	struct command command;
	struct stage stage;
	struct err err;

	fake_set_agent(&world->driver, FAKE_AGENT_MANUAL);
	stage_enter(&stage, world,
		must_create(world, &caller, &(struct sandbox_spec){.env = {env, 2}}));
	assert_int_equal(
		command_make(stage.sandbox,
			&(struct command_spec){.line = "echo hi", .env = {own, 1}}, &command, &err),
		0);
	assert_string_equal(command.argv[0], "/bin/sh");
	assert_string_equal(command.argv[2], "echo hi");
	assert_null(command.argv[3]);
	assert_string_equal(command.spec.cwd, "/workspace");
	assert_int_equal(command.spec.uid, 1000);
	assert_true(command.spec.kills_tree);
	assert_false(command.spec.is_kept);
	assert_true(command.cancels_with_caller);
	assert_true(has_variable(&command, "A=1"));
	assert_true(has_variable(&command, "B=2"));
	stage_run(&stage, &command.spec);
	command_fini(&command);
	say_started(&stage, 40);
	say_text(&stage, 0, 1, "hi\n");
	heard_wait_output(&stage.heard, 1, 3);
	say_exited(&stage, 0, 3);
	heard_wait(&stage.heard, has_ended);
	assert_int_equal(stage.heard.end.exit_code, 0);
	stage_fini(&stage, true);
}

/* What a caller who waits was told. */
struct answer {
	sem_t told, released;
	bool is_failure;
	int exit_code;
	char output[2][64];
	bool is_cut[2];
};

static void note_answer(void *arg, const struct command_run_end *end)
{
	struct answer *answer = arg;

	answer->is_failure = end->failure;
	answer->exit_code = end->end->exit_code;
	for (size_t i = 0; i < 2; i++) {
		snprintf(answer->output[i], sizeof(answer->output[i]), "%.*s",
			(int)end->output[i].len,
			end->output[i].data ? (const char *)end->output[i].data : "");
		answer->is_cut[i] = end->output[i].is_cut;
	}
	sem_post(&answer->told);
}

static void note_release(void *arg)
{
	sem_post(&((struct answer *)arg)->released);
}

/* Runs a line in a new sandbox, with an answer of at most ten bytes a stream. */
static struct command_run *run_line(struct stage *stage, struct world *world,
	const struct command_spec *spec, struct answer *answer)
{
	static const struct command_run_events events = {note_answer, note_release};
	const struct command_run_limits limits = {
		.spool_fd = world->config.logs_fd, .output_max = 10};
	struct caller caller = owner_with(SCOPE_ORDINARY);
	struct command_run *run;
	struct wire_frame frame;
	struct command command;
	struct err err;

	*answer = (struct answer){0};
	sem_init(&answer->told, 0, 0);
	sem_init(&answer->released, 0, 0);
	fake_set_agent(&world->driver, FAKE_AGENT_MANUAL);
	stage_enter(stage, world, must_create(world, &caller, &(struct sandbox_spec){0}));
	assert_int_equal(command_make(stage->sandbox, spec, &command, &err), 0);
	assert_int_equal(
		command_run_new(stage->sandbox, &command, &limits, &events, answer, &run, &err), 0);
	assert_int_equal(command_run_start(run, &command, &err), 0);
	command_fini(&command);
	wire_expect(stage->peer, AGENT_EXEC, &frame);
	stage->id = frame.id;
	return run;
}

static void end_run(struct stage *stage, struct command_run *run, struct answer *answer)
{
	world_await(&answer->released);
	command_run_unref(run);
	stage_fini(stage, false);
	sem_destroy(&answer->told);
	sem_destroy(&answer->released);
}

static void a_caller_who_waits_gets_the_end_and_bounded_output(void **state)
{
	struct command_run *run;
	struct answer answer;
	struct stage stage;

	run = run_line(&stage, *state, &(struct command_spec){.line = "echo"}, &answer);
	say_started(&stage, 40);
	/* The eleventh byte is the second half of a character: neither half is told. */
	say_text(&stage, 0, 1, "123456789\xc3\xa9");
	say_text(&stage, 11, 2, "oops\n");
	say_exited(&stage, 3 << 8, 16);
	world_await(&answer.told);
	assert_false(answer.is_failure);
	assert_int_equal(answer.exit_code, 3);
	assert_string_equal(answer.output[0], "123456789");
	assert_true(answer.is_cut[0]);
	assert_string_equal(answer.output[1], "oops\n");
	assert_false(answer.is_cut[1]);
	end_run(&stage, run, &answer);
}

static void a_command_that_never_ran_is_explained(void **state)
{
	struct command_run *run;
	struct answer answer;
	struct stage stage;

	run = run_line(
		&stage, *state, &(struct command_spec){.line = "echo", .cwd = "/none"}, &answer);
	say_failed(&stage, AGENT_STAGE_CWD, ENOENT);
	world_await(&answer.told);
	assert_true(answer.is_failure);
	end_run(&stage, run, &answer);
}

static void a_caller_who_leaves_takes_the_command_along_unless_it_is_kept(void **state)
{
	struct command_run *run;
	struct answer answer;
	struct stage stage;

	run = run_line(&stage, *state, &(struct command_spec){.line = "echo"}, &answer);
	say_started(&stage, 40);
	assert_true(command_run_leave(run));
	expect_kill(&stage);
	say_exited(&stage, 9, 0);
	world_await(&answer.told);
	end_run(&stage, run, &answer);

	run = run_line(&stage, *state,
		&(struct command_spec){.line = "echo", .is_kept = CHOICE_YES}, &answer);
	say_started(&stage, 41);
	assert_false(command_run_leave(run));
	end_run(&stage, run, &answer);
	assert_false(answer.is_failure || answer.exit_code);
}

static void what_a_command_is_follows_from_how_it_is_asked_for(void **state)
{
	struct world *world = *state;
	struct sandbox *sandbox = world_create(world, "");
	const char *const argv[] = {"true"};
	struct command command;
	struct err err;

#define MADE(...)                                                                                  \
	assert_int_equal(                                                                          \
		command_make(sandbox, &(struct command_spec){__VA_ARGS__}, &command, &err), 0)
	MADE(.argv = {argv, 1}, .is_streamed = true, .user = "root");
	assert_true(command.spec.is_kept && command.spec.is_paced && command.cancels_with_caller);
	assert_int_equal(command.spec.uid, 0);
	command_fini(&command);
	MADE(.line = "x", .is_kept = CHOICE_YES);
	assert_true(command.spec.is_kept && !command.spec.is_paced && !command.cancels_with_caller);
	command_fini(&command);
	MADE(.line = "x", .is_background = true);
	assert_true(command.spec.is_kept && command.spec.keeps_input_open);
	command_fini(&command);
	MADE(.line = "x", .is_background = true, .input = "", .input_len = 0);
	assert_false(command.spec.keeps_input_open);
	command_fini(&command);
	MADE(.is_login_shell = true, .is_background = true, .is_pty = true);
	assert_string_equal(command.argv[0], "/bin/bash");
	assert_int_equal(command.spec.columns, 80);
	assert_true(command.spec.keeps_input_open);
	command_fini(&command);
#undef MADE
	sandbox_unref(sandbox);
}

static void a_command_that_makes_no_sense_is_refused(void **state)
{
	struct world *world = *state;
	struct sandbox *sandbox = world_create(world, "");
	const char *const empty[] = {""};
	const struct text_pair env[] = {{"A=B", ""}};
	const struct command_spec specs[] = {{0}, {.line = ""}, {.argv = {empty, 1}},
		{.line = "x", .argv = {empty, 1}}, {.line = "x", .cwd = "relative"},
		{.line = "x", .user = "nobody"}, {.line = "x", .user = "65535"},
		{.line = "x", .env = {env, 1}}, {.line = "x", .is_pty = true},
		{.line = "x", .columns = 80}, {.line = "x", .keeps_input = CHOICE_YES},
		{.line = "x", .is_background = true, .is_kept = CHOICE_NO},
		{.line = "x", .timeout_ms = COMMAND_TIMEOUT_MAX_MS + 1},
		{.line = "x", .is_background = true, .is_pty = true, .rows = 1001}};
	struct command command;
	struct err err;

	for (size_t i = 0; i < array_len(specs); i++) {
		if (command_make(sandbox, &specs[i], &command, &err) != -EINVAL)
			fail_msg("%zu was taken", i);
	}
	sandbox_unref(sandbox);
}

/* --- previews --- */

static const unsigned char link_hash[PREVIEW_HASH_LEN] = {1}, other_hash[PREVIEW_HASH_LEN] = {2};

struct visit {
	struct engine *engine;
	struct sandbox_record record;
};

static int see(struct visit *visit, uint16_t port, const struct preview_visitor *visitor,
	struct preview_grant *ret_grant)
{
	return preview_access_check(visit->engine, &visit->record, port, visitor, ret_grant);
}

static void who_may_see_a_port_follows_from_port_token_and_link(void **state)
{
	struct world *world = *state;
	struct caller caller = owner_with(SCOPE_ORDINARY);
	const struct port_spec ports[] = {
		{.number = 3000}, {.number = 8080, .is_public = CHOICE_YES}};
	struct sandbox *sandbox = must_create(
		world, &caller, &(struct sandbox_spec){.ports = ports, .port_count = 2});
	const struct preview_token own = {.caller = owner_with(SCOPE_READ),
		.grant = {.opener = PREVIEW_BY_SIGNED, .expires_at_ms = 99}};
	const struct preview_token blind = {.caller = owner_with(SCOPE_RUN)};
	const struct preview_token strange = {.caller = {world_stranger, SCOPE_ADMIN}};
	const struct preview_visitor nobody = {0}, owner = {.tokens = &own, .token_count = 1};
	const struct preview_visitor stranger = {.tokens = &strange, .token_count = 1};
	const struct preview_visitor weak = {.tokens = &blind, .token_count = 1};
	unsigned char shown[2][PREVIEW_HASH_LEN];
	struct preview_visitor guest = {
		.links = (const unsigned char(*)[PREVIEW_HASH_LEN])shown, .link_count = 2};
	struct visit visit = {.engine = world->engine};
	struct preview_grant grant;
	struct preview_link link;
	struct err err;

	memcpy(shown[0], other_hash, PREVIEW_HASH_LEN);
	memcpy(shown[1], link_hash, PREVIEW_HASH_LEN);
	sandbox_read(sandbox, &visit.record);
	assert_int_equal(see(&visit, 8080, &nobody, &grant), 0);
	assert_int_equal(grant.opener, PREVIEW_BY_ALL);
	assert_int_equal(see(&visit, 3000, &nobody, &grant), -EACCES);
	assert_int_equal(see(&visit, 3000, &stranger, &grant), -EACCES);
	assert_int_equal(see(&visit, 3000, &weak, &grant), -EACCES);
	assert_int_equal(see(&visit, 3000, &owner, &grant), 0);
	assert_int_equal(grant.opener, PREVIEW_BY_SIGNED);
	assert_int_equal(see(&visit, 4000, &owner, &grant), 0);
	assert_int_equal(see(&visit, 3000, &guest, &grant), -EACCES);

	assert_int_equal(preview_access_add_link(sandbox, &(struct preview_link_spec){.port = 4000},
				 link_hash, &link, &err),
		-ENOENT);
	assert_int_equal(preview_access_add_link(sandbox, &(struct preview_link_spec){.port = 3000},
				 link_hash, &link, &err),
		0);
	assert_int_equal(preview_access_find_frame(world->engine, link_hash, &link), -ENOENT);
	assert_int_equal(link.expires_at_ms - link.created_at_ms, 86400 * 1000);
	assert_int_equal(see(&visit, 3000, &guest, &grant), 0);
	assert_int_equal(grant.opener, PREVIEW_BY_LINK);
	assert_int_equal(see(&visit, 4000, &guest, &grant), -EACCES);
	assert_true(preview_access_is_open(world->engine, &visit.record, 3000, &grant));
	assert_int_equal(preview_access_remove_link(sandbox, 3000, link.id, &err), 0);
	assert_false(preview_access_is_open(world->engine, &visit.record, 3000, &grant));
	assert_int_equal(see(&visit, 3000, &guest, &grant), -EACCES);
	sandbox_record_fini(&visit.record);
	sandbox_unref(sandbox);
}

/* --- previews that sleep --- */

static void a_visit_wakes_unless_it_is_idle_or_the_start_failed(void **state)
{
	struct world *world = *state;
	struct caller caller = owner_with(SCOPE_ORDINARY);
	struct sandbox *sandbox = must_create(world, &caller, &(struct sandbox_spec){0});
	struct wake_rules *rules = wake_rules_new();
	struct sandbox_record record;
	const char *id = sandbox_id(sandbox);
	char message[WAKE_RULES_MESSAGE_MAX] = "";
	struct err err;

	assert_int_equal(sandbox_stop(sandbox, END_OPERATOR, &err), 0);
	assert_int_equal(wake_rules_judge(rules, id, "HEAD", "/", true, message), WAKE_RULES_NOT);
	assert_int_equal(
		wake_rules_judge(rules, id, "GET", "/favicon.ico", false, message), WAKE_RULES_NOT);
	assert_int_equal(wake_rules_judge(rules, id, "GET", "/", true, message), WAKE_RULES_TELL);
	assert_int_equal(wake_rules_judge(rules, id, "POST", "/", false, message), WAKE_RULES_WAIT);
	do { /* a failure that is older than two seconds does not count */
		fake_fail(&world->driver, FAKE_START, 1);
		wake_rules_wake(rules, world->engine, id);
	} while (wake_rules_judge(rules, id, "GET", "/", true, message) != WAKE_RULES_FAILED);
	assert_non_null(strstr(message, "the driver was told to fail"));
	wake_rules_wake(rules, world->engine, id);
	sandbox_read(sandbox, &record);
	assert_int_equal(record.status, SANDBOX_RUNNING);
	sandbox_record_fini(&record);
	wake_rules_free(rules);
	sandbox_unref(sandbox);
}

/* --- tokens --- */

static void a_token_of_zeros_is_the_caller_s_and_no_administrator(void **state)
{
	struct world *world = *state;
	struct caller owner = owner_with(SCOPE_ORDINARY), admin = {world_stranger, SCOPE_ADMIN};
	const unsigned char hash[32] = {1}, first_hash[32] = {2};
	struct token_record token, first;
	struct err err;

	token_request_draft(&owner, &(struct token_spec){0}, &token);
	assert_int_equal(token.scopes, SCOPE_ORDINARY);
	assert_string_equal(token.owner.user, world_owner.user);
	assert_int_equal(token.expires_at_ms, 0);
	assert_int_equal(store_token_put(world->store, &token, hash, &err), 0);
	token_request_draft(&admin,
		&(struct token_spec){.user = "carol", .scopes = SCOPE_READ, .expires_in_s = 60},
		&first);
	assert_string_equal(first.owner.user, "carol");
	assert_int_equal(first.scopes, SCOPE_READ);
	assert_int_equal(first.expires_at_ms - first.created_at_ms, 60000);
	snprintf(first.id, sizeof(first.id), "%s", TOKEN_REQUEST_FIRST);
	assert_int_equal(store_token_put(world->store, &first, first_hash, &err), 0);

	/* An owner does not see it; whoever does cannot revoke it. */
	assert_true(token_request_revoke(world->store, &owner, TOKEN_REQUEST_FIRST, &err) < 0);
	assert_int_equal(err.kind, ERR_NOT_FOUND);
	assert_true(token_request_revoke(world->store, &admin, TOKEN_REQUEST_FIRST, &err) < 0);
	assert_string_equal(err.code, "first_token");
	assert_int_equal(token_request_revoke(world->store, &owner, token.id, &err), 0);
	assert_true(token_request_revoke(world->store, &owner, token.id, &err) < 0);
}

static void a_limit_beyond_the_machine_is_told(void **state)
{
	char texts[LIMIT_WARNING_MAX][LIMIT_WARNING_LEN];

	(void)state;
	assert_int_equal(limit_warning_list(&defaults.resources, texts), 0);
	assert_int_equal(limit_warning_list(&(struct resources){.cpu_millis = 100000000,
						    .memory_bytes = 1ull << 60},
				 texts),
		2);
	assert_non_null(strstr(texts[0], "cores limits nothing"));
	assert_non_null(strstr(texts[1], "memory limit"));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_create_of_zeros_gets_the_defaults),
		CASE(a_create_is_as_it_was_asked_for),
		CASE(what_nobody_may_have_is_refused_before_anything_is_made),
		CASE(a_second_try_gets_what_the_first_has_made),
		CASE(ensure_makes_one_of_a_project_and_finds_it_again),
		CASE(a_change_says_what_is_new_and_leaves_the_rest),
		CASE(a_caller_lists_their_own_by_filter_and_page),
		CASE(figures_are_those_of_the_driver_and_the_limits),
		CASE(a_line_runs_with_the_defaults_and_its_output_comes),
		CASE(a_caller_who_waits_gets_the_end_and_bounded_output),
		CASE(a_command_that_never_ran_is_explained),
		CASE(a_caller_who_leaves_takes_the_command_along_unless_it_is_kept),
		CASE(what_a_command_is_follows_from_how_it_is_asked_for),
		CASE(a_command_that_makes_no_sense_is_refused),
		CASE(who_may_see_a_port_follows_from_port_token_and_link),
		CASE(a_visit_wakes_unless_it_is_idle_or_the_start_failed),
		CASE(a_token_of_zeros_is_the_caller_s_and_no_administrator),
		CASE(a_limit_beyond_the_machine_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
