/* SPDX-License-Identifier: Apache-2.0 */
/* Commands (src/core/process.c) against an agent that the test plays, honestly and not. */
#include "core_fixture.h"

#include "core/process.h"
#include "wire/agent.h"
#include "wire/pack.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* What a sink heard. */
struct heard {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct process *process; /* consumes at once, if set */
	unsigned starts, ends;
	uint32_t pid;
	struct buf streams[2];
	struct process_end end;
};

static void heard_started(void *arg, uint32_t pid)
{
	struct heard *heard = arg;

	pthread_mutex_lock(&heard->lock);
	heard->starts++;
	heard->pid = pid;
	pthread_cond_broadcast(&heard->changed);
	pthread_mutex_unlock(&heard->lock);
}

static void heard_output(void *arg, int stream, const uint8_t *data, size_t len)
{
	struct heard *heard = arg;

	pthread_mutex_lock(&heard->lock);
	buf_append(&heard->streams[stream - 1], data, len);
	pthread_cond_broadcast(&heard->changed);
	pthread_mutex_unlock(&heard->lock);
	if (heard->process)
		process_consumed(heard->process, len);
}

static void heard_ended(void *arg, const struct process_end *end)
{
	struct heard *heard = arg;

	pthread_mutex_lock(&heard->lock);
	heard->ends++;
	heard->end = *end;
	pthread_cond_broadcast(&heard->changed);
	pthread_mutex_unlock(&heard->lock);
}

static const struct process_sink sink = {heard_started, heard_output, heard_ended};

/* --- a sandbox with one command --- */

struct stage {
	struct world *world;
	struct sandbox *sandbox;
	struct process *process;
	struct heard heard;
	int peer;    /* the agent's end of the link */
	uint32_t id; /* of the command */
};

static void wait_for(struct stage *stage, bool (*is_so)(const struct heard *heard))
{
	struct timespec until;
	int waited = 0;
	bool so;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += WORLD_PATIENCE_MS / 1000;
	pthread_mutex_lock(&stage->heard.lock);
	while (!(so = is_so(&stage->heard)) && waited == 0)
		waited = pthread_cond_timedwait(&stage->heard.changed, &stage->heard.lock, &until);
	pthread_mutex_unlock(&stage->heard.lock);
	assert_true(so);
}

static bool has_ended(const struct heard *heard)
{
	return heard->ends > 0;
}

static bool has_started(const struct heard *heard)
{
	return heard->starts > 0;
}

static void stage_init(struct stage *stage, struct world *world)
{
	struct wire_frame frame;
	struct err err = {0};

	*stage = (struct stage){.world = world};
	pthread_mutex_init(&stage->heard.lock, NULL);
	pthread_cond_init(&stage->heard.changed, NULL);
	stage->heard.streams[0] = stage->heard.streams[1] = BUF_INIT(4u << 20);
	fake_set_agent(&world->driver, FAKE_AGENT_MANUAL);
	stage->sandbox = world_create(world, "");
	/* One of our own: the driver closes its when it ends the sandbox. */
	stage->peer = dup(fake_peer(&world->driver, sandbox_id(stage->sandbox)));
	wire_expect(stage->peer, AGENT_ATTACH, &frame);
	if (process_new(stage->sandbox, &sink, &stage->heard, &stage->process, &err) < 0)
		fail_msg("%s", err.message);
}

/* Ends the sandbox; the command must then have ended, once. */
static void stage_fini(struct stage *stage, bool ran)
{
	struct err err;

	assert_int_equal(sandbox_delete(stage->sandbox, &err), 0);
	if (ran)
		wait_for(stage, has_ended);
	assert_int_equal(stage->heard.ends, ran ? 1 : 0);
	process_unref(stage->process);
	sandbox_unref(stage->sandbox);
	close(stage->peer);
	buf_fini(&stage->heard.streams[0]);
	buf_fini(&stage->heard.streams[1]);
	pthread_mutex_destroy(&stage->heard.lock);
	pthread_cond_destroy(&stage->heard.changed);
}

