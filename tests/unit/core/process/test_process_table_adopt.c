/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that outlive the daemon (src/core/process table.c): the next one goes on with them. */
#include "process_stage.h"

#include "base/clock.h"
#include "core/output/output_cursor.h"
#include "core/process/process_table.h"
#include "wire/agent.h"
#include "wire/pack.h"

#include <errno.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* --- the daemon leaves, and another comes --- */

/* Lets go of what belongs to the engine, and ends that; the watcher hears of an end that is none. */
static void close_daemon(struct stage *stage, char id[ID_LEN + 1])
{
	snprintf(id, ID_LEN + 1, "%s", sandbox_id(stage->sandbox));
	process_unref(take_ptr(&stage->process));
	sandbox_unref(take_ptr(&stage->sandbox));
	close(stage->peer);
	world_close(stage->world);
	heard_fini(&stage->heard, 1);
	assert_int_equal(stage->heard.ends, 1);
	heard_init(&stage->heard);
	stage->is_watched = false;
}

/* Opens another, up to the greeting of the agent; the process, if it is listed, is watched. */
static void open_daemon(struct stage *stage, const char *id)
{
	struct process_record record;
	struct wire_frame frame;
	char name[PROCESS_NAME_MAX];
	struct err err = {0};

	world_open(stage->world);
	if (sandbox_get(stage->world->engine, NULL, id, &stage->sandbox, &err) < 0)
		fail_msg("%s", err.message);
	stage->peer = dup(fake_peer(&stage->world->driver, id));
	process_name_format(stage->id, name);
	if (process_table_find(stage->sandbox, name, &stage->process, &record, &err) == 0) {
		process_record_fini(&record);
		if (stage->process)
			stage->is_watched =
				process_watch(stage->process, &heard_events, &stage->heard);
	}
	wire_expect(stage->peer, AGENT_ATTACH, &frame);
}

static void restart(struct stage *stage)
{
	char id[ID_LEN + 1];

	close_daemon(stage, id);
	open_daemon(stage, id);
}

/* The agent answers, and says again what it says on each new link. */
static void resume(struct stage *stage)
{
	wire_hello(stage->peer, AGENT_VERSION, &stage->id, 1);
	say_started(stage, 41);
}

static struct process_record row_of(struct stage *stage)
{
	struct process_record record;

	assert_true(stage_row(stage, &record));
	process_record_fini(&record);
	return record; /* the plain members of it */
}

/* A kept process that has written "hello ", in a daemon that is the second. */
static void begin(struct stage *stage, struct world *world)
{
	stage_init(stage, world);
	stage_start(stage, true);
	say_text(stage, 0, 1, "hello ");
	heard_wait_output(&stage->heard, 1, 6);
	restart(stage);
	assert_non_null(stage->process);
	assert_true(stage->is_watched);
}

/* --- output --- */

static void output_goes_on_exactly_where_the_log_ended(void **state)
{
	struct process_record record;
	struct stage stage;

	begin(&stage, *state);
	assert_log(process_log(stage.process), "hello ");
	resume(&stage);
	expect_ack(&stage, 6);
	heard_wait(&stage.heard, has_started);
	say_text(&stage, 6, 1, "world");
	heard_wait_output(&stage.heard, 1, 5);
	assert_log(process_log(stage.process), "hello world");
	process_read(stage.process, &record);
	assert_int_equal(record.output_bytes, 11);
	assert_int_equal(record.pid, 41);
	process_record_fini(&record);
	say_exited(&stage, 0, 11);
	heard_wait(&stage.heard, has_ended);
	assert_int_equal(stage.heard.starts, 1);
	assert_int_equal(row_of(&stage).output_bytes, 11);
	stage_fini(&stage, true);
}

/* The time of the bytes at an offset of the log. */
static int64_t time_at(struct output_log *log, uint64_t offset)
{
	struct output_cursor *cursor = output_cursor_new(log, offset);
	struct output_piece piece;
	char byte;

	output_cursor_read(cursor, &byte, 1, &piece);
	output_cursor_free(cursor);
	assert_int_equal(piece.kind, OUTPUT_STDOUT);
	return piece.at_ms;
}

