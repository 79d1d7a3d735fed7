/* SPDX-License-Identifier: Apache-2.0 */
/* Commands (src/core/process.c) against an agent that the test plays, honestly. */
#include "process_stage.h"

#include "wire/agent.h"
#include "wire/pack.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void run(struct stage *stage, uint64_t timeout_ms)
{
	struct process_spec spec = stage_spec();

	spec.timeout_ms = timeout_ms;
	spec.kills_tree = true;
	stage_run(stage, &spec);
}

/* --- the start --- */

static void assert_str(struct unpack *in, const char *expected)
{
	auto_free char *text = unpack_str(in, 100);

	assert_non_null(text);
	assert_string_equal(text, expected);
}

static void a_command_is_sent_as_it_was_asked_for(void **state)
{
	struct process_spec spec = stage_spec();
	struct stage stage;
	struct wire_frame frame;
	struct unpack in;
	struct err err;

	spec.groups = (struct process_groups){.list = {300, 7}, .count = 2};
	stage_init(&stage, *state);
	assert_int_equal(stage_try(&stage, &spec, &err), 0);
	wire_expect(stage.peer, AGENT_EXEC, &frame);
	assert_int_not_equal(frame.id, 0);
	in = UNPACK_INIT(frame.payload, frame.len);
	assert_int_equal(unpack_u32(&in), 0); /* no standard input */
	assert_int_equal(unpack_u32(&in), 1000);
	assert_int_equal(unpack_u32(&in), 1001);
	(void)unpack_u16(&in);
	(void)unpack_u16(&in);
	assert_str(&in, "/workspace");
	assert_int_equal(unpack_u32(&in), 2);
	assert_str(&in, "cat");
	assert_str(&in, "-u");
	assert_int_equal(unpack_u32(&in), 1);
	assert_str(&in, "A=1");
	assert_int_equal(unpack_u32(&in), 2); /* groups */
	assert_int_equal(unpack_u32(&in), 300);
	assert_int_equal(unpack_u32(&in), 7);
	assert_true(unpack_done(&in));
	stage_fini(&stage, true);
}

static void a_terminal_is_asked_for_with_its_size(void **state)
{
	struct process_spec spec = stage_spec();
	struct stage stage;
	struct wire_frame frame;
	struct unpack in;
	struct err err;

	spec.is_pty = spec.keeps_input_open = true;
	spec.columns = 132;
	spec.rows = 43;
	stage_init(&stage, *state);
	assert_int_equal(stage_try(&stage, &spec, &err), 0);
	wire_expect(stage.peer, AGENT_EXEC, &frame);
	stage.id = frame.id;
	in = UNPACK_INIT(frame.payload, frame.len);
	assert_int_equal(unpack_u32(&in), AGENT_EXEC_STDIN | AGENT_EXEC_PTY);
	(void)unpack_u32(&in);
	(void)unpack_u32(&in);
	assert_int_equal(unpack_u16(&in), 132);
	assert_int_equal(unpack_u16(&in), 43);
	say_started(&stage, 1);
	assert_int_equal(process_resize(stage.process, 80, 24, &err), 0);
	wire_expect(stage.peer, AGENT_RESIZE, &frame);
	in = UNPACK_INIT(frame.payload, frame.len);
	assert_int_equal(unpack_u16(&in), 80);
	assert_int_equal(unpack_u16(&in), 24);
	assert_true(unpack_done(&in));
	say_exited(&stage, 0, 0);
	heard_wait(&stage.heard, has_ended);
	assert_int_equal(process_resize(stage.process, 80, 24, &err), -EEXIST);
	assert_string_equal(err.code, "process_ended");
	stage_fini(&stage, true);
}

static void what_has_no_terminal_cannot_be_resized(void **state)
{
	struct stage stage;
	struct err err;

	stage_init(&stage, *state);
	run(&stage, 0);
	assert_int_equal(process_resize(stage.process, 80, 24, &err), -EEXIST);
	assert_string_equal(err.code, "not_a_terminal");
	stage_fini(&stage, true);
}

