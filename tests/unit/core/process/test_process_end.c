/* SPDX-License-Identifier: Apache-2.0 */
/* How commands end (src/core/process_end.c): why, what is written of them, and who hears of it. */
#include "process_stage.h"

#include "wire/agent.h"

#include <errno.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* --- why --- */

struct exit_reason {
	struct exit_words words;
	bool is_killed; /* by a client */
	enum end_reason reason;
	int signal, exit_code;
	const char *detail; /* part of it; NULL: none */
};

static void assert_verdict(struct world *world, const struct exit_reason *exit_reason)
{
	struct stage stage;
	const struct process_end *end = &stage.heard.end;

	stage_init(&stage, world);
	stage_start(&stage, false);
	if (exit_reason->is_killed)
		process_kill(stage.process, true);
	say_exited_with(&stage, exit_reason->words);
	heard_wait(&stage.heard, has_ended);
	assert_int_equal(end->outcome, PROCESS_RAN);
	assert_int_equal(end->how.reason, exit_reason->reason);
	assert_int_equal(end->how.signal, exit_reason->signal);
	assert_int_equal(end->exit_code, exit_reason->exit_code);
	assert_int_equal(end->how.denied_count, exit_reason->words.denied_count);
	assert_string_equal(end->how.profile, end->how.denied_count ? "default" : "");
	for (uint32_t i = 0; i < end->how.denied_count; i++) {
		assert_int_equal(end->how.denied[i].number, exit_reason->words.denied + i);
		assert_int_equal(end->how.denied[i].times, i + 1);
	}
	if (exit_reason->detail)
		assert_non_null(strstr(end->how.detail, exit_reason->detail));
	else
		assert_string_equal(end->how.detail, "");
	stage_fini(&stage, true);
}

static void the_reason_follows_from_what_the_agent_and_the_client_say(void **state)
{
	static const struct exit_reason verdicts[] = {
		{.reason = END_EXITED},
		{.words = {.status = 7 << 8}, .reason = END_EXITED, .exit_code = 7},
		{.words = {.status = SIGTERM}, false, END_SIGNAL, SIGTERM, 143, NULL},
		{.words = {.status = SIGKILL}, false, END_SIGNAL, SIGKILL, 137, NULL},
		/* A client's kill, unless it ended in another way before that came. */
		{.words = {.status = SIGKILL}, true, END_KILLED, SIGKILL, 137, NULL},
		{.words = {.status = 0}, true, END_EXITED, 0, 0, NULL},
		{.words = {.status = SIGTERM}, true, END_SIGNAL, SIGTERM, 143, NULL},
		{.words = {.status = SIGKILL, .oom_kills = 1},
			true,
			END_KILLED,
			SIGKILL,
			137,
			NULL},
		/* Memory: itself, or a child whose status its shell passes on. */
		{.words = {.status = SIGKILL, .oom_kills = 1},
			false,
			END_OOM,
			SIGKILL,
			137,
			" --memory SIZE"},
		{.words = {.status = 137 << 8, .oom_kills = 2}, false, END_OOM, 0, 137, "killed 2"},
		{.words = {.status = 0, .oom_kills = 1}, false, END_EXITED, 0, 0, "memory"},
		{.words = {.status = 1 << 8, .oom_kills = 1}, false, END_EXITED, 0, 1, "memory"},
		{.words = {.status = 137 << 8}, false, END_EXITED, 0, 137, NULL},
		/* The limit of processes. */
		{.words = {.status = 1 << 8, .refused_forks = 3},
			false,
			END_PIDS_LIMIT,
			0,
			1,
			"3 times"},
		{.words = {.status = 0, .refused_forks = 3}, false, END_EXITED, 0, 0, "3 times"},
		{.words = {.status = SIGABRT, .refused_forks = 1},
			false,
			END_PIDS_LIMIT,
			SIGABRT,
			134,
			"hit 1 time while"},
		/* The disk. */
		{.words = {.status = 1 << 8, .flags = AGENT_EXITED_DISK_FULL},
			false,
			END_DISK_FULL,
			0,
			1,
			" --disk SIZE"},
		{.words = {.status = 1 << 8, .flags = AGENT_EXITED_DISK_WAS_FULL},
			false,
			END_EXITED,
			0,
			1,
			"may not be why"},
		{.words = {.status = 0, .flags = AGENT_EXITED_DISK_FULL},
			false,
			END_EXITED,
			0,
			0,
			NULL},
		/* A command that says that it has no network. */
		{.words = {.status = 1 << 8, .flags = AGENT_EXITED_NO_NETWORK},
			false,
			END_EXITED,
			0,
			1,
			"mode none"},
		/* Flags of a later agent mean nothing to us. */
		{.words = {.status = 1 << 8,
			 .flags = ~(AGENT_EXITED_DISK_FULL | AGENT_EXITED_DISK_WAS_FULL |
				    AGENT_EXITED_NO_NETWORK)},
			false,
			END_EXITED,
			0,
			1,
			NULL},
	};

	for (size_t i = 0; i < array_len(verdicts); i++)
		assert_verdict(*state, &verdicts[i]);
}

