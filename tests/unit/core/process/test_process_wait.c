/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that runs a process to its end (src/core/process/process_wait.h). */
#include "core/process/process_wait.h"
#include "process_stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* The thread, and what came of it. */
struct runner {
	struct sandbox *sandbox;
	pthread_t thread;
	struct buf said;
	struct process_end end;
	struct err err;
	int result;
};

static void note(void *arg, int stream, const uint8_t *data, size_t len)
{
	struct runner *runner = arg;

	assert_int_equal(stream, 1);
	buf_append(&runner->said, data, len);
}

static void *run(void *arg)
{
	struct runner *runner = arg;
	const struct process_wait wait = {.output = note, .arg = runner};
	struct process_spec spec = stage_spec();

	runner->result =
		process_wait_run(runner->sandbox, &spec, &wait, &runner->end, &runner->err);
	return NULL;
}

/* It runs, as the process that the stage speaks for from then on. */
static void begin(struct runner *runner, struct stage *stage, struct world *world)
{
	struct wire_frame frame;

	stage_init(stage, world);
	*runner = (struct runner){.sandbox = stage->sandbox, .said = BUF_INIT(100)};
	assert_int_equal(pthread_create(&runner->thread, NULL, run, runner), 0);
	wire_expect(stage->peer, AGENT_EXEC, &frame);
	stage->id = frame.id;
	say_started(stage, 40);
}

static void end(struct runner *runner)
{
	assert_int_equal(pthread_join(runner->thread, NULL), 0);
	buf_fini(&runner->said);
}

static void it_returns_with_the_end_when_all_was_said(void **state)
{
	struct stage stage;
	struct runner runner;

	begin(&runner, &stage, *state);
	say_text(&stage, 0, 1, "some words");
	say_exited(&stage, 3 << 8, strlen("some words"));
	assert_int_equal(pthread_join(runner.thread, NULL), 0);
	assert_int_equal(runner.result, 0);
	assert_int_equal(runner.end.outcome, PROCESS_RAN);
	assert_int_equal(runner.end.exit_code, 3);
	assert_int_equal(runner.said.len, strlen("some words"));
	assert_memory_equal(runner.said.data, "some words", runner.said.len);
	buf_fini(&runner.said);
	stage_fini(&stage, false);
}

static void it_returns_when_the_sandbox_ends_under_it(void **state)
{
	struct stage stage;
	struct runner runner;

	begin(&runner, &stage, *state);
	stage_fini(&stage, false);
	end(&runner);
	assert_int_equal(runner.result, 0);
	assert_int_equal(runner.end.how.reason, END_OPERATOR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			it_returns_with_the_end_when_all_was_said, world_setup, world_teardown),
		cmocka_unit_test_setup_teardown(
			it_returns_when_the_sandbox_ends_under_it, world_setup, world_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
