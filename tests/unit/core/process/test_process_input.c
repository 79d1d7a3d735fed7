/* SPDX-License-Identifier: Apache-2.0 */
/* Standard input of commands (src/core/process_input.c): a window to the agent, a bound on what waits. */
#include "process_stage.h"

#include "wire/agent.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define WAITING_MAX (1u << 20)

static char zeros[WAITING_MAX];

/* Starts one whose input is given whole. */
static void run_with(struct stage *stage, struct world *world, const char *input, size_t len)
{
	struct process_spec spec = stage_spec();

	spec.input = input;
	spec.input_len = len;
	stage_init(stage, world);
	stage_run(stage, &spec);
	say_started(stage, 1);
}

/* Starts one to which more can be written. */
static void run_open(struct stage *stage, struct world *world, bool is_pty)
{
	struct process_spec spec = stage_spec();

	spec.keeps_input_open = true;
	spec.is_pty = is_pty;
	stage_init(stage, world);
	stage_run(stage, &spec);
	say_started(stage, 1);
	heard_wait(&stage->heard, has_started);
}

static bool has_drained(const struct heard *heard)
{
	return heard->drains > 0;
}

static void input_goes_out_within_the_window_and_then_ends(void **state)
{
	struct stage stage;
	size_t sent = 0, len = 150000;

	run_with(&stage, *state, zeros, len);
	while (sent < AGENT_STDIN_WINDOW)
		sent += expect_kind(&stage, AGENT_STDIN);
	assert_int_equal(sent, AGENT_STDIN_WINDOW);
	say_taken(&stage, 1000, sent);
	assert_int_equal(expect_kind(&stage, AGENT_STDIN), 1000);
	sent += 1000;
	while (sent < len) {
		say_taken(&stage, sent, sent);
		sent += expect_kind(&stage, AGENT_STDIN);
	}
	assert_int_equal(sent, len);
	assert_int_equal(expect_kind(&stage, AGENT_STDIN_CLOSE), 0);
	stage_fini(&stage, true);
}

static void empty_input_is_closed_at_once_and_none_is_not_mentioned(void **state)
{
	struct stage stage;

	run_with(&stage, *state, "", 0);
	expect_kind(&stage, AGENT_STDIN_CLOSE);
	stage_fini(&stage, true);
	run_with(&stage, *state, NULL, 0);
	say_exited(&stage, 0, 0);
	expect_forget(&stage);
	stage_fini(&stage, true);
}

static void more_can_be_written_while_it_runs_until_it_is_closed(void **state)
{
	struct stage stage;
	size_t waiting = 99;
	struct err err;

	run_open(&stage, *state, false);
	assert_int_equal(process_write(stage.process, zeros, 100000, false, &waiting, &err), 0);
	assert_int_equal(waiting, 100000 - AGENT_STDIN_WINDOW);
	assert_int_equal(expect_kind(&stage, AGENT_STDIN), AGENT_STDIN_WINDOW);
	say_taken(&stage, AGENT_STDIN_WINDOW, AGENT_STDIN_WINDOW);
	assert_int_equal(expect_kind(&stage, AGENT_STDIN), 100000 - AGENT_STDIN_WINDOW);
	heard_wait(&stage.heard, has_drained);
	assert_int_equal(process_write(stage.process, "end", 3, true, &waiting, &err), 0);
	assert_int_equal(waiting, 0);
	assert_int_equal(expect_kind(&stage, AGENT_STDIN), 3);
	expect_kind(&stage, AGENT_STDIN_CLOSE);
	assert_int_equal(process_write(stage.process, "more", 4, false, NULL, &err), -EEXIST);
	assert_int_equal(err.kind, ERR_CONFLICT);
	assert_string_equal(err.code, "stdin_closed");
	stage_fini(&stage, true);
}

static void input_that_was_given_at_the_start_comes_before_what_is_written(void **state)
{
	struct process_spec spec = stage_spec();
	struct wire_frame frame;
	struct stage stage;
	struct err err;

	spec.keeps_input_open = true;
	spec.input = "first";
	spec.input_len = 5;
	stage_init(&stage, *state);
	stage_run(&stage, &spec);
	/* It does not run yet: this waits. */
	assert_int_equal(process_write(stage.process, "second", 6, true, NULL, &err), 0);
	say_started(&stage, 1);
	wire_expect(stage.peer, AGENT_STDIN, &frame);
	assert_int_equal(frame.len, 11);
	assert_memory_equal(frame.payload, "firstsecond", 11);
	expect_kind(&stage, AGENT_STDIN_CLOSE);
	stage_fini(&stage, true);
}

static void nothing_can_be_written_to_one_that_has_no_input(void **state)
{
	struct stage stage;
	struct err err;

	run_with(&stage, *state, NULL, 0);
	assert_int_equal(process_write(stage.process, "x", 1, false, NULL, &err), -EEXIST);
	assert_string_equal(err.code, "stdin_closed");
	stage_fini(&stage, true);
}

static void nothing_can_be_written_to_one_that_has_ended(void **state)
{
	struct stage stage;
	struct err err;

	run_open(&stage, *state, false);
	say_exited(&stage, 0, 0);
	heard_wait(&stage.heard, has_ended);
	assert_int_equal(process_write(stage.process, "x", 1, false, NULL, &err), -EEXIST);
	assert_string_equal(err.code, "process_ended");
	stage_fini(&stage, true);
}