static void what_was_written_meanwhile_is_dated_then_but_not_before_the_command_began(void **state)
{
	const uint32_t hour_ms = 3600 * 1000;
	int64_t began_ms = clock_wall_ms();
	struct stage stage;

	begin(&stage, *state);
	resume(&stage);
	expect_ack(&stage, 6);
	say_old_text(&stage, 6, UINT32_MAX, "lie");
	say_text(&stage, 9, 1, "now");
	heard_wait_output(&stage.heard, 1, 6);
	assert_true(time_at(process_log(stage.process), 6) > began_ms - hour_ms);
	assert_true(
		time_at(process_log(stage.process), 6) <= time_at(process_log(stage.process), 9));
	say_exited(&stage, 0, 12);
	heard_wait(&stage.heard, has_ended);
	stage_fini(&stage, true);
}

static void what_the_agent_sends_again_is_not_written_again(void **state)
{
	struct stage stage;

	begin(&stage, *state);
	resume(&stage);
	expect_ack(&stage, 6);
	say_text(&stage, 0, 1, "hel");	    /* all of it is old */
	say_text(&stage, 3, 1, "lo world"); /* half of it is */
	say_text(&stage, 11, 2, "!");
	say_exited(&stage, 0, 12);
	heard_wait(&stage.heard, has_ended);
	assert_int_equal(stage.heard.streams[0].len, 5);
	assert_memory_equal(stage.heard.streams[0].data, "world", 5);
	assert_int_equal(stage.heard.streams[1].len, 1);
	assert_log(process_log(stage.process), "hello world!");
	assert_int_equal(row_of(&stage).output_bytes, 12);
	stage_fini(&stage, true);
}

static void what_the_disk_lost_is_a_cut(void **state)
{
	struct stage stage;

	begin(&stage, *state);
	resume(&stage);
	expect_ack(&stage, 6);
	say_text(&stage, 10, 1, "world");
	heard_wait_output(&stage.heard, 1, 5);
	assert_log(process_log(stage.process), "hello [cut]world");
	/* Also before the end. */
	say_exited(&stage, 0, 20);
	heard_wait(&stage.heard, has_ended);
	assert_log(process_log(stage.process), "hello [cut]world[cut]");
	stage_fini(&stage, true);
}

static void much_output_after_a_restart_is_acknowledged_as_before(void **state)
{
	struct stage stage;

	begin(&stage, *state);
	resume(&stage);
	expect_ack(&stage, 6);
	for (uint64_t at = 6; at < 3ull * AGENT_OUTPUT_WINDOW; at += STAGE_ACK_STEP) {
		say_output(&stage, at, 1, STAGE_ACK_STEP);
		expect_ack(&stage, at + STAGE_ACK_STEP);
	}
	stage_fini(&stage, true);
}

/* --- the end --- */

static void an_end_that_came_meanwhile_is_reported_once(void **state)
{
	struct process_record row;
	struct stage stage;

	begin(&stage, *state);
	assert_int_equal(row_of(&stage).ended_at_ms, 0);
	resume(&stage);
	say_text(&stage, 6, 1, "x");
	say_exited(&stage, 4 << 8, 7);
	say_exited(&stage, 5 << 8, 7);
	heard_wait(&stage.heard, has_ended);
	expect_ack(&stage, 6);
	expect_forget(&stage);
	world_flush(stage.world);
	row = row_of(&stage);
	assert_int_equal(row.exit_code, 4);
	assert_int_equal(row.end.reason, END_EXITED);
	assert_true(row.ended_at_ms > 0);
	stage_fini(&stage, true); /* which asserts that it was once */
}

static void one_that_the_agent_does_not_name_was_lost(void **state)
{
	struct process_record row;
	struct stage stage;

	begin(&stage, *state);
	wire_hello(stage.peer, AGENT_VERSION, NULL, 0);
	heard_wait(&stage.heard, has_ended);
	assert_int_equal(stage.heard.end.how.reason, END_AGENT_LOST);
	assert_int_equal(stage.heard.end.exit_code, 137);
	row = row_of(&stage);
	assert_int_equal(row.end.reason, END_AGENT_LOST);
	assert_int_equal(row.output_bytes, 6);
	assert_true(row.ended_at_ms > 0);
	stage_await_unlisted(&stage);
	stage_fini(&stage, true);
}