static const char *const argv[] = {"cat", "-u", NULL};
static const char *const env[] = {"A=1", NULL};

static int try_run(struct stage *stage, const char *input, size_t input_len, uint64_t timeout_ms,
	struct err *err)
{
	struct process_spec spec = {.argv = argv,
		.env = env,
		.cwd = "/workspace",
		.uid = 1000,
		.gid = 1001,
		.input = input,
		.input_len = input_len,
		.timeout_ms = timeout_ms};

	return process_run(stage->process, &spec, err);
}

static void run(struct stage *stage, const char *input, size_t input_len, uint64_t timeout_ms)
{
	struct wire_frame frame;
	struct err err = {0};

	if (try_run(stage, input, input_len, timeout_ms, &err) < 0)
		fail_msg("%s", err.message);
	wire_expect(stage->peer, AGENT_EXEC, &frame);
	stage->id = frame.id;
}

/* --- what an agent says --- */

static void say_started(struct stage *stage, uint32_t pid)
{
	struct buf payload = BUF_INIT(16);

	pack_u32(&payload, pid);
	wire_write(stage->peer, AGENT_STARTED, stage->id, payload.data, payload.len);
	buf_fini(&payload);
}

static void say_failed(struct stage *stage, uint8_t at, uint32_t errnum)
{
	struct buf payload = BUF_INIT(16);

	pack_u8(&payload, at);
	pack_u32(&payload, errnum);
	wire_write(stage->peer, AGENT_FAILED, stage->id, payload.data, payload.len);
	buf_fini(&payload);
}

static void say_output(struct stage *stage, uint64_t offset, uint8_t stream, size_t len)
{
	struct buf payload = BUF_INIT(AGENT_UP_MAX);
	static const uint8_t zeros[AGENT_UP_MAX];

	pack_u64(&payload, offset);
	pack_u8(&payload, stream);
	buf_append(&payload, zeros, len);
	wire_write(stage->peer, AGENT_OUTPUT, stage->id, payload.data, payload.len);
	buf_fini(&payload);
}

static void say_exited(struct stage *stage, uint32_t status, uint64_t end_offset)
{
	struct buf payload = BUF_INIT(64);

	pack_u32(&payload, status);
	pack_u64(&payload, end_offset);
	pack_u64(&payload, 11); /* cpu us */
	pack_u64(&payload, 22); /* peak bytes */
	pack_u64(&payload, 33); /* duration us */
	wire_write(stage->peer, AGENT_EXITED, stage->id, payload.data, payload.len);
	buf_fini(&payload);
}

static void say_u64(struct stage *stage, uint16_t kind, uint64_t value)
{
	struct buf payload = BUF_INIT(16);

	pack_u64(&payload, value);
	wire_write(stage->peer, kind, stage->id, payload.data, payload.len);
	buf_fini(&payload);
}

static uint64_t u64_of(const struct wire_frame *frame)
{
	struct unpack in = UNPACK_INIT(frame->payload, frame->len);

	return unpack_u64(&in);
}

/* --- honest agents --- */

static void a_command_is_sent_as_it_was_asked_for(void **state)
{
	struct stage stage;
	struct wire_frame frame;
	struct unpack in;
	char *text;
	struct err err;

	stage_init(&stage, *state);
	assert_int_equal(try_run(&stage, NULL, 0, 0, &err), 0);
	wire_expect(stage.peer, AGENT_EXEC, &frame);
	assert_int_not_equal(frame.id, 0);
	in = UNPACK_INIT(frame.payload, frame.len);
	assert_int_equal(unpack_u32(&in), 0); /* no standard input */
	assert_int_equal(unpack_u32(&in), 1000);
	assert_int_equal(unpack_u32(&in), 1001);
	(void)unpack_u16(&in);
	(void)unpack_u16(&in);
	assert_string_equal(text = unpack_str(&in, 100), "/workspace");
	free(text);
	assert_int_equal(unpack_u32(&in), 2);
	assert_string_equal(text = unpack_str(&in, 100), "cat");
	free(text);
	assert_string_equal(text = unpack_str(&in, 100), "-u");
	free(text);
	assert_int_equal(unpack_u32(&in), 1);
	assert_string_equal(text = unpack_str(&in, 100), "A=1");
	free(text);
	assert_true(unpack_done(&in));
	stage_fini(&stage, true);
}