static void output_and_end_reach_the_watcher_and_the_agent_may_forget(void **state)
{
	struct stage stage;

	stage_init(&stage, *state);
	run(&stage, 0);
	say_started(&stage, 42);
	say_output(&stage, 0, 1, 10);
	say_output(&stage, 10, 2, 5);
	say_output(&stage, 15, 1, 1);
	say_exited(&stage, 7 << 8, 16);
	heard_wait(&stage.heard, has_ended);
	assert_int_equal(stage.heard.starts, 1);
	assert_int_equal(stage.heard.pid, 42);
	assert_int_equal(stage.heard.streams[0].len, 11);
	assert_int_equal(stage.heard.streams[1].len, 5);
	assert_int_equal(stage.heard.end.outcome, PROCESS_RAN);
	assert_int_equal(stage.heard.end.how.reason, END_EXITED);
	assert_int_equal(stage.heard.end.exit_code, 7);
	assert_int_equal(stage.heard.end.how.signal, 0);
	assert_int_equal(stage.heard.end.how.cpu_us, 11);
	assert_int_equal(stage.heard.end.how.peak_memory_bytes, 22);
	assert_int_equal(stage.heard.end.duration_us, 33);
	expect_forget(&stage);
	stage_fini(&stage, true);
}

static void assert_failure(struct world *world, uint8_t at, uint32_t errnum,
	enum process_outcome outcome, int exit_code)
{
	struct stage stage;

	stage_init(&stage, world);
	run(&stage, 0);
	say_failed(&stage, at, errnum);
	heard_wait(&stage.heard, has_ended);
	assert_int_equal(stage.heard.starts, 0);
	assert_int_equal(stage.heard.end.outcome, outcome);
	assert_int_equal(stage.heard.end.errnum, (int)errnum);
	assert_int_equal(stage.heard.end.exit_code, exit_code);
	/* What a shell would say, where one would. */
	assert_int_equal(stage.heard.streams[1].len > 0, outcome == PROCESS_NOT_RUN);
	stage_fini(&stage, true);
}

static void a_command_that_never_ran_says_why(void **state)
{
	assert_failure(*state, AGENT_STAGE_CWD, ENOENT, PROCESS_BAD_CWD, 127);
	assert_failure(*state, AGENT_STAGE_EXEC, ENOENT, PROCESS_NOT_RUN, 127);
	assert_failure(*state, AGENT_STAGE_EXEC, EACCES, PROCESS_NOT_RUN, 126);
	assert_failure(*state, AGENT_STAGE_SETUP, EAGAIN, PROCESS_REFUSED, 126);
}

static void frames_of_unknown_commands_are_ignored(void **state)
{
	struct stage stage;
	uint32_t id;

	stage_init(&stage, *state);
	run(&stage, 0);
	id = stage.id;
	stage.id = id + 1000; /* given up on, or of a daemon before us */
	say_started(&stage, 9);
	say_output(&stage, 77, 1, 5);
	say_survivors(&stage, 5);
	say_exited(&stage, 0, 123);
	stage.id = id;
	say_started(&stage, 1);
	heard_wait(&stage.heard, has_started);
	assert_int_equal(stage.heard.pid, 1);
	assert_int_equal(stage.heard.streams[0].len, 0);
	stage_fini(&stage, true);
}

static void numbers_go_on_in_a_new_sandbox_of_the_same_id(void **state)
{
	struct world *world = *state;
	const char *id = world_id('n');
	struct sandbox *sandbox = world_create(world, id);
	struct process_spec spec = stage_spec();
	struct process_record record;
	struct err err;

	spec.is_kept = true;
	for (uint32_t i = 1; i <= 3; i++) {
		struct process *process;

		assert_int_equal(process_new(sandbox, &process, &err), 0);
		assert_int_equal(process_run(process, &spec, &err), 0);
		process_read(process, &record);
		assert_int_equal(record.number, i);
		process_record_fini(&record);
		process_unref(process);
		assert_int_equal(sandbox_delete(sandbox, END_OPERATOR, &err), 0);
		sandbox_unref(sandbox);
		sandbox = world_create(world, id);
	}
	sandbox_unref(sandbox);
}

/* --- kills and timeouts --- */

static void a_kill_is_sent_and_reported_as_one(void **state)
{
	struct stage stage;

	stage_init(&stage, *state);
	run(&stage, 0);
	say_started(&stage, 1);
	process_kill(stage.process, false);
	expect_signal(&stage, SIGKILL, false);
	process_kill(stage.process, true);
	expect_kill(&stage);
	say_exited(&stage, SIGKILL, 0);
	heard_wait(&stage.heard, has_ended);
	assert_int_equal(stage.heard.end.how.reason, END_KILLED);
	assert_int_equal(stage.heard.end.exit_code, 128 + SIGKILL);
	expect_forget(&stage);
	stage_fini(&stage, true);
}