static void a_stop_ends_a_recalled_one_like_any(void **state)
{
	struct stage stage;
	struct err err;

	begin(&stage, *state);
	resume(&stage);
	heard_wait(&stage.heard, has_started);
	assert_int_equal(sandbox_reset(stage.sandbox, &err), 0);
	heard_wait(&stage.heard, has_ended);
	assert_int_equal(stage.heard.end.how.reason, END_OPERATOR);
	assert_int_equal(row_of(&stage).end.reason, END_OPERATOR);
	stage_fini(&stage, true);
}

static void it_outlives_many_daemons(void **state)
{
	struct stage stage;

	begin(&stage, *state);
	for (int i = 0; i < 3; i++) {
		resume(&stage);
		expect_ack(&stage, 6 + (uint64_t)i);
		say_text(&stage, 6 + (uint64_t)i, 1, "x");
		heard_wait_output(&stage.heard, 1, 1);
		restart(&stage);
	}
	assert_log(process_log(stage.process), "hello xxx");
	resume(&stage);
	say_exited(&stage, 0, 9);
	heard_wait(&stage.heard, has_ended);
	stage_fini(&stage, true);
}

static void a_daemon_that_leaves_before_the_agent_answered_ends_nothing(void **state)
{
	struct stage stage;

	begin(&stage, *state);
	restart(&stage); /* no hello came */
	assert_int_equal(row_of(&stage).ended_at_ms, 0);
	resume(&stage);
	say_exited(&stage, 0, 6);
	heard_wait(&stage.heard, has_ended);
	assert_int_equal(stage.heard.end.how.reason, END_EXITED);
	stage_fini(&stage, true);
}

/* What is known of it is still being written when the daemon leaves. */
static sem_t writing, may_write;

static void hold(enum store_op op, const char *id)
{
	(void)id;
	if (op != STORE_PROCESS_UPDATE)
		return;
	atomic_store(&store_script.before, NULL);
	sem_post(&writing);
	while (sem_wait(&may_write) < 0)
		;
}

/* Lets the database writer go on when the second command was let go of. */
static void let_write(struct heard *heard)
{
	(void)heard;
	sem_post(&may_write);
}

static void a_daemon_that_leaves_in_the_middle_of_a_write_ends_nothing(void **state)
{
	struct process_spec spec = stage_spec();
	struct stage stage, other;
	char id[ID_LEN + 1];

	sem_init(&writing, 0, 0);
	sem_init(&may_write, 0, 0);
	stage_init(&stage, *state);
	stage_join(&other, &stage);
	stage_start(&other, true);
	world_flush(stage.world);
	atomic_store(&store_script.before, hold);
	say_exited(&other, 0, 0);
	world_await(&writing); /* the database writer is busy with the end of another */
	spec.is_kept = true;
	stage.heard.at_end = let_write; /* when the daemon lets go of it */
	stage_run(&stage, &spec);
	say_started(&stage, 41);
	heard_wait(&stage.heard, has_started); /* which is to be written too */
	process_unref(take_ptr(&other.process));
	sandbox_unref(take_ptr(&other.sandbox));
	close(other.peer);
	close_daemon(&stage, id);
	heard_fini(&other.heard, 1);
	{
		struct process_record record;
		struct err err;

		assert_int_equal(
			store_process_get(stage.world->store, id, stage.id, &record, &err), 0);
		assert_int_equal(record.ended_at_ms, 0);
		assert_int_equal(record.end.reason, END_NONE);
		process_record_fini(&record);
	}
	open_daemon(&stage, id);
	resume(&stage);
	say_exited(&stage, 0, 0);
	heard_wait(&stage.heard, has_ended);
	stage_fini(&stage, true);
}

/* --- those that nobody remembers --- */

static void one_that_was_not_kept_is_ended_by_the_next_daemon(void **state)
{
	struct stage stage;

	stage_init(&stage, *state);
	stage_start(&stage, false);
	restart(&stage);
	assert_null(stage.process);
	wire_hello(stage.peer, AGENT_VERSION, &stage.id, 1);
	expect_kill(&stage);
	expect_forget(&stage);
	say_exited(&stage, SIGKILL, 0); /* of no interest */
	stage_fini(&stage, false);
}