static void output_and_end_reach_the_sink_and_the_agent_may_forget(void **state)
{
	struct stage stage;
	struct wire_frame frame;

	stage_init(&stage, *state);
	run(&stage, NULL, 0, 0);
	say_started(&stage, 42);
	say_output(&stage, 0, 1, 10);
	say_output(&stage, 10, 2, 5);
	say_output(&stage, 15, 1, 1);
	say_exited(&stage, 7 << 8, 16);
	wait_for(&stage, has_ended);
	assert_int_equal(stage.heard.starts, 1);
	assert_int_equal(stage.heard.pid, 42);
	assert_int_equal(stage.heard.streams[0].len, 11);
	assert_int_equal(stage.heard.streams[1].len, 5);
	assert_int_equal(stage.heard.end.outcome, PROCESS_RAN);
	assert_int_equal(stage.heard.end.reason, END_EXITED);
	assert_int_equal(stage.heard.end.exit_code, 7);
	assert_int_equal(stage.heard.end.signal, 0);
	assert_int_equal(stage.heard.end.cpu_us, 11);
	assert_int_equal(stage.heard.end.peak_memory_bytes, 22);
	assert_int_equal(stage.heard.end.duration_us, 33);
	wire_expect(stage.peer, AGENT_FORGET, &frame);
	assert_int_equal(frame.id, stage.id);
	stage_fini(&stage, true);
}

static void a_signal_is_reported_as_a_shell_does(void **state)
{
	struct stage stage;

	stage_init(&stage, *state);
	run(&stage, NULL, 0, 0);
	say_started(&stage, 1);
	say_exited(&stage, SIGTERM, 0);
	wait_for(&stage, has_ended);
	assert_int_equal(stage.heard.end.reason, END_SIGNAL);
	assert_int_equal(stage.heard.end.signal, SIGTERM);
	assert_int_equal(stage.heard.end.exit_code, 128 + SIGTERM);
	stage_fini(&stage, true);
}

static void a_kill_by_the_kernel_for_want_of_memory_is_told_from_others(void **state)
{
	struct world *world = *state;
	struct stage stage;

	stage_init(&stage, world);
	run(&stage, NULL, 0, 0);
	say_started(&stage, 1);
	pthread_mutex_lock(&world->driver.lock);
	world->driver.oom_kills = 1;
	pthread_mutex_unlock(&world->driver.lock);
	say_exited(&stage, SIGKILL, 0);
	wait_for(&stage, has_ended);
	assert_int_equal(stage.heard.end.reason, END_OOM);
	stage_fini(&stage, true);
}

static void a_kill_from_inside_is_a_signal(void **state)
{
	struct stage stage;

	stage_init(&stage, *state);
	run(&stage, NULL, 0, 0);
	say_started(&stage, 1);
	say_exited(&stage, SIGKILL, 0);
	wait_for(&stage, has_ended);
	assert_int_equal(stage.heard.end.reason, END_SIGNAL);
	stage_fini(&stage, true);
}

static void expect_kill(struct stage *stage)
{
	struct wire_frame frame;
	struct unpack in = UNPACK_INIT(frame.payload, 5);

	wire_expect(stage->peer, AGENT_SIGNAL, &frame);
	assert_int_equal(frame.id, stage->id);
	assert_int_equal(frame.len, 5);
	assert_int_equal(unpack_u32(&in), SIGKILL);
	assert_int_equal(unpack_u8(&in), 1); /* with all its children */
}

