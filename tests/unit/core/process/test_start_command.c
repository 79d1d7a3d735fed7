/* SPDX-License-Identifier: Apache-2.0 */
/* Start commands (src/core/start command.c) against an agent that the test plays. */
#include "process_stage.h"

#include "core/process/start_command.h"
#include "model/sandbox/restart.h"
#include "store/store_clock.h"
#include "wire/agent.h"
#include "wire/pack.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define EXIT_STATUS(code) ((uint32_t)(code) << 8) /* as wait(2) has it */

/* A sandbox with one start command, and who hears of it. */
struct scene {
	struct stage stage; /* without a process of its own: only the agent's side of it is used */
	struct listener listener;
};

static void expect_run(struct stage *stage)
{
	struct wire_frame frame;

	wire_expect(stage->peer, AGENT_EXEC, &frame);
	stage->id = frame.id;
	say_started(stage, 40 + frame.id);
}

static void set_start(struct sandbox_record *record, void *line)
{
	json_decref(record->start);
	record->start =
		line ? json_pack("[{s:s, s:s}]", "name", "web", "command", line) : json_array();
}

static void change(struct scene *scene, const char *line)
{
	struct err err;

	assert_int_equal(sandbox_change(scene->stage.sandbox, set_start, (void *)line, &err), 0);
}

/* The wall clock is set by so much between the start of the sandbox and that of the command. */
static void open_scene_with_step(struct scene *scene, struct world *world, int64_t step_ms)
{
	struct wire_frame frame;

	*scene = (struct scene){.stage = {.world = world}};
	fake_set_agent(&world->driver, FAKE_AGENT_MANUAL);
	scene->stage.sandbox = world_create(world, "");
	scene->stage.peer = dup(fake_peer(&world->driver, sandbox_id(scene->stage.sandbox)));
	wire_expect(scene->stage.peer, AGENT_ATTACH, &frame);
	world_listener_open(&scene->listener, world->engine, sandbox_id(scene->stage.sandbox));
	atomic_fetch_add(&world_wall_shift_ms, step_ms);
	change(scene, "run");
	expect_run(&scene->stage);
	listener_wait(&scene->listener, "start.running");
}

static void open_scene(struct scene *scene, struct world *world)
{
	open_scene_with_step(scene, world, 0);
}

static void close_scene(struct scene *scene)
{
	struct err err;

	listener_close(&scene->listener);
	assert_int_equal(sandbox_delete(scene->stage.sandbox, END_OPERATOR, &err), 0);
	sandbox_unref(scene->stage.sandbox);
	close(scene->stage.peer);
}

static struct start_command_state read_state(struct scene *scene)
{
	struct start_command_state state;

	start_command_read(scene->stage.sandbox, "web", &state);
	return state;
}

static void one_that_fails_is_run_again_as_another_process(void **state)
{
	struct scene scene;
	struct start_command_state is;
	struct process_record record;
	uint32_t first;

	open_scene(&scene, *state);
	first = scene.stage.id;
	say_exited(&scene.stage, EXIT_STATUS(3), 0);
	listener_wait(&scene.listener, "start.waiting");
	is = read_state(&scene);
	assert_int_equal(is.status, START_COMMAND_WAITING);
	assert_int_equal(is.exit_code, 3);
	assert_int_equal(is.process, first);
	assert_true(is.next_try_at_ms > 0);
	expect_forget(&scene.stage);
	expect_kill(&scene.stage); /* what it may have left behind */
	expect_run(&scene.stage);
	listener_wait(&scene.listener, "start.running");
	is = read_state(&scene);
	assert_int_equal(is.status, START_COMMAND_RUNNING);
	assert_int_equal(is.restarts, 1);
	assert_int_equal(is.process, first + 1);
	assert_true(stage_row(&scene.stage, &record));
	assert_string_equal(record.start, "web");
	assert_int_equal(record.restarts, 1);
	process_record_fini(&record);
	close_scene(&scene);
}