static void a_hello_that_counts_wrong_ends_the_link(void **state)
{
	static const struct {
		uint32_t count;
		size_t len;
	} hellos[] = {{0, 7}, {0, 9}, {1, 8}, {1, 11}, {1, 16}, {AGENT_PROCESSES_MAX + 1, 12},
		{UINT32_MAX, 12}};

	for (size_t i = 0; i < array_len(hellos); i++) {
		struct buf hello = BUF_INIT(64);
		struct wire_frame frame;
		struct stage stage;

		begin(&stage, *state);
		pack_u32(&hello, AGENT_VERSION);
		pack_u32(&hello, hellos[i].count);
		pack_u32(&hello, stage.id);
		pack_u32(&hello, 900);
		wire_write(stage.peer, AGENT_HELLO, 0, hello.data, hellos[i].len);
		buf_fini(&hello);
		heard_wait(&stage.heard, has_ended);
		assert_int_equal(stage.heard.end.how.reason, END_AGENT_LOST);
		while (wire_read(stage.peer, &frame))
			;
		stage_fini(&stage, true);
	}
}

static void numbers_go_on_after_those_the_agent_has(void **state)
{
	uint32_t ids[] = {1, 7};
	struct stage stage, next;

	begin(&stage, *state);
	wire_hello(stage.peer, AGENT_VERSION, ids, 2);
	expect_ack(&stage, 6);
	stage_join(&next, &stage); /* waits for the hello */
	stage.id = 7;
	expect_kill(&stage);
	expect_forget(&stage);
	stage_start(&next, false);
	assert_int_equal(next.id, 8);
	stage.id = 1;
	say_exited(&next, 0, 0);
	stage_leave(&next, true);
	stage_fini(&stage, true);
}

/* --- survivors --- */

static void begin_with_survivors(struct stage *stage, struct world *world)
{
	stage_init(stage, world);
	stage_start(stage, true);
	say_survivors(stage, 2);
	say_exited(stage, 3 << 8, 0);
	heard_wait(&stage->heard, has_ended);
	restart(stage);
	assert_non_null(stage->process); /* it is listed, */
	assert_false(stage->is_watched); /* but there is nothing to wait for */
	assert_int_equal(row_of(stage).survivors, 2);
}

static void survivors_are_recalled_until_the_last_is_gone(void **state)
{
	struct process_record row;
	struct stage stage;
	struct err err;

	begin_with_survivors(&stage, *state);
	wire_hello(stage.peer, AGENT_VERSION, &stage.id, 1);
	say_survivors(&stage, 2);
	assert_int_equal(process_signal(stage.process, SIGTERM, true, &err), 0);
	expect_signal(&stage, SIGTERM, true);
	say_survivors(&stage, 0);
	stage_await_unlisted(&stage);
	row = row_of(&stage);
	assert_int_equal(row.survivors, 0);
	assert_int_equal(row.exit_code, 3);
	assert_int_equal(row.end.reason, END_EXITED);
	stage_fini(&stage, false);
}

static void survivors_that_are_gone_meanwhile_are_written_off(void **state)
{
	struct process_record row;
	struct stage stage;

	begin_with_survivors(&stage, *state);
	wire_hello(stage.peer, AGENT_VERSION, NULL, 0);
	stage_await_unlisted(&stage);
	world_flush(stage.world);
	row = row_of(&stage);
	assert_int_equal(row.survivors, 0);
	assert_int_equal(row.exit_code, 3);
	assert_int_equal(row.end.reason, END_EXITED);
	stage_fini(&stage, false);
}

static void one_that_is_killed_before_the_agent_answered_is_killed_alone_if_asked(void **state)
{
	struct stage stage;

	begin(&stage, *state);
	process_kill(stage.process, false);
	wire_hello(stage.peer, AGENT_VERSION, &stage.id, 1);
	expect_signal(&stage, SIGKILL, false);
	expect_ack(&stage, 6);
	say_exited(&stage, SIGKILL, 6);
	heard_wait(&stage.heard, has_ended);
	assert_int_equal(stage.heard.end.how.reason, END_KILLED);
	stage_fini(&stage, true);
}