static void a_kill_is_sent_once_and_reported_as_one(void **state)
{
	struct stage stage;
	struct wire_frame frame;

	stage_init(&stage, *state);
	run(&stage, NULL, 0, 0);
	say_started(&stage, 1);
	process_kill(stage.process);
	process_kill(stage.process);
	expect_kill(&stage);
	say_exited(&stage, SIGKILL, 0);
	wait_for(&stage, has_ended);
	assert_int_equal(stage.heard.end.reason, END_KILLED);
	assert_int_equal(stage.heard.end.exit_code, 128 + SIGKILL);
	process_kill(stage.process); /* too late, and without effect */
	wire_expect(stage.peer, AGENT_FORGET, &frame);
	stage_fini(&stage, true);
}

static void a_kill_before_the_start_is_kept_for_it(void **state)
{
	struct stage stage;

	stage_init(&stage, *state);
	process_kill(stage.process);
	run(&stage, NULL, 0, 0);
	expect_kill(&stage);
	say_exited(&stage, SIGKILL, 0);
	wait_for(&stage, has_ended);
	assert_int_equal(stage.heard.end.reason, END_KILLED);
	stage_fini(&stage, true);
}

static void a_timeout_kills_and_is_reported_as_124(void **state)
{
	struct stage stage;

	stage_init(&stage, *state);
	run(&stage, NULL, 0, 1);
	say_started(&stage, 1);
	expect_kill(&stage);
	say_exited(&stage, SIGKILL, 0);
	wait_for(&stage, has_ended);
	assert_int_equal(stage.heard.end.reason, END_TIMEOUT);
	assert_int_equal(stage.heard.end.exit_code, 124);
	stage_fini(&stage, true);
}

static void a_command_that_ends_in_time_is_not_timed_out(void **state)
{
	struct stage stage;

	stage_init(&stage, *state);
	run(&stage, NULL, 0, 3600000);
	say_started(&stage, 1);
	say_exited(&stage, 0, 0);
	wait_for(&stage, has_ended);
	assert_int_equal(stage.heard.end.reason, END_EXITED);
	assert_int_equal(stage.heard.end.exit_code, 0);
	stage_fini(&stage, true);
}

static void assert_failure(struct world *world, uint8_t at, uint32_t errnum,
	enum process_outcome outcome, int exit_code)
{
	struct stage stage;

	stage_init(&stage, world);
	run(&stage, NULL, 0, 0);
	say_failed(&stage, at, errnum);
	wait_for(&stage, has_ended);
	assert_int_equal(stage.heard.starts, 0);
	assert_int_equal(stage.heard.end.outcome, outcome);
	assert_int_equal(stage.heard.end.errnum, (int)errnum);
	assert_int_equal(stage.heard.end.exit_code, exit_code);
	stage_fini(&stage, true);
}

static void a_command_that_never_ran_says_why(void **state)
{
	assert_failure(*state, AGENT_STAGE_CWD, ENOENT, PROCESS_BAD_CWD, 127);
	assert_failure(*state, AGENT_STAGE_EXEC, ENOENT, PROCESS_NOT_RUN, 127);
	assert_failure(*state, AGENT_STAGE_EXEC, EACCES, PROCESS_NOT_RUN, 126);
	assert_failure(*state, AGENT_STAGE_SETUP, EAGAIN, PROCESS_REFUSED, 126);
}

static bool has_a_window(const struct heard *heard)
{
	return heard->streams[0].len == AGENT_OUTPUT_WINDOW;
}

static bool has_more_than_a_window(const struct heard *heard)
{
	return heard->streams[0].len > AGENT_OUTPUT_WINDOW;
}