/* The numbers of this machine's architecture. */
static void what_the_profile_refused_is_named(void **state)
{
	static const struct exit_reason verdicts[] = {
		{.words = {.status = 1 << 8, .denied_count = 1, .denied = SYS_mount},
			.reason = END_EXITED,
			.exit_code = 1,
			.detail = "the profile `default` refused mount(2) once"},
		{.words = {.status = SIGABRT, .denied_count = 2, .denied = SYS_mount - 1},
			.reason = END_SIGNAL,
			.signal = SIGABRT,
			.exit_code = 134,
			.detail = "(2) once, mount(2) 2 times"},
		/* Numbers without a name, from an agent that lies. */
		{.words = {.status = 1 << 8, .denied_count = 1, .denied = UINT32_MAX},
			.reason = END_EXITED,
			.exit_code = 1,
			.detail = "4294967295(2) once"},
		{.words = {.status = 1 << 8, .denied_count = AGENT_DENIED_MAX, .denied = 1000},
			.reason = END_EXITED,
			.exit_code = 1,
			.detail = "1000(2) once"},
		/* It got over it; or there is a better reason. */
		{.words = {.denied_count = 1, .denied = SYS_mount}, .reason = END_EXITED},
		{.words = {.status = 1 << 8,
			 .refused_forks = 3,
			 .denied_count = 1,
			 .denied = SYS_mount},
			.reason = END_PIDS_LIMIT,
			.exit_code = 1,
			.detail = "limit of processes"},
	};

	for (size_t i = 0; i < array_len(verdicts); i++)
		assert_verdict(*state, &verdicts[i]);
}

static void the_victim_is_named_if_the_driver_knows_it(void **state)
{
	struct world *world = *state;
	struct exit_reason exit_reason = {
		{.status = SIGKILL, .oom_kills = 1}, false, END_OOM, SIGKILL, 137, NULL};

	pthread_mutex_lock(&world->driver.lock);
	snprintf(world->driver.stats.oom_victim, sizeof(world->driver.stats.oom_victim),
		"python3 (61 MiB)");
	world->driver.stats.memory_limit_bytes = 64 << 20;
	pthread_mutex_unlock(&world->driver.lock);
	exit_reason.detail = "python3 (61 MiB)";
	assert_verdict(world, &exit_reason);
	exit_reason.detail = "at a limit of 64 MiB";
	assert_verdict(world, &exit_reason);
}

struct stopper {
	struct sandbox *sandbox;
	enum end_reason reason;
	int r;
};

static void *stop(void *arg)
{
	struct stopper *stopper = arg;
	struct err err;

	stopper->r = sandbox_stop(stopper->sandbox, stopper->reason, &err);
	return NULL;
}