/* --- input --- */

static void input_goes_on_within_what_the_agent_has_room_for(void **state)
{
	static char zeros[2 * AGENT_STDIN_WINDOW];
	struct process_spec spec = stage_spec();
	struct stage stage;
	struct err err;

	spec.is_kept = spec.keeps_input_open = true;
	stage_init(&stage, *state);
	stage_run(&stage, &spec);
	say_started(&stage, 41);
	assert_int_equal(process_write(stage.process, zeros, 10, false, NULL, &err), 0);
	expect_kind(&stage, AGENT_STDIN);
	restart(&stage);
	/* Written before the agent answered: it waits, for it is not known what that has. */
	assert_int_equal(
		process_write(stage.process, zeros, 2 * AGENT_STDIN_WINDOW, false, NULL, &err), 0);
	wire_hello(stage.peer, AGENT_VERSION, &stage.id, 1);
	say_taken(&stage, 4, 10);
	say_started(&stage, 41);
	expect_ack(&stage, 0);
	assert_int_equal(expect_kind(&stage, AGENT_STDIN), AGENT_STDIN_WINDOW - 6);
	say_taken(&stage, 10, AGENT_STDIN_WINDOW + 4);
	assert_int_equal(expect_kind(&stage, AGENT_STDIN), 6);
	stage_fini(&stage, true);
}

static void input_that_was_closed_stays_closed(void **state)
{
	struct process_spec spec = stage_spec();
	struct stage stage;
	struct err err;

	spec.is_kept = spec.keeps_input_open = true;
	stage_init(&stage, *state);
	stage_run(&stage, &spec);
	say_started(&stage, 41);
	heard_wait(&stage.heard, has_started);
	assert_int_equal(process_write(stage.process, "x", 1, true, NULL, &err), 0);
	world_flush(stage.world);
	restart(&stage);
	assert_int_equal(process_write(stage.process, "x", 1, false, NULL, &err), -EEXIST);
	assert_string_equal(err.code, "stdin_closed");
	resume(&stage);
	stage_fini(&stage, true);
}

static void its_pid_is_known_before_the_agent_says_it_again(void **state)
{
	struct process_record record;
	struct process *process;
	struct stage stage;
	struct err err;

	stage_init(&stage, *state);
	stage_start(&stage, true);
	world_flush(stage.world);
	restart(&stage);
	assert_int_equal(process_table_find(stage.sandbox, "41", &process, &record, &err), 0);
	assert_ptr_equal(process, stage.process);
	process_unref(process);
	process_record_fini(&record);
	stage_fini(&stage, true);
}

/* --- timeouts --- */

/* Makes it older than it is. */
static void age(struct stage *stage, const char *id, int64_t by_ms)
{
	struct process_record record;
	struct err err;

	assert_int_equal(store_process_get(stage->world->store, id, stage->id, &record, &err), 0);
	record.started_at_ms -= by_ms;
	assert_int_equal(store_process_update(stage->world->store, &record, &err), 0);
	process_record_fini(&record);
}

static void start_with_timeout(struct stage *stage, struct world *world)
{
	struct process_spec spec = stage_spec();

	spec.is_kept = spec.kills_tree = true;
	spec.timeout_ms = 3600000;
	stage_init(stage, world);
	stage_run(stage, &spec);
	say_started(stage, 41);
	heard_wait(&stage->heard, has_started);
	world_flush(world);
}

static void a_timeout_goes_on_over_a_restart(void **state)
{
	struct stage stage;
	char id[ID_LEN + 1];

	start_with_timeout(&stage, *state);
	close_daemon(&stage, id);
	age(&stage, id, 3600000 - 300); /* 300 ms are left */
	open_daemon(&stage, id);
	resume(&stage);
	expect_ack(&stage, 0);
	expect_kill(&stage);
	say_exited(&stage, SIGKILL, 0);
	heard_wait(&stage.heard, has_ended);
	assert_int_equal(stage.heard.end.how.reason, END_TIMEOUT);
	assert_int_equal(stage.heard.end.exit_code, 124);
	stage_fini(&stage, true);
}

/*
 * The agent closes a link on which anything comes before the greeting, and with it the sandbox ends. The
 * others take up time between the recall of the first, which is due, and the greeting.
 */