static void output_is_acknowledged_in_steps_as_it_is_consumed(void **state)
{
	struct stage stage;
	struct wire_frame frame;

	stage_init(&stage, *state);
	run(&stage, NULL, 0, 0);
	say_started(&stage, 1);
	for (int i = 0; i < 8; i++) /* the whole window */
		say_output(&stage, (uint64_t)i * 32768, 1, 32768);
	wait_for(&stage, has_a_window);
	process_consumed(stage.process, 65535); /* too little to tell */
	process_consumed(stage.process, 1);
	wire_expect(stage.peer, AGENT_ACK, &frame);
	assert_int_equal(u64_of(&frame), 65536);
	say_output(&stage, 262144, 1, 65536); /* there is room again */
	wait_for(&stage, has_more_than_a_window);
	process_consumed(stage.process, 262144);
	wire_expect(stage.peer, AGENT_ACK, &frame);
	assert_int_equal(u64_of(&frame), 327680);
	say_exited(&stage, 0, 327680);
	wait_for(&stage, has_ended);
	assert_int_equal(stage.heard.streams[0].len, 327680);
	stage_fini(&stage, true);
}

static void input_goes_out_within_the_window_and_then_ends(void **state)
{
	static char input[150000];
	struct stage stage;
	struct wire_frame frame;
	size_t sent = 0;

	stage_init(&stage, *state);
	run(&stage, input, sizeof(input), 0);
	say_started(&stage, 1);
	while (sent < AGENT_STDIN_WINDOW) {
		wire_expect(stage.peer, AGENT_STDIN, &frame);
		sent += frame.len;
	}
	assert_int_equal(sent, AGENT_STDIN_WINDOW);
	say_u64(&stage, AGENT_STDIN_ACK, 1000);
	wire_expect(stage.peer, AGENT_STDIN, &frame);
	assert_int_equal(frame.len, 1000);
	sent += frame.len;
	while (sent < sizeof(input)) {
		say_u64(&stage, AGENT_STDIN_ACK, sent);
		wire_expect(stage.peer, AGENT_STDIN, &frame);
		sent += frame.len;
	}
	wire_expect(stage.peer, AGENT_STDIN_CLOSE, &frame);
	stage_fini(&stage, true);
}

static void empty_input_is_closed_at_once_and_none_is_not_mentioned(void **state)
{
	struct stage stage;
	struct wire_frame frame;

	stage_init(&stage, *state);
	run(&stage, "", 0, 0);
	say_started(&stage, 1);
	wire_expect(stage.peer, AGENT_STDIN_CLOSE, &frame);
	stage_fini(&stage, true);

	stage_init(&stage, *state);
	run(&stage, NULL, 0, 0);
	say_started(&stage, 1);
	say_exited(&stage, 0, 0);
	wire_expect(stage.peer, AGENT_FORGET, &frame);
	stage_fini(&stage, true);
}

static void frames_of_unknown_commands_are_ignored(void **state)
{
	struct stage stage;
	uint32_t id;

	stage_init(&stage, *state);
	run(&stage, NULL, 0, 0);
	id = stage.id;
	stage.id = id + 1000; /* given up on, or of a daemon before us */
	say_started(&stage, 9);
	say_output(&stage, 77, 1, 5);
	say_exited(&stage, 0, 123);
	stage.id = id;
	say_started(&stage, 1);
	wait_for(&stage, has_started);
	assert_int_equal(stage.heard.pid, 1);
	assert_int_equal(stage.heard.streams[0].len, 0);
	stage_fini(&stage, true);
}

static void commands_of_a_daemon_before_us_are_ended_and_their_ids_not_used(void **state)
{
	struct world *world = *state;
	struct stage stage;
	struct buf hello = BUF_INIT(64);
	struct wire_frame frame;

	stage_init(&stage, world);
	pack_u32(&hello, AGENT_VERSION);
	pack_u32(&hello, 1);
	pack_u32(&hello, 70);
	wire_write(stage.peer, AGENT_HELLO, 0, hello.data, hello.len);
	buf_fini(&hello);
	wire_expect(stage.peer, AGENT_SIGNAL, &frame);
	assert_int_equal(frame.id, 70);
	wire_expect(stage.peer, AGENT_FORGET, &frame);
	assert_int_equal(frame.id, 70);
	run(&stage, NULL, 0, 0);
	assert_int_equal(stage.id, 71);
	stage_fini(&stage, true);
}

/* --- the end of a sandbox --- */