static void a_kill_before_the_start_is_kept_for_it(void **state)
{
	struct stage stage;

	stage_init(&stage, *state);
	process_kill(stage.process, true);
	run(&stage, 0);
	expect_kill(&stage);
	say_exited(&stage, SIGKILL, 0);
	heard_wait(&stage.heard, has_ended);
	assert_int_equal(stage.heard.end.how.reason, END_KILLED);
	stage_fini(&stage, true);
}

static void a_signal_goes_to_one_or_to_all_until_it_has_ended(void **state)
{
	struct stage stage;
	struct err err;

	stage_init(&stage, *state);
	run(&stage, 0);
	say_started(&stage, 1);
	assert_int_equal(process_signal(stage.process, SIGHUP, false, &err), 0);
	expect_signal(&stage, SIGHUP, false);
	assert_int_equal(process_signal(stage.process, SIGTERM, true, &err), 0);
	expect_signal(&stage, SIGTERM, true);
	assert_int_equal(process_signal(stage.process, SIGKILL, false, &err), 0);
	expect_signal(&stage, SIGKILL, false);
	say_exited(&stage, SIGKILL, 0);
	heard_wait(&stage.heard, has_ended);
	assert_int_equal(stage.heard.end.how.reason, END_KILLED);
	assert_int_equal(process_signal(stage.process, SIGTERM, true, &err), -EEXIST);
	assert_int_equal(err.kind, ERR_CONFLICT);
	assert_string_equal(err.code, "process_ended");
	stage_fini(&stage, true);
}

static void a_signal_still_reaches_the_survivors_of_one_that_has_ended(void **state)
{
	struct stage stage;
	struct err err;

	stage_init(&stage, *state);
	stage_start(&stage, true);
	say_survivors(&stage, 2);
	say_exited(&stage, 0, 0);
	heard_wait(&stage.heard, has_ended);
	expect_forget(&stage);
	assert_int_equal(process_signal(stage.process, SIGTERM, false, &err), -EEXIST);
	assert_int_equal(process_signal(stage.process, SIGTERM, true, &err), 0);
	expect_signal(&stage, SIGTERM, true);
	assert_int_equal(process_signal(stage.process, SIGKILL, true, &err), 0);
	expect_kill(&stage);
	stage_fini(&stage, true);
}

static void a_timeout_kills_and_is_reported_as_124(void **state)
{
	for (int tree = 0; tree < 2; tree++) {
		struct process_spec spec = stage_spec();
		struct stage stage;

		spec.timeout_ms = 1;
		spec.kills_tree = tree;
		stage_init(&stage, *state);
		stage_run(&stage, &spec);
		say_started(&stage, 1);
		expect_signal(&stage, SIGKILL, tree);
		say_exited(&stage, SIGKILL, 0);
		heard_wait(&stage.heard, has_ended);
		assert_int_equal(stage.heard.end.how.reason, END_TIMEOUT);
		assert_string_equal(stage.heard.end.how.detail, "its timeout of 1 ms was over");
		assert_int_equal(stage.heard.end.exit_code, 124);
		stage_fini(&stage, true);
	}
}

static void a_timeout_ends_it_also_if_the_agent_never_says_so(void **state)
{
	struct stage stage;

	stage_init(&stage, *state);
	run(&stage, 1);
	say_started(&stage, 1);
	expect_kill(&stage);
	heard_wait(&stage.heard, has_ended);
	assert_int_equal(stage.heard.end.how.reason, END_TIMEOUT);
	assert_string_equal(stage.heard.end.how.detail, "its timeout of 1 ms was over");
	assert_int_equal(stage.heard.end.exit_code, 124);
	expect_forget(&stage);
	stage_fini(&stage, true);
}

static void a_command_that_ends_in_time_is_not_timed_out(void **state)
{
	struct stage stage;

	stage_init(&stage, *state);
	run(&stage, 3600000);
	say_started(&stage, 1);
	say_exited(&stage, 0, 0);
	heard_wait(&stage.heard, has_ended);
	assert_int_equal(stage.heard.end.how.reason, END_EXITED);
	assert_int_equal(stage.heard.end.exit_code, 0);
	stage_fini(&stage, true);
}

/* --- the pace of output --- */