static void one_that_is_done_is_left_alone(void **state)
{
	struct scene scene;

	open_scene(&scene, *state);
	say_exited(&scene.stage, EXIT_STATUS(0), 0);
	listener_wait(&scene.listener, "start.exited");
	assert_int_equal(read_state(&scene).status, START_COMMAND_EXITED);
	assert_int_equal(read_state(&scene).next_try_at_ms, 0);
	close_scene(&scene);
}

static void its_output_is_no_use_of_the_sandbox(void **state)
{
	struct scene scene;
	struct sandbox_record before, after;

	open_scene(&scene, *state);
	sandbox_read(scene.stage.sandbox, &before);
	usleep(5000); /* so that a note of now would differ */
	say_text(&scene.stage, 0, 1, "hello");
	say_exited(&scene.stage, EXIT_STATUS(0), 5);
	listener_wait(&scene.listener, "start.exited");
	sandbox_read(scene.stage.sandbox, &after);
	assert_int_equal(after.last_active_at_ms, before.last_active_at_ms);
	sandbox_record_fini(&before);
	sandbox_record_fini(&after);
	close_scene(&scene);
}

static void one_that_waits_can_be_ceased(void **state)
{
	struct scene scene;

	open_scene(&scene, *state);
	say_exited(&scene.stage, EXIT_STATUS(1), 0);
	listener_wait(&scene.listener, "start.waiting");
	start_command_cease(scene.stage.sandbox, scene.stage.id);
	listener_wait(&scene.listener, "start.killed");
	assert_int_equal(read_state(&scene).status, START_COMMAND_KILLED);
	close_scene(&scene);
}

static void one_that_is_ceased_and_fails_before_the_signal_comes_is_not_run_again(void **state)
{
	struct scene scene;

	open_scene(&scene, *state);
	start_command_cease(scene.stage.sandbox, scene.stage.id);
	assert_int_equal(read_state(&scene).status, START_COMMAND_RUNNING);
	say_exited(&scene.stage, EXIT_STATUS(1), 0);
	listener_wait(&scene.listener, "start.killed");
	assert_int_equal(read_state(&scene).exit_code, 1);
	assert_int_equal(read_state(&scene).next_try_at_ms, 0);
	close_scene(&scene);
}

/* Its command is one of the sandbox's no more, and it is ended for that. */
static void take_out(struct scene *scene)
{
	change(scene, NULL);
	expect_kill(&scene->stage);
	say_exited(&scene->stage, 9, 0);
	expect_forget(&scene->stage);
}

static void one_that_is_taken_out_is_ended_and_its_end_means_nothing(void **state)
{
	struct scene scene;

	open_scene(&scene, *state);
	take_out(&scene);
	assert_int_equal(read_state(&scene).status, START_COMMAND_STOPPED);
	close_scene(&scene);
}

static void one_that_never_ran_has_no_process_and_is_tried_again(void **state)
{
	struct scene scene;
	struct wire_frame frame;
	struct start_command_state is;

	open_scene(&scene, *state);
	change(&scene, "run elsewhere");
	expect_kill(&scene.stage);
	wire_expect(scene.stage.peer, AGENT_EXEC, &frame);
	scene.stage.id = frame.id;
	say_failed(&scene.stage, AGENT_STAGE_CWD, ENOENT);
	listener_wait(&scene.listener, "start.waiting");
	is = read_state(&scene);
	assert_int_equal(is.process, 0);
	assert_string_equal(start_command_error(&is),
		"the directory /workspace cannot be entered: No such file or directory");
	assert_int_equal(is.ended_at_ms, 0); /* nothing has ended */
	assert_true(is.next_try_at_ms > 0);
	close_scene(&scene);
}

static void why_it_cannot_even_be_asked_for_is_known(void **state)
{
	struct scene scene;
	struct start_command_state is;

	open_scene(&scene, *state);
	change(&scene, NULL);
	expect_kill(&scene.stage);
	atomic_store(&store_script.fail[STORE_PROCESS_INSERT], 1);
	change(&scene, "run another");
	listener_wait(&scene.listener, "start.waiting");
	is = read_state(&scene);
	assert_string_equal(start_command_error(&is), "the store was told to fail");
	expect_run(&scene.stage);
	listener_wait(&scene.listener, "start.running");
	is = read_state(&scene);
	assert_null(start_command_error(&is));
	close_scene(&scene);
}