static void the_end_of_a_sandbox_ends_its_commands_once(void **state)
{
	struct stage stage;
	struct err err;

	stage_init(&stage, *state);
	run(&stage, NULL, 0, 3600000);
	say_started(&stage, 1);
	wait_for(&stage, has_started);
	assert_int_equal(sandbox_reset(stage.sandbox, &err), 0);
	wait_for(&stage, has_ended);
	assert_int_equal(stage.heard.end.reason, END_OPERATOR);
	assert_int_equal(stage.heard.end.exit_code, 128 + SIGKILL);
	process_consumed(stage.process, 1 << 20); /* the link is gone; nothing happens */
	process_kill(stage.process);
	stage_fini(&stage, true);
}

static void a_command_whose_sandbox_ended_before_it_ran_is_refused(void **state)
{
	struct stage stage;
	struct err err;

	stage_init(&stage, *state);
	assert_int_equal(sandbox_reset(stage.sandbox, &err), 0);
	assert_int_equal(try_run(&stage, NULL, 0, 0, &err), -EEXIST);
	assert_int_equal(err.kind, ERR_CONFLICT);
	stage_fini(&stage, false);
}

static void a_command_that_is_too_large_is_refused_without_a_word_to_the_sink(void **state)
{
	struct stage stage;
	char *huge = mem_new(AGENT_DOWN_MAX + 1);
	const char *const huge_argv[] = {"echo", huge, NULL};
	struct process_spec spec = {.argv = huge_argv, .env = env, .cwd = "/"};
	struct err err = {0};

	memset(huge, 'x', AGENT_DOWN_MAX);
	stage_init(&stage, *state);
	assert_int_equal(process_run(stage.process, &spec, &err), -EMSGSIZE);
	assert_int_equal(err.kind, ERR_TOO_LARGE);
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
	assert_int_equal(process_new(stage.sandbox, &sink, &stage.heard, &stage.process, &err), 0);
	assert_int_equal(world_status(stage.sandbox), SANDBOX_RUNNING);
	stage_fini(&stage, false);
}

/* --- hostile agents: the link ends, and with it the sandbox; the command ends once --- */

static void assert_punished(struct stage *stage)
{
	struct listener listener;
	struct wire_frame frame;
	struct sandbox_record record;

	wait_for(stage, has_ended);
	assert_int_equal(stage->heard.end.reason, END_AGENT_LOST);
	while (wire_read(stage->peer, &frame))
		;
	/* The reaper writes it down; it may have done so already. */
	listener_open(&listener, stage->world->engine, sandbox_id(stage->sandbox));
	if (world_status(stage->sandbox) != SANDBOX_STOPPED)
		listener_wait(&listener, "sandbox.stopped");
	listener_close(&listener);
	sandbox_read(stage->sandbox, &record);
	assert_int_equal(record.status, SANDBOX_STOPPED);
	assert_int_equal(record.end_reason, END_AGENT_LOST);
	sandbox_record_fini(&record);
	stage_fini(stage, true);
}

/* A command that runs, about to meet something bad. */
static void begin_crime(struct stage *stage, struct world *world)
{
	stage_init(stage, world);
	run(stage, NULL, 0, 0);
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
	wait_for(&stage, has_ended);
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
	struct stage stage;

	begin_crime(&stage, *state);
	say_output(&stage, 0, 1, 5);
	say_exited(&stage, 0, 6);
	assert_punished(&stage);
}

static void an_unknown_stage_ends_the_link(void **state)
{
	static const uint8_t stages[] = {0, 4, 255};

	for (size_t i = 0; i < array_len(stages); i++) {
		struct stage stage;

		stage_init(&stage, *state);
		run(&stage, NULL, 0, 0);
		say_failed(&stage, stages[i], ENOENT);
		assert_punished(&stage);
	}
}

static void an_acknowledgement_of_input_that_was_not_sent_ends_the_link(void **state)
{
	struct stage stage;

	begin_crime(&stage, *state);
	say_u64(&stage, AGENT_STDIN_ACK, 1);
	assert_punished(&stage);
}