static void one_that_ends_while_its_sandbox_does_has_the_sandbox_s_reason(void **state)
{
	static const enum end_reason reasons[] = {END_OPERATOR, END_IDLE, END_MEMORY_PRESSURE};

	for (size_t i = 0; i < array_len(reasons); i++) {
		struct stopper stopper = {.reason = reasons[i]};
		struct wire_frame frame;
		struct stage stage;
		pthread_t thread;

		stage_init(&stage, *state);
		stage_start(&stage, true);
		stopper.sandbox = stage.sandbox;
		assert_int_equal(pthread_create(&thread, NULL, stop, &stopper), 0);
		wire_expect(stage.peer, AGENT_SHUTDOWN, &frame);
		say_exited(&stage, SIGTERM, 0);
		heard_wait(&stage.heard, has_ended);
		shutdown(stage.peer, SHUT_RDWR);
		pthread_join(thread, NULL);
		assert_int_equal(stopper.r, 0);
		assert_int_equal(stage.heard.end.how.reason, reasons[i]);
		assert_int_equal(stage.heard.end.how.signal, SIGTERM);
		assert_int_equal(stage.heard.end.exit_code, 128 + SIGTERM);
		stage_fini(&stage, true);
	}
}

/* The reason of an end that is long past is not that of a command that runs now. */
static void a_sandbox_that_was_stopped_before_does_not_lend_its_reason(void **state)
{
	struct world *world = *state;
	struct stage first, second;
	struct wire_frame frame;
	struct err err;

	stage_init(&first, world);
	stage_start(&first, false);
	assert_int_equal(sandbox_stop(first.sandbox, END_IDLE, &err), 0);
	assert_int_equal(sandbox_start(first.sandbox, &err), 0);
	close(first.peer);
	first.peer = dup(fake_peer(&world->driver, sandbox_id(first.sandbox)));
	wire_expect(first.peer, AGENT_ATTACH, &frame);
	stage_join(&second, &first);
	stage_start(&second, false);
	say_exited(&second, 3 << 8, 0);
	heard_wait(&second.heard, has_ended);
	assert_int_equal(first.heard.end.how.reason, END_IDLE);
	assert_int_equal(second.heard.end.how.reason, END_EXITED);
	stage_leave(&second, true);
	stage_fini(&first, true);
}

/* --- what is written --- */

/* Every byte that is heard is in the log already. */
static void look_into_the_log(struct heard *heard, const uint8_t *data, size_t len)
{
	struct stage *stage = heard->arg;
	auto_free char *text = read_log(process_log(stage->process));
	size_t have = strlen(text);

	assert_true(have >= len);
	assert_memory_equal(text + have - len, data, len);
}

static void kept_output_is_in_the_log_before_it_is_heard(void **state)
{
	struct stage stage;
	auto_free char *text = NULL;

	stage_init(&stage, *state);
	stage.heard.at_output = look_into_the_log;
	stage.heard.arg = &stage;
	stage_start(&stage, true);
	say_text(&stage, 0, 1, "out");
	say_text(&stage, 3, 2, "err");
	say_text(&stage, 6, 1, "put");
	say_exited(&stage, 0, 9);
	heard_wait(&stage.heard, has_ended);
	text = read_log(process_log(stage.process));
	assert_string_equal(text, "outerrput");
	stage_fini(&stage, true);
}

static void look_at_the_row(struct heard *heard)
{
	struct process_record record;

	assert_true(stage_row(heard->arg, &record));
	assert_true(record.ended_at_ms > 0);
	assert_int_equal(record.end.reason, END_EXITED);
	assert_int_equal(record.exit_code, 5);
	assert_int_equal(record.output_bytes, 4);
	assert_int_equal(record.duration_us, 33);
	process_record_fini(&record);
}

static void a_kept_one_has_a_row_before_it_runs_and_its_end_before_it_is_heard(void **state)
{
	struct process_record record;
	struct stage stage;

	stage_init(&stage, *state);
	stage.heard.at_end = look_at_the_row;
	stage.heard.arg = &stage;
	stage_start(&stage, true);
	assert_true(stage_row(&stage, &record));
	assert_int_equal(record.ended_at_ms, 0);
	assert_true(record.started_at_ms > 0);
	assert_string_equal(record.cwd, "/workspace");
	assert_int_equal(record.uid, 1000);
	assert_int_equal(json_array_size(record.argv), 2);
	process_record_fini(&record);
	say_text(&stage, 0, 1, "text");
	say_exited(&stage, 5 << 8, 4);
	heard_wait(&stage.heard, has_ended);
	stage_fini(&stage, true);
}