static void a_timeout_that_passed_meanwhile_is_acted_on_after_the_greeting(void **state)
{
	struct process_record record;
	struct wire_frame frame;
	struct stage stage;
	char id[ID_LEN + 1];
	struct err err;

	start_with_timeout(&stage, *state);
	close_daemon(&stage, id);
	age(&stage, id, 7200000);
	process_record_init(&record);
	snprintf(record.sandbox_id, sizeof(record.sandbox_id), "%s", id);
	record.started_at_ms = clock_wall_ms();
	for (record.number = 2; record.number < 300; record.number++)
		assert_int_equal(store_process_insert(stage.world->store, &record, &err), 0);
	process_record_fini(&record);
	world_open(stage.world);
	assert_int_equal(sandbox_get(stage.world->engine, NULL, id, &stage.sandbox, &err), 0);
	stage.peer = dup(fake_peer(&stage.world->driver, id));
	wire_expect(stage.peer, AGENT_ATTACH, &frame); /* first of all */
	wire_hello(stage.peer, AGENT_VERSION, &stage.id, 1);
	do
		wire_read(stage.peer, &frame);
	while (frame.kind != AGENT_SIGNAL);
	assert_int_equal(frame.id, stage.id);
	stage_fini(&stage, false);
}

/* --- no sandbox any more --- */

static void processes_of_a_sandbox_that_is_gone_were_lost(void **state)
{
	struct world *world = *state;
	struct process_record record;
	struct stage stage;
	char id[ID_LEN + 1];
	struct err err;

	stage_init(&stage, world);
	stage_start(&stage, true);
	say_text(&stage, 0, 1, "hello");
	heard_wait_output(&stage.heard, 1, 5);
	close_daemon(&stage, id);
	assert_int_equal(world->driver.base.ops->stop(&world->driver.base, id, NULL, &err), 0);
	world_open(world);
	assert_int_equal(store_process_get(world->store, id, stage.id, &record, &err), 0);
	assert_true(record.ended_at_ms > 0);
	assert_int_equal(record.end.reason, END_AGENT_LOST);
	assert_int_equal(record.exit_code, 137);
	assert_int_equal(record.output_bytes, 5);
	process_record_fini(&record);
	heard_fini(&stage.heard, 0);
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		IN_WORLD(output_goes_on_exactly_where_the_log_ended),
		IN_WORLD(what_was_written_meanwhile_is_dated_then_but_not_before_the_command_began),
		IN_WORLD(what_the_agent_sends_again_is_not_written_again),
		IN_WORLD(what_the_disk_lost_is_a_cut),
		IN_WORLD(much_output_after_a_restart_is_acknowledged_as_before),
		IN_WORLD(an_end_that_came_meanwhile_is_reported_once),
		IN_WORLD(one_that_the_agent_does_not_name_was_lost),
		IN_WORLD(a_stop_ends_a_recalled_one_like_any),
		IN_WORLD(it_outlives_many_daemons),
		IN_WORLD(a_daemon_that_leaves_before_the_agent_answered_ends_nothing),
		IN_WORLD(a_daemon_that_leaves_in_the_middle_of_a_write_ends_nothing),
		IN_WORLD(one_that_was_not_kept_is_ended_by_the_next_daemon),
		IN_WORLD(a_hello_that_counts_wrong_ends_the_link),
		IN_WORLD(numbers_go_on_after_those_the_agent_has),
		IN_WORLD(survivors_are_recalled_until_the_last_is_gone),
		IN_WORLD(survivors_that_are_gone_meanwhile_are_written_off),
		IN_WORLD(one_that_is_killed_before_the_agent_answered_is_killed_alone_if_asked),
		IN_WORLD(input_goes_on_within_what_the_agent_has_room_for),
		IN_WORLD(input_that_was_closed_stays_closed),
		IN_WORLD(its_pid_is_known_before_the_agent_says_it_again),
		IN_WORLD(a_timeout_goes_on_over_a_restart),
		IN_WORLD(a_timeout_that_passed_meanwhile_is_acted_on_after_the_greeting),
		IN_WORLD(processes_of_a_sandbox_that_is_gone_were_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