/* The daemon goes, as if it had crashed. */
static void leave(struct scene *scene, char id[ID_LEN + 1])
{
	snprintf(id, ID_LEN + 1, "%s", sandbox_id(scene->stage.sandbox));
	world_flush(scene->stage.world);
	listener_close(&scene->listener);
	sandbox_unref(scene->stage.sandbox);
	close(scene->stage.peer);
	world_close(scene->stage.world);
}

/* The next daemon finds what the database says of it, and what the agent has. */
static void come_back(struct scene *scene, const char *id, const uint32_t *ids, uint32_t count)
{
	struct world *world = scene->stage.world;
	struct wire_frame frame;
	struct err err = {0};

	world_open(world);
	if (sandbox_get(world->engine, NULL, id, &scene->stage.sandbox, &err) < 0)
		fail_msg("%s", err.message);
	world_listener_open(&scene->listener, world->engine, id);
	scene->stage.peer = dup(fake_peer(&world->driver, id));
	wire_expect(scene->stage.peer, AGENT_ATTACH, &frame);
	wire_hello(scene->stage.peer, AGENT_VERSION, ids, count);
}

static void reopen(struct scene *scene, const uint32_t *ids, uint32_t count)
{
	char id[ID_LEN + 1];

	leave(scene, id);
	come_back(scene, id, ids, count);
}

/* The same after a change of which no more was done than writing it down. */
static void reopen_changed(
	struct scene *scene, const char *line, const uint32_t *ids, uint32_t count)
{
	struct sandbox_record record;
	char id[ID_LEN + 1];
	struct err err;

	leave(scene, id);
	assert_true(world_row(scene->stage.world, id, &record));
	set_start(&record, (void *)line);
	assert_int_equal(store_sandbox_update(scene->stage.world->store, &record, &err), 0);
	sandbox_record_fini(&record);
	come_back(scene, id, ids, count);
}

static void the_next_daemon_goes_on_with_what_runs(void **state)
{
	struct scene scene;

	open_scene(&scene, *state);
	reopen(&scene, &scene.stage.id, 1);
	expect_ack(&scene.stage, 0);
	assert_int_equal(read_state(&scene).status, START_COMMAND_RUNNING);
	assert_int_equal(read_state(&scene).process, scene.stage.id);
	say_started(&scene.stage, 40 + scene.stage.id);
	say_exited(&scene.stage, EXIT_STATUS(1), 0);
	listener_wait(&scene.listener, "start.waiting");
	expect_forget(&scene.stage);
	expect_kill(&scene.stage);
	expect_run(&scene.stage); /* and nothing was run before that */
	close_scene(&scene);
}

static void the_next_daemon_runs_what_died_without_one(void **state)
{
	struct scene scene;
	uint32_t first;

	open_scene(&scene, *state);
	first = scene.stage.id;
	reopen(&scene, NULL, 0);
	listener_wait(&scene.listener, "start.waiting");
	expect_forget(&scene.stage);
	expect_run(&scene.stage);
	assert_int_equal(scene.stage.id, first + 1);
	close_scene(&scene);
}

static void the_next_daemon_leaves_alone_what_was_done(void **state)
{
	struct scene scene;

	open_scene(&scene, *state);
	say_exited(&scene.stage, EXIT_STATUS(0), 0);
	listener_wait(&scene.listener, "start.exited");
	reopen(&scene, NULL, 0);
	assert_int_equal(read_state(&scene).status, START_COMMAND_EXITED);
	close_scene(&scene);
}

static void the_next_daemon_leaves_alone_what_was_ceased(void **state)
{
	struct scene scene;

	open_scene(&scene, *state);
	say_exited(&scene.stage, EXIT_STATUS(1), 0);
	listener_wait(&scene.listener, "start.waiting");
	start_command_cease(scene.stage.sandbox, scene.stage.id);
	reopen(&scene, NULL, 0);
	assert_int_equal(read_state(&scene).status, START_COMMAND_KILLED);
	assert_int_equal(read_state(&scene).next_try_at_ms, 0);
	close_scene(&scene);
}