static void of_one_that_is_not_kept_nothing_is_written(void **state)
{
	struct process_record record;
	struct stage stage;

	stage_init(&stage, *state);
	stage_start(&stage, false);
	assert_null(process_log(stage.process));
	assert_false(stage_row(&stage, &record));
	say_text(&stage, 0, 1, "text");
	say_exited(&stage, 0, 4);
	heard_wait(&stage.heard, has_ended);
	assert_false(stage_row(&stage, &record));
	stage_fini(&stage, true);
}

static void one_that_was_not_kept_but_left_somebody_behind_has_a_row(void **state)
{
	struct process_record record;
	struct stage stage;
	struct err err;

	stage_init(&stage, *state);
	stage_start(&stage, false);
	say_survivors(&stage, 2);
	say_exited(&stage, 0, 0);
	heard_wait(&stage.heard, has_ended);
	assert_true(stage_row(&stage, &record));
	assert_int_equal(record.survivors, 2);
	assert_true(record.ended_at_ms > 0);
	process_record_fini(&record);
	shutdown(stage.peer, SHUT_RDWR);
	assert_int_equal(sandbox_stop(stage.sandbox, END_OPERATOR, &err), 0);
	assert_true(stage_row(&stage, &record));
	assert_int_equal(record.survivors, 0);
	assert_int_equal(record.end.reason, END_EXITED); /* its own end stays */
	process_record_fini(&record);
	stage_fini(&stage, true);
}

static void one_whose_row_cannot_be_written_does_not_run(void **state)
{
	struct process_spec spec = stage_spec();
	struct stage stage, other;
	struct err err;

	spec.is_kept = true;
	stage_init(&stage, *state);
	atomic_store(&store_script.fail[STORE_PROCESS_INSERT], 1);
	assert_int_equal(stage_try(&stage, &spec, &err), -ENOSPC);
	/* The agent has heard nothing of it: what it hears next is another. */
	stage_join(&other, &stage);
	stage_start(&other, true);
	stage_leave(&stage, false);
	stage_fini(&other, true);
}

static void an_end_that_cannot_be_written_is_reported_all_the_same(void **state)
{
	struct stage stage;

	stage_init(&stage, *state);
	stage_start(&stage, true);
	atomic_store(&store_script.fail[STORE_PROCESS_UPDATE], 1000);
	say_exited(&stage, 9 << 8, 0);
	heard_wait(&stage.heard, has_ended);
	assert_int_equal(stage.heard.end.exit_code, 9);
	expect_forget(&stage);
	atomic_store(&store_script.fail[STORE_PROCESS_UPDATE], 0);
	stage_fini(&stage, true);
}

/* --- a database that takes its time --- */

static sem_t writing, may_write;
static atomic_int writes_to_hold;

/* The writes that are to be held, and only those. */
static void hold(enum store_op op, const char *id)
{
	int left = atomic_load(&writes_to_hold);

	(void)id;
	if (op != STORE_PROCESS_UPDATE)
		return;
	while (left > 0 && !atomic_compare_exchange_weak(&writes_to_hold, &left, left - 1))
		;
	if (left <= 0)
		return;
	sem_post(&writing);
	while (sem_wait(&may_write) < 0)
		;
}

static void hold_writes(int count)
{
	sem_init(&writing, 0, 0);
	sem_init(&may_write, 0, 0);
	atomic_store(&writes_to_hold, count);
	atomic_store(&store_script.before, hold);
}