static void too_much_at_once_is_refused_whole_and_taken_later(void **state)
{
	struct stage stage;
	size_t waiting = 0;
	struct err err;

	run_open(&stage, *state, false);
	assert_int_equal(
		process_write(stage.process, zeros, WAITING_MAX, false, &waiting, &err), 0);
	assert_int_equal(waiting, WAITING_MAX - AGENT_STDIN_WINDOW);
	assert_int_equal(
		process_write(stage.process, zeros, AGENT_STDIN_WINDOW, false, &waiting, &err), 0);
	assert_int_equal(waiting, WAITING_MAX);
	assert_true(process_write(stage.process, "x", 1, true, &waiting, &err) < 0);
	assert_int_equal(err.kind, ERR_RATE);
	assert_string_equal(err.code, "stdin_full");
	assert_int_equal(expect_kind(&stage, AGENT_STDIN), AGENT_STDIN_WINDOW);
	say_taken(&stage, AGENT_STDIN_WINDOW, AGENT_STDIN_WINDOW);
	assert_int_equal(expect_kind(&stage, AGENT_STDIN), AGENT_STDIN_WINDOW);
	/* The refused one did not close it either. */
	assert_int_equal(process_write(stage.process, "x", 1, false, &waiting, &err), 0);
	assert_int_equal(waiting, WAITING_MAX - AGENT_STDIN_WINDOW + 1);
	stage_fini(&stage, true);
}

static void its_writer_is_not_called_while_much_still_waits(void **state)
{
	struct stage stage;
	uint64_t sent = AGENT_STDIN_WINDOW;
	struct err err;

	run_open(&stage, *state, false);
	assert_int_equal(process_write(stage.process, zeros, 300000, false, NULL, &err), 0);
	expect_kind(&stage, AGENT_STDIN);
	say_taken(&stage, sent, sent);
	sent += expect_kind(&stage, AGENT_STDIN); /* 168928 wait */
	say_taken(&stage, sent, sent);
	sent += expect_kind(&stage, AGENT_STDIN); /* 103392 */
	pthread_mutex_lock(&stage.heard.lock);
	assert_int_equal(stage.heard.drains, 0);
	pthread_mutex_unlock(&stage.heard.lock);
	say_taken(&stage, sent, sent);
	sent += expect_kind(&stage, AGENT_STDIN); /* 37856 */
	heard_wait(&stage.heard, has_drained);
	stage_fini(&stage, true);
}

static void a_terminal_goes_on_after_an_end_of_file(void **state)
{
	struct stage stage;
	struct err err;

	run_open(&stage, *state, true);
	assert_int_equal(process_write(stage.process, "a", 1, true, NULL, &err), 0);
	assert_int_equal(expect_kind(&stage, AGENT_STDIN), 1);
	expect_kind(&stage, AGENT_STDIN_CLOSE);
	assert_int_equal(process_write(stage.process, "bc", 2, false, NULL, &err), 0);
	assert_int_equal(expect_kind(&stage, AGENT_STDIN), 2);
	stage_fini(&stage, true);
}

/* What is typed behind it is refused for now, or goes out behind it; but never before. */
static void an_end_of_file_is_typed_where_it_was_asked_for(void **state)
{
	struct stage stage;
	struct err err;
	int r;

	run_open(&stage, *state, true);
	assert_int_equal(
		process_write(stage.process, zeros, AGENT_STDIN_WINDOW, false, NULL, &err), 0);
	assert_int_equal(expect_kind(&stage, AGENT_STDIN), AGENT_STDIN_WINDOW);
	/* No room: these wait, in this order. */
	assert_int_equal(process_write(stage.process, "a", 1, true, NULL, &err), 0);
	r = process_write(stage.process, "bc", 2, false, NULL, &err);
	if (r < 0)
		assert_string_equal(err.code, "stdin_full");
	say_taken(&stage, AGENT_STDIN_WINDOW, AGENT_STDIN_WINDOW);
	assert_int_equal(expect_kind(&stage, AGENT_STDIN), 1);
	expect_kind(&stage, AGENT_STDIN_CLOSE);
	if (r < 0)
		assert_int_equal(process_write(stage.process, "bc", 2, false, NULL, &err), 0);
	assert_int_equal(expect_kind(&stage, AGENT_STDIN), 2);
	stage_fini(&stage, true);
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		IN_WORLD(input_goes_out_within_the_window_and_then_ends),
		IN_WORLD(empty_input_is_closed_at_once_and_none_is_not_mentioned),
		IN_WORLD(more_can_be_written_while_it_runs_until_it_is_closed),
		IN_WORLD(input_that_was_given_at_the_start_comes_before_what_is_written),
		IN_WORLD(nothing_can_be_written_to_one_that_has_no_input),
		IN_WORLD(nothing_can_be_written_to_one_that_has_ended),
		IN_WORLD(too_much_at_once_is_refused_whole_and_taken_later),
		IN_WORLD(its_writer_is_not_called_while_much_still_waits),
		IN_WORLD(a_terminal_goes_on_after_an_end_of_file),
		IN_WORLD(an_end_of_file_is_typed_where_it_was_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
