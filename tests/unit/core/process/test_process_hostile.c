/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands (src/core/process_report.c) of hostile agents: the link ends, and with it the sandbox; the command
 * ends once.
 */
#include "process_stage.h"

#include "wire/agent.h"
#include "wire/pack.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void assert_punished(struct stage *stage)
{
	struct listener listener;
	struct wire_frame frame;
	struct sandbox_record record;

	heard_wait(&stage->heard, has_ended);
	assert_int_equal(stage->heard.end.how.reason, END_AGENT_LOST);
	while (wire_read(stage->peer, &frame))
		;
	/* The reaper writes it down; it may have done so already. */
	world_listener_open(&listener, stage->world->engine, sandbox_id(stage->sandbox));
	if (world_status(stage->sandbox) != SANDBOX_STOPPED)
		listener_wait(&listener, "sandbox.stopped");
	listener_close(&listener);
	sandbox_read(stage->sandbox, &record);
	assert_int_equal(record.status, SANDBOX_STOPPED);
	assert_int_equal(record.end.reason, END_AGENT_LOST);
	sandbox_record_fini(&record);
	stage_fini(stage, true);
}

/* A command that runs, about to meet something bad. It is paced, so that nothing is acknowledged. */
static void begin_crime(struct stage *stage, struct world *world)
{
	struct process_spec spec = stage_spec();

	spec.is_paced = true;
	stage_init(stage, world);
	stage_run(stage, &spec);
	say_started(stage, 1);
}

static void output_beyond_the_window_ends_the_link(void **state)
{
	struct stage stage;

	begin_crime(&stage, *state);
	for (uint64_t at = 0; at < AGENT_OUTPUT_WINDOW; at += 65536)
		say_output(&stage, at, 1, 65536);
	say_output(&stage, AGENT_OUTPUT_WINDOW, 1, 1);
	assert_punished(&stage);
}

static void output_at_another_offset_ends_the_link(void **state)
{
	static const uint64_t offsets[] = {1, UINT64_MAX, UINT64_MAX - 4};

	for (size_t i = 0; i < array_len(offsets); i++) {
		struct stage stage;

		begin_crime(&stage, *state);
		say_output(&stage, offsets[i], 1, 5);
		assert_punished(&stage);
	}
}

static void output_that_is_sent_twice_ends_the_link(void **state)
{
	struct stage stage;

	begin_crime(&stage, *state);
	say_output(&stage, 0, 1, 5);
	say_output(&stage, 0, 1, 5);
	assert_punished(&stage);
}

static void output_of_another_stream_ends_the_link(void **state)
{
	static const uint8_t streams[] = {0, 3, 255};

	for (size_t i = 0; i < array_len(streams); i++) {
		struct stage stage;

		begin_crime(&stage, *state);
		say_output(&stage, 0, streams[i], 5);
		assert_punished(&stage);
	}
}

/* It would cost the agent nothing, and us a piece of memory each time. */
static void empty_output_ends_the_link(void **state)
{
	struct stage stage;

	begin_crime(&stage, *state);
	say_output(&stage, 0, 1, 0);
	assert_punished(&stage);
}

static void a_second_start_ends_the_link(void **state)
{
	struct stage stage;

	begin_crime(&stage, *state);
	say_started(&stage, 2);
	heard_wait(&stage.heard, has_ended);
	assert_int_equal(stage.heard.starts, 1);
	assert_punished(&stage);
}

static void a_failure_after_the_start_ends_the_link(void **state)
{
	struct stage stage;

	begin_crime(&stage, *state);
	say_failed(&stage, AGENT_STAGE_EXEC, ENOENT);
	assert_punished(&stage);
}

static void an_end_that_disagrees_with_the_output_ends_the_link(void **state)
{
	static const uint64_t offsets[] = {0, 4, 6, UINT64_MAX};

	for (size_t i = 0; i < array_len(offsets); i++) {
		struct stage stage;

		begin_crime(&stage, *state);
		say_output(&stage, 0, 1, 5);
		say_exited(&stage, 0, offsets[i]);
		assert_punished(&stage);
	}
}

static void an_unknown_stage_ends_the_link(void **state)
{
	static const uint8_t stages[] = {0, 4, 255};

	for (size_t i = 0; i < array_len(stages); i++) {
		struct process_spec spec = stage_spec();
		struct stage stage;

		stage_init(&stage, *state);
		stage_run(&stage, &spec);
		say_failed(&stage, stages[i], ENOENT);
		assert_punished(&stage);
	}
}

static void an_acknowledgement_of_input_that_was_not_sent_ends_the_link(void **state)
{
	static const struct {
		uint64_t taken, received;
	} words[] = {{1, 1}, {1, 0}, {UINT64_MAX, UINT64_MAX}};

	for (size_t i = 0; i < array_len(words); i++) {
		struct stage stage;

		begin_crime(&stage, *state);
		say_taken(&stage, words[i].taken, words[i].received);
		assert_punished(&stage);
	}
}

static void an_acknowledgement_that_goes_back_ends_the_link(void **state)
{
	struct process_spec spec = stage_spec();
	struct stage stage;

	spec.input = "hello";
	spec.input_len = 5;
	stage_init(&stage, *state);
	stage_run(&stage, &spec);
	say_started(&stage, 1);
	expect_kind(&stage, AGENT_STDIN);
	expect_kind(&stage, AGENT_STDIN_CLOSE);
	say_taken(&stage, 3, 5);
	say_taken(&stage, 2, 5);
	assert_punished(&stage);
}