static void a_slow_database_holds_up_no_other_command(void **state)
{
	struct stage slow, quick;

	stage_init(&slow, *state);
	stage_join(&quick, &slow);
	stage_start(&slow, true);
	stage_start(&quick, false);
	hold_writes(1);
	say_exited(&slow, 0, 0);
	world_await(&writing);
	say_output(&quick, 0, 1, 1000);
	say_exited(&quick, 0, 1000);
	heard_wait(&quick.heard, has_ended);
	assert_int_equal(quick.heard.streams[0].len, 1000);
	pthread_mutex_lock(&slow.heard.lock);
	assert_int_equal(slow.heard.ends, 0);
	pthread_mutex_unlock(&slow.heard.lock);
	sem_post(&may_write);
	heard_wait(&slow.heard, has_ended);
	stage_leave(&quick, true);
	stage_fini(&slow, true);
}

/* Waits for the end as long as it could take; it may as well wait for us. */
static void give_time_to_end(struct heard *heard)
{
	struct timespec until;
	int waited = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 1;
	pthread_mutex_lock(&heard->lock);
	while (heard->ends == 0 && waited == 0)
		waited = pthread_cond_timedwait(&heard->changed, &heard->lock, &until);
	pthread_mutex_unlock(&heard->lock);
}

/* That it started is being written when its sandbox is ended: the older write must not win. */
static void an_end_is_not_undone_by_a_write_from_before_it(void **state)
{
	struct stopper stopper = {.reason = END_OPERATOR};
	struct process_spec spec = stage_spec();
	struct process_record record;
	struct stage stage;
	pthread_t thread;

	stage_init(&stage, *state);
	spec.is_kept = true;
	hold_writes(1);
	stage_run(&stage, &spec);
	say_started(&stage, 1);
	world_await(&writing); /* the database writer is about to write that it runs */
	stopper.sandbox = stage.sandbox;
	shutdown(stage.peer, SHUT_RDWR);
	assert_int_equal(pthread_create(&thread, NULL, stop, &stopper), 0);
	give_time_to_end(&stage.heard);
	sem_post(&may_write);
	pthread_join(thread, NULL);
	world_flush(stage.world);
	assert_true(stage_row(&stage, &record));
	assert_true(record.ended_at_ms > 0);
	assert_int_not_equal(record.end.reason, END_NONE);
	process_record_fini(&record);
	stage_fini(&stage, true);
}

/* --- who hears of it --- */

static void every_watcher_hears_everything_once(void **state)
{
	struct heard others[9];
	struct stage stage;

	stage_init(&stage, *state);
	for (size_t i = 0; i < array_len(others); i++) {
		heard_init(&others[i]);
		heard_watch(&others[i], stage.process);
	}
	stage_start(&stage, true);
	say_text(&stage, 0, 1, "out");
	say_text(&stage, 3, 2, "error");
	say_exited(&stage, 4 << 8, 8);
	for (size_t i = 0; i < array_len(others); i++) {
		heard_wait(&others[i], has_ended);
		heard_fini(&others[i], 1);
		assert_int_equal(others[i].starts, 1);
		assert_int_equal(others[i].ends, 1);
		assert_int_equal(others[i].end.exit_code, 4);
	}
	assert_int_equal(stage.heard.streams[0].len, 3);
	assert_int_equal(stage.heard.streams[1].len, 5);
	stage_fini(&stage, true);
}

static void a_watcher_that_comes_later_hears_what_comes_after_it(void **state)
{
	struct heard late;
	struct stage stage;

	stage_init(&stage, *state);
	stage_start(&stage, false);
	say_text(&stage, 0, 1, "before");
	heard_wait_output(&stage.heard, 1, 6);
	heard_init(&late);
	heard_watch(&late, stage.process);
	say_text(&stage, 6, 1, "after");
	heard_wait_output(&late, 1, 5);
	assert_memory_equal(late.streams[0].data, "after", 5);
	assert_int_equal(late.starts, 0);
	say_exited(&stage, 0, 11);
	heard_wait(&late, has_ended);
	heard_fini(&late, 1);
	stage_fini(&stage, true);
}

/* Leaves at the first output, from within the event. */
static void leave(struct heard *heard, const uint8_t *data, size_t len)
{
	(void)data;
	(void)len;
	process_unwatch(heard->arg, heard);
}