static void an_acknowledgement_that_goes_back_ends_the_link(void **state)
{
	struct stage stage;
	struct wire_frame frame;

	stage_init(&stage, *state);
	run(&stage, "hello", 5, 0);
	say_started(&stage, 1);
	wire_expect(stage.peer, AGENT_STDIN, &frame);
	wire_expect(stage.peer, AGENT_STDIN_CLOSE, &frame);
	say_u64(&stage, AGENT_STDIN_ACK, 3);
	say_u64(&stage, AGENT_STDIN_ACK, 2);
	assert_punished(&stage);
}

static void a_kind_that_is_not_the_agent_s_ends_the_link(void **state)
{
	static const uint16_t kinds[] = {0, AGENT_EXEC, AGENT_SHUTDOWN, 70, 65535};

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
		{AGENT_OUTPUT, 8}, {AGENT_STDIN_ACK, 7}, {AGENT_STDIN_ACK, 9}, {AGENT_EXITED, 35},
		{AGENT_EXITED, 37}, {AGENT_HELLO, 7}, {AGENT_HELLO, 9}};
	static const uint8_t zeros[64] = {AGENT_VERSION};

	for (size_t i = 0; i < array_len(frames); i++) {
		struct stage stage;

		stage_init(&stage, *state);
		run(&stage, NULL, 0, 0);
		wire_write(stage.peer, frames[i].kind, stage.id, zeros, frames[i].len);
		assert_punished(&stage);
	}
}

static void a_hello_that_counts_wrong_ends_the_link(void **state)
{
	static const uint32_t counts[] = {2, AGENT_PROCESSES_MAX + 1, UINT32_MAX};

	for (size_t i = 0; i < array_len(counts); i++) {
		struct stage stage;
		struct buf hello = BUF_INIT(64);

		begin_crime(&stage, *state);
		pack_u32(&hello, AGENT_VERSION);
		pack_u32(&hello, counts[i]);
		pack_u32(&hello, 900);
		wire_write(stage.peer, AGENT_HELLO, 0, hello.data, hello.len);
		buf_fini(&hello);
		assert_punished(&stage);
	}
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		IN_WORLD(a_command_is_sent_as_it_was_asked_for),
		IN_WORLD(output_and_end_reach_the_sink_and_the_agent_may_forget),
		IN_WORLD(a_signal_is_reported_as_a_shell_does),
		IN_WORLD(a_kill_by_the_kernel_for_want_of_memory_is_told_from_others),
		IN_WORLD(a_kill_from_inside_is_a_signal),
		IN_WORLD(a_kill_is_sent_once_and_reported_as_one),
		IN_WORLD(a_kill_before_the_start_is_kept_for_it),
		IN_WORLD(a_timeout_kills_and_is_reported_as_124),
		IN_WORLD(a_command_that_ends_in_time_is_not_timed_out),
		IN_WORLD(a_command_that_never_ran_says_why),
		IN_WORLD(output_is_acknowledged_in_steps_as_it_is_consumed),
		IN_WORLD(input_goes_out_within_the_window_and_then_ends),
		IN_WORLD(empty_input_is_closed_at_once_and_none_is_not_mentioned),
		IN_WORLD(frames_of_unknown_commands_are_ignored),
		IN_WORLD(commands_of_a_daemon_before_us_are_ended_and_their_ids_not_used),
		IN_WORLD(the_end_of_a_sandbox_ends_its_commands_once),
		IN_WORLD(a_command_whose_sandbox_ended_before_it_ran_is_refused),
		IN_WORLD(a_command_that_is_too_large_is_refused_without_a_word_to_the_sink),
		IN_WORLD(a_command_wakes_a_stopped_sandbox),
		IN_WORLD(output_beyond_the_window_ends_the_link),
		IN_WORLD(output_at_another_offset_ends_the_link),
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
		IN_WORLD(a_hello_that_counts_wrong_ends_the_link),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