/* The daemon that was asked for its end went before it came. */
static void the_next_daemon_does_not_run_again_what_is_being_ended(void **state)
{
	struct scene scene;

	open_scene(&scene, *state);
	start_command_cease(scene.stage.sandbox, scene.stage.id);
	reopen(&scene, &scene.stage.id, 1);
	expect_ack(&scene.stage, 0);
	say_started(&scene.stage, 40 + scene.stage.id);
	say_exited(&scene.stage, 9, 0);
	listener_wait(&scene.listener, "start.killed");
	close_scene(&scene);
}

static int setup_short_memory(void **state)
{
	struct world *world;

	if (world_setup_closed(state) < 0)
		return -1;
	world = *state;
	world->config.process_history = 1;
	world_open(world);
	return 0;
}

/* However much has ended since. */
static void the_next_daemon_leaves_alone_what_was_done_long_ago(void **state)
{
	struct scene scene;

	open_scene(&scene, *state);
	say_exited(&scene.stage, EXIT_STATUS(0), 0);
	listener_wait(&scene.listener, "start.exited");
	expect_forget(&scene.stage);
	for (int i = 0; i < 3; i++) {
		struct stage other;

		stage_join(&other, &scene.stage);
		stage_start(&other, true);
		say_exited(&other, EXIT_STATUS(0), 0);
		heard_wait(&other.heard, has_ended);
		expect_forget(&other);
		stage_leave(&other, true);
	}
	reopen(&scene, NULL, 0);
	assert_int_equal(read_state(&scene).status, START_COMMAND_EXITED);
	assert_int_equal(read_state(&scene).process, scene.stage.id);
	close_scene(&scene);
}

static void the_next_daemon_replaces_what_was_to_be_replaced(void **state)
{
	struct scene scene;
	uint32_t first;

	open_scene(&scene, *state);
	first = scene.stage.id;
	reopen_changed(&scene, "run another", &first, 1);
	expect_kill(&scene.stage);
	expect_ack(&scene.stage, 0);
	expect_run(&scene.stage);
	listener_wait(&scene.listener, "start.running");
	assert_int_equal(scene.stage.id, first + 1);
	assert_int_equal(read_state(&scene).restarts, 0);
	/* The end of the old one is not its end. */
	scene.stage.id = first;
	say_exited(&scene.stage, 9, 0);
	expect_forget(&scene.stage);
	assert_int_equal(read_state(&scene).status, START_COMMAND_RUNNING);
	assert_int_equal(read_state(&scene).process, first + 1);
	close_scene(&scene);
}

static void the_next_daemon_ends_what_was_to_be_ended(void **state)
{
	struct scene scene;

	open_scene(&scene, *state);
	reopen_changed(&scene, NULL, &scene.stage.id, 1);
	expect_kill(&scene.stage);
	expect_ack(&scene.stage, 0);
	say_exited(&scene.stage, 9, 0);
	expect_forget(&scene.stage);
	close_scene(&scene);
}

/* What was ended to make room is not taken for what somebody wanted to end. */
static void the_next_daemon_runs_what_did_not_come_to_run(void **state)
{
	struct scene scene;

	open_scene(&scene, *state);
	take_out(&scene);
	reopen_changed(&scene, "run", NULL, 0);
	expect_run(&scene.stage);
	close_scene(&scene);
}

/* What a clock would have written that was ahead or behind by so much. */
static void shift_row(struct scene *scene, int64_t start_ms, int64_t end_ms)
{
	struct process_record record;
	struct err err;

	world_flush(scene->stage.world);
	assert_true(stage_row(&scene->stage, &record));
	record.started_at_ms += start_ms;
	record.ended_at_ms += end_ms;
	assert_int_equal(store_process_update(scene->stage.world->store, &record, &err), 0);
	process_record_fini(&record);
}

static void what_runs_is_not_run_twice_because_a_clock_was_set_back(void **state)
{
	struct scene scene;

	open_scene(&scene, *state);
	shift_row(&scene, -3600 * 1000, 0);
	reopen(&scene, &scene.stage.id, 1);
	expect_ack(&scene.stage, 0);
	assert_int_equal(read_state(&scene).status, START_COMMAND_RUNNING);
	assert_int_equal(read_state(&scene).process, scene.stage.id);
	close_scene(&scene);
}