static void a_watcher_may_leave_while_it_is_told(void **state)
{
	struct heard leaver;
	struct stage stage;

	stage_init(&stage, *state);
	heard_init(&leaver);
	leaver.at_output = leave;
	leaver.arg = stage.process;
	heard_watch(&leaver, stage.process);
	stage_start(&stage, false);
	say_text(&stage, 0, 1, "one");
	say_text(&stage, 3, 1, "two");
	say_exited(&stage, 0, 6);
	heard_wait(&stage.heard, has_ended);
	assert_int_equal(stage.heard.streams[0].len, 6);
	process_unwatch(stage.process, &leaver); /* once more does no harm */
	heard_fini(&leaver, 1);
	assert_int_equal(leaver.ends, 0);
	assert_int_equal(leaver.starts, 1);
	stage_fini(&stage, true);
}

static void a_watch_that_was_ended_is_told_nothing_more(void **state)
{
	struct heard gone;
	struct stage stage;

	stage_init(&stage, *state);
	heard_init(&gone);
	heard_watch(&gone, stage.process);
	process_unwatch(stage.process, &gone);
	heard_fini(&gone, 1);
	stage_start(&stage, false);
	say_exited(&stage, 0, 0);
	heard_wait(&stage.heard, has_ended);
	assert_int_equal(gone.starts, 0);
	stage_fini(&stage, true);
}

static void nobody_can_watch_one_that_has_ended(void **state)
{
	struct heard late;
	struct stage stage;

	stage_init(&stage, *state);
	stage_start(&stage, true);
	say_exited(&stage, 0, 0);
	heard_wait(&stage.heard, has_ended);
	heard_init(&late);
	assert_false(process_watch(stage.process, &heard_events, &late));
	process_unwatch(stage.process, &late);
	heard_fini(&late, 0); /* its reference stayed ours */
	stage_fini(&stage, true);
}

static void a_watcher_that_wants_little_need_not_name_the_rest(void **state)
{
	struct process_events events = heard_events;
	struct heard heard;
	struct stage stage;

	stage_init(&stage, *state);
	heard_init(&heard);
	events.started = NULL;
	events.output = NULL;
	events.drained = NULL;
	events.ended = NULL;
	assert_true(process_watch(stage.process, &events, &heard));
	stage_start(&stage, false);
	say_text(&stage, 0, 1, "x");
	say_taken(&stage, 0, 0);
	say_exited(&stage, 0, 1);
	heard_wait(&stage.heard, has_ended);
	heard_fini(&heard, 1);
	stage_fini(&stage, true);
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		IN_WORLD(the_reason_follows_from_what_the_agent_and_the_client_say),
		IN_WORLD(what_the_profile_refused_is_named),
		IN_WORLD(the_victim_is_named_if_the_driver_knows_it),
		IN_WORLD(one_that_ends_while_its_sandbox_does_has_the_sandbox_s_reason),
		IN_WORLD(a_sandbox_that_was_stopped_before_does_not_lend_its_reason),
		IN_WORLD(kept_output_is_in_the_log_before_it_is_heard),
		IN_WORLD(a_kept_one_has_a_row_before_it_runs_and_its_end_before_it_is_heard),
		IN_WORLD(of_one_that_is_not_kept_nothing_is_written),
		IN_WORLD(one_that_was_not_kept_but_left_somebody_behind_has_a_row),
		IN_WORLD(one_whose_row_cannot_be_written_does_not_run),
		IN_WORLD(an_end_that_cannot_be_written_is_reported_all_the_same),
		IN_WORLD(a_slow_database_holds_up_no_other_command),
		IN_WORLD(an_end_is_not_undone_by_a_write_from_before_it),
		IN_WORLD(every_watcher_hears_everything_once),
		IN_WORLD(a_watcher_that_comes_later_hears_what_comes_after_it),
		IN_WORLD(a_watcher_may_leave_while_it_is_told),
		IN_WORLD(a_watch_that_was_ended_is_told_nothing_more),
		IN_WORLD(nobody_can_watch_one_that_has_ended),
		IN_WORLD(a_watcher_that_wants_little_need_not_name_the_rest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