static void start_paced(struct stage *stage, struct world *world)
{
	struct process_spec spec = stage_spec();

	spec.is_paced = true;
	stage_init(stage, world);
	stage_run(stage, &spec);
	say_started(stage, 1);
	for (uint64_t at = 0; at < AGENT_OUTPUT_WINDOW; at += 32768)
		say_output(stage, at, 1, 32768);
	heard_wait_output(&stage->heard, 1, AGENT_OUTPUT_WINDOW);
}

static void paced_output_is_acknowledged_in_steps_as_it_is_consumed(void **state)
{
	const uint64_t all = AGENT_OUTPUT_WINDOW + STAGE_ACK_STEP;
	struct stage stage;

	start_paced(&stage, *state);
	process_consumed(stage.process, STAGE_ACK_STEP - 1); /* too little to tell */
	process_consumed(stage.process, STAGE_ACK_STEP);
	process_consumed(stage.process, 10); /* never back */
	expect_ack(&stage, STAGE_ACK_STEP);
	say_output(&stage, AGENT_OUTPUT_WINDOW, 1, STAGE_ACK_STEP); /* there is room again */
	heard_wait_output(&stage.heard, 1, all);
	process_consumed(stage.process, all);
	expect_ack(&stage, all);
	say_exited(&stage, 0, all);
	heard_wait(&stage.heard, has_ended);
	expect_forget(&stage); /* and nothing else was acknowledged */
	stage_fini(&stage, true);
}

static void one_whose_reader_left_goes_on_at_its_own_pace(void **state)
{
	struct stage stage;

	start_paced(&stage, *state);
	process_unpace(stage.process);
	expect_ack(&stage, AGENT_OUTPUT_WINDOW);
	process_consumed(stage.process, 1); /* means nothing any more */
	for (uint64_t at = AGENT_OUTPUT_WINDOW; at < 3ull * AGENT_OUTPUT_WINDOW;
		at += STAGE_ACK_STEP) {
		say_output(&stage, at, 1, STAGE_ACK_STEP);
		expect_ack(&stage, at + STAGE_ACK_STEP);
	}
	say_exited(&stage, 0, 3ull * AGENT_OUTPUT_WINDOW);
	heard_wait(&stage.heard, has_ended);
	expect_forget(&stage);
	stage_fini(&stage, true);
}

static void output_without_a_pace_is_acknowledged_as_it_comes(void **state)
{
	struct stage stage;

	stage_init(&stage, *state);
	run(&stage, 0);
	say_started(&stage, 1);
	say_output(&stage, 0, 1, STAGE_ACK_STEP - 1); /* too little to tell */
	say_output(&stage, STAGE_ACK_STEP - 1, 2, 1);
	expect_ack(&stage, STAGE_ACK_STEP);
	say_exited(&stage, 0, STAGE_ACK_STEP);
	expect_forget(&stage);
	stage_fini(&stage, true);
}

/* More than the rate at which output is taken that nobody waits for: it waits for its turn, and gets it. */
static void a_flood_is_slowed_down_and_still_taken_whole(void **state)
{
	struct stage stage;
	uint64_t at = 0;

	stage_init(&stage, *state);
	run(&stage, 0);
	say_started(&stage, 1);
	for (; at < (12u << 20); at += STAGE_ACK_STEP) {
		say_output(&stage, at, 1, STAGE_ACK_STEP);
		expect_ack(&stage, at + STAGE_ACK_STEP);
	}
	say_exited(&stage, 0, at);
	heard_wait(&stage.heard, has_ended);
	assert_int_equal(stage.heard.streams[0].len, at);
	stage_fini(&stage, true);
}

/* --- the end of a sandbox --- */

static void the_end_of_a_sandbox_ends_its_commands_once(void **state)
{
	struct stage stage;
	struct err err;

	stage_init(&stage, *state);
	run(&stage, 3600000);
	say_started(&stage, 1);
	heard_wait(&stage.heard, has_started);
	assert_int_equal(sandbox_reset(stage.sandbox, &err), 0);
	heard_wait(&stage.heard, has_ended);
	assert_int_equal(stage.heard.end.how.reason, END_OPERATOR);
	assert_int_equal(stage.heard.end.exit_code, 128 + SIGKILL);
	process_consumed(stage.process, 1 << 20); /* the link is gone; nothing happens */
	process_unpace(stage.process);
	process_kill(stage.process, true);
	stage_fini(&stage, true);
}