static void what_failed_does_not_wait_for_a_clock_that_was_set_back(void **state)
{
	struct scene scene;

	open_scene(&scene, *state);
	say_exited(&scene.stage, EXIT_STATUS(1), 0);
	listener_wait(&scene.listener, "start.waiting");
	shift_row(&scene, 86400 * 1000, 86400 * 1000);
	reopen(&scene, NULL, 0);
	assert_int_equal(read_state(&scene).status, START_COMMAND_WAITING);
	assert_true(read_state(&scene).next_try_at_ms <=
		    store_clock_ms(scene.stage.world->store) + RESTART_FIRST_MS);
	close_scene(&scene);
}

static void what_was_done_is_not_repeated_because_a_clock_was_set_back(void **state)
{
	struct scene scene;

	open_scene_with_step(&scene, *state, -3600 * 1000);
	say_exited(&scene.stage, EXIT_STATUS(0), 0);
	listener_wait(&scene.listener, "start.exited");
	expect_forget(&scene.stage);
	reopen(&scene, NULL, 0);
	assert_int_equal(read_state(&scene).status, START_COMMAND_EXITED);
	assert_int_equal(read_state(&scene).process, scene.stage.id);
	close_scene(&scene);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(one_that_fails_is_run_again_as_another_process,
			world_setup, world_teardown),
		cmocka_unit_test_setup_teardown(
			one_that_is_done_is_left_alone, world_setup, world_teardown),
		cmocka_unit_test_setup_teardown(
			its_output_is_no_use_of_the_sandbox, world_setup, world_teardown),
		cmocka_unit_test_setup_teardown(
			one_that_waits_can_be_ceased, world_setup, world_teardown),
		cmocka_unit_test_setup_teardown(
			one_that_is_ceased_and_fails_before_the_signal_comes_is_not_run_again,
			world_setup, world_teardown),
		cmocka_unit_test_setup_teardown(
			one_that_is_taken_out_is_ended_and_its_end_means_nothing, world_setup,
			world_teardown),
		cmocka_unit_test_setup_teardown(
			one_that_never_ran_has_no_process_and_is_tried_again, world_setup,
			world_teardown),
		cmocka_unit_test_setup_teardown(
			why_it_cannot_even_be_asked_for_is_known, world_setup, world_teardown),
		cmocka_unit_test_setup_teardown(
			the_next_daemon_goes_on_with_what_runs, world_setup, world_teardown),
		cmocka_unit_test_setup_teardown(
			the_next_daemon_runs_what_died_without_one, world_setup, world_teardown),
		cmocka_unit_test_setup_teardown(
			the_next_daemon_leaves_alone_what_was_done, world_setup, world_teardown),
		cmocka_unit_test_setup_teardown(
			the_next_daemon_leaves_alone_what_was_ceased, world_setup, world_teardown),
		cmocka_unit_test_setup_teardown(
			the_next_daemon_does_not_run_again_what_is_being_ended, world_setup,
			world_teardown),
		cmocka_unit_test_setup_teardown(the_next_daemon_leaves_alone_what_was_done_long_ago,
			setup_short_memory, world_teardown),
		cmocka_unit_test_setup_teardown(the_next_daemon_replaces_what_was_to_be_replaced,
			world_setup, world_teardown),
		cmocka_unit_test_setup_teardown(
			the_next_daemon_ends_what_was_to_be_ended, world_setup, world_teardown),
		cmocka_unit_test_setup_teardown(
			the_next_daemon_runs_what_did_not_come_to_run, world_setup, world_teardown),
		cmocka_unit_test_setup_teardown(
			what_runs_is_not_run_twice_because_a_clock_was_set_back, world_setup,
			world_teardown),
		cmocka_unit_test_setup_teardown(
			what_failed_does_not_wait_for_a_clock_that_was_set_back, world_setup,
			world_teardown),
		cmocka_unit_test_setup_teardown(
			what_was_done_is_not_repeated_because_a_clock_was_set_back, world_setup,
			world_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