static void a_kind_that_is_not_the_agent_s_ends_the_link(void **state)
{
	static const uint16_t kinds[] = {0, AGENT_EXEC, AGENT_SHUTDOWN, AGENT_USED + 1, 65535};

	for (size_t i = 0; i < array_len(kinds); i++) {
		struct stage stage;

		begin_crime(&stage, *state);
		wire_write(stage.peer, kinds[i], stage.id, "", 0);
		assert_punished(&stage);
		/* Also when it names no command that we know. */
		begin_crime(&stage, *state);
		wire_write(stage.peer, kinds[i], 12345, "", 0);
		assert_punished(&stage);
	}
}

static void a_payload_of_another_length_ends_the_link(void **state)
{
	static const struct {
		uint16_t kind;
		size_t len;
	} frames[] = {{AGENT_STARTED, 3}, {AGENT_STARTED, 5}, {AGENT_FAILED, 4}, {AGENT_FAILED, 6},
		{AGENT_OUTPUT, 12}, {AGENT_STDIN_ACK, 15}, {AGENT_STDIN_ACK, 17},
		{AGENT_SURVIVORS, 3}, {AGENT_SURVIVORS, 5}, {AGENT_EXITED, 51}, {AGENT_EXITED, 53},
		{AGENT_USED, 7}, {AGENT_USED, 9}};
	static const uint8_t zeros[64];

	for (size_t i = 0; i < array_len(frames); i++) {
		struct process_spec spec = stage_spec();
		struct stage stage;

		stage_init(&stage, *state);
		stage_run(&stage, &spec);
		wire_write(stage.peer, frames[i].kind, stage.id, zeros, frames[i].len);
		assert_punished(&stage);
	}
}

static void more_denied_calls_than_a_record_holds_end_the_link(void **state)
{
	static const struct exit_words lies[] = {
		{.denied_count = AGENT_DENIED_MAX + 1}, {.denied_count = AGENT_DENIED_MAX + 2}};

	for (size_t i = 0; i < array_len(lies); i++) {
		struct stage stage;

		begin_crime(&stage, *state);
		say_exited_with(&stage, lies[i]);
		assert_punished(&stage);
	}
}

static void a_list_of_denied_calls_that_is_shorter_than_it_says_ends_the_link(void **state)
{
	static const uint32_t counts[] = {1, 2, AGENT_DENIED_MAX, UINT32_MAX, 1u << 31};

	for (size_t i = 0; i < array_len(counts); i++) {
		struct buf payload = BUF_INIT(64);
		struct stage stage;

		while (payload.len < 48)
			pack_u32(&payload, 0);
		pack_u32(&payload, counts[i]);
		pack_u32(&payload, 165);
		begin_crime(&stage, *state);
		wire_write(stage.peer, AGENT_EXITED, stage.id, payload.data, payload.len);
		assert_punished(&stage);
		buf_fini(&payload);
	}
}

/* Said again it would have us take up anew, each time, what we have: clocks, descriptors. */
static void a_second_hello_ends_the_link(void **state)
{
	struct process_spec spec = stage_spec();
	struct stage stage;

	spec.timeout_ms = 3600000;
	stage_init(&stage, *state);
	stage_run(&stage, &spec);
	for (int i = 0; i < 20; i++)
		wire_hello(stage.peer, AGENT_VERSION, &stage.id, 1);
	assert_punished(&stage); /* and the teardown counts descriptors */
}

/* Nothing may be gained by saying more after the end than the protocol has. */
static void words_after_the_end_change_nothing(void **state)
{
	struct process_record record;
	struct stage stage;

	stage_init(&stage, *state);
	stage_start(&stage, true);
	say_survivors(&stage, 3); /* keeps it listed */
	say_exited(&stage, 1 << 8, 0);
	heard_wait(&stage.heard, has_ended);
	say_exited(&stage, 2 << 8, 0);
	say_text(&stage, 0, 1, "more");
	say_survivors(&stage, 0);
	say_survivors(&stage, 0);
	expect_forget(&stage);
	stage_await_unlisted(&stage);
	assert_int_equal(output_log_end(process_log(stage.process)), 0);
	assert_true(stage_row(&stage, &record));
	assert_int_equal(record.exit_code, 1);
	assert_int_equal(record.output_bytes, 0);
	process_record_fini(&record);
	stage_fini(&stage, true);
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		IN_WORLD(output_beyond_the_window_ends_the_link),
		IN_WORLD(output_at_another_offset_ends_the_link),
		IN_WORLD(output_that_is_sent_twice_ends_the_link),
		IN_WORLD(output_of_another_stream_ends_the_link),
		IN_WORLD(empty_output_ends_the_link),
		IN_WORLD(a_second_start_ends_the_link),
		IN_WORLD(a_failure_after_the_start_ends_the_link),
		IN_WORLD(an_end_that_disagrees_with_the_output_ends_the_link),
		IN_WORLD(an_unknown_stage_ends_the_link),
		IN_WORLD(an_acknowledgement_of_input_that_was_not_sent_ends_the_link),
		IN_WORLD(an_acknowledgement_that_goes_back_ends_the_link),
		IN_WORLD(a_kind_that_is_not_the_agent_s_ends_the_link),
		IN_WORLD(a_payload_of_another_length_ends_the_link),
		IN_WORLD(more_denied_calls_than_a_record_holds_end_the_link),
		IN_WORLD(a_list_of_denied_calls_that_is_shorter_than_it_says_ends_the_link),
		IN_WORLD(a_second_hello_ends_the_link),
		IN_WORLD(words_after_the_end_change_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