static void a_command_whose_sandbox_ended_before_it_ran_is_refused(void **state)
{
	struct process_spec spec = stage_spec();
	struct stage stage;
	struct err err;

	stage_init(&stage, *state);
	assert_int_equal(sandbox_reset(stage.sandbox, &err), 0);
	assert_int_equal(stage_try(&stage, &spec, &err), -EEXIST);
	assert_int_equal(err.kind, ERR_CONFLICT);
	stage_fini(&stage, false);
}

static void a_command_that_is_too_large_is_refused_without_an_event(void **state)
{
	struct stage stage;
	char *huge = mem_new(AGENT_DOWN_MAX + 1);
	const char *const huge_argv[] = {"echo", huge, NULL};
	struct process_spec spec = stage_spec();
	struct process_record record;
	struct err err = {0};

	memset(huge, 'x', AGENT_DOWN_MAX);
	spec.argv = huge_argv;
	spec.is_kept = true;
	stage_init(&stage, *state);
	assert_int_equal(stage_try(&stage, &spec, &err), -EMSGSIZE);
	assert_int_equal(err.kind, ERR_TOO_LARGE);
	process_read(stage.process, &record);
	stage.id = record.number;
	process_record_fini(&record);
	assert_false(stage_row(&stage, &record)); /* it never ran, so it is not remembered */
	stage_fini(&stage, false);
	free(huge);
}

static void a_command_wakes_a_stopped_sandbox(void **state)
{
	struct world *world = *state;
	struct stage stage;
	struct err err;

	stage_init(&stage, world);
	process_unref(stage.process);
	fake_crash(&world->driver, sandbox_id(stage.sandbox), 0);
	while (world_status(stage.sandbox) == SANDBOX_RUNNING)
		assert_int_equal(sandbox_stop(stage.sandbox, END_OPERATOR, &err), 0);
	assert_int_equal(process_new(stage.sandbox, &stage.process, &err), 0);
	assert_int_equal(world_status(stage.sandbox), SANDBOX_RUNNING);
	stage_fini(&stage, false);
}

/* The driver that is played has no isolated commands. */
static void an_isolated_command_needs_a_driver_that_can(void **state)
{
	struct process_spec spec = stage_spec();
	struct stage stage;
	struct err err;

	spec.is_isolated = spec.is_kept = true;
	stage_init(&stage, *state);
	assert_true(process_run(stage.process, &spec, &err) < 0);
	assert_string_equal(err.code, "unsupported_by_driver");
	stage_fini(&stage, false);
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		IN_WORLD(a_command_is_sent_as_it_was_asked_for),
		IN_WORLD(a_terminal_is_asked_for_with_its_size),
		IN_WORLD(what_has_no_terminal_cannot_be_resized),
		IN_WORLD(output_and_end_reach_the_watcher_and_the_agent_may_forget),
		IN_WORLD(a_command_that_never_ran_says_why),
		IN_WORLD(frames_of_unknown_commands_are_ignored),
		IN_WORLD(numbers_go_on_in_a_new_sandbox_of_the_same_id),
		IN_WORLD(a_kill_is_sent_and_reported_as_one),
		IN_WORLD(a_kill_before_the_start_is_kept_for_it),
		IN_WORLD(a_signal_goes_to_one_or_to_all_until_it_has_ended),
		IN_WORLD(a_signal_still_reaches_the_survivors_of_one_that_has_ended),
		IN_WORLD(a_timeout_kills_and_is_reported_as_124),
		IN_WORLD(a_timeout_ends_it_also_if_the_agent_never_says_so),
		IN_WORLD(a_command_that_ends_in_time_is_not_timed_out),
		IN_WORLD(paced_output_is_acknowledged_in_steps_as_it_is_consumed),
		IN_WORLD(one_whose_reader_left_goes_on_at_its_own_pace),
		IN_WORLD(output_without_a_pace_is_acknowledged_as_it_comes),
		IN_WORLD(a_flood_is_slowed_down_and_still_taken_whole),
		IN_WORLD(the_end_of_a_sandbox_ends_its_commands_once),
		IN_WORLD(a_command_whose_sandbox_ended_before_it_ran_is_refused),
		IN_WORLD(a_command_that_is_too_large_is_refused_without_an_event),
		IN_WORLD(a_command_wakes_a_stopped_sandbox),
		IN_WORLD(an_isolated_command_needs_a_driver_that_can),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
