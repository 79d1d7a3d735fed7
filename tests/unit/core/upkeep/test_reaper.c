/* SPDX-License-Identifier: Apache-2.0 */
/* The reaper (src/core/upkeep/reaper.c) over a driver that is played. Each test takes rounds of it, a second each. */
#include "core_fixture.h"

#include "core/engine/sandbox_state.h"
#include "core/process/process.h"

#include <errno.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static struct sandbox *create_for(
	struct world *world, const struct owner *owner, int64_t idle_s, int64_t lifetime_s)
{
	struct sandbox_record draft;
	struct sandbox *sandbox = NULL;
	struct err err = {0};

	world_draft(&draft, "", "");
	draft.owner = *owner;
	draft.idle_timeout_s = idle_s;
	draft.lifetime_s = lifetime_s;
	if (sandbox_create(world->engine, &draft, &sandbox, &err) < 0)
		fail_msg("%s", err.message);
	sandbox_record_fini(&draft);
	return sandbox;
}

static struct sandbox *create_with(struct world *world, int64_t idle_s, int64_t lifetime_s)
{
	return create_for(world, &world_owner, idle_s, lifetime_s);
}

/* Until the reaper has looked at all of them: one that is created idle has been stopped. */
static void await_round(struct world *world)
{
	struct sandbox *idle = create_with(world, 0, SANDBOX_NO_LIMIT);
	struct listener events;

	world_listener_open(&events, world->engine, sandbox_id(idle));
	listener_wait(&events, "sandbox.stopped");
	listener_close(&events);
	sandbox_unref(idle);
}

static void a_step_of_the_wall_clock_ends_nothing(void **state)
{
	static const int64_t steps_ms[] = {30 * 86400000ll, -90 * 86400000ll};
	struct world *world = *state;
	struct sandbox *sandbox = create_with(world, 600, 3600);
	struct sandbox_record before, after;

	sandbox_read(sandbox, &before);
	for (size_t i = 0; i < array_len(steps_ms); i++) {
		atomic_fetch_add(&world_wall_shift_ms, steps_ms[i]);
		await_round(world);
		await_round(world);
		assert_int_equal(world_status(sandbox), SANDBOX_RUNNING);
	}
	/* Nor after a restart, and a use is noted as ever. */
	sandbox_unref(sandbox);
	world_close(world);
	world_open(world);
	await_round(world);
	assert_true(world_row(world, before.id, &after));
	assert_int_equal(after.status, SANDBOX_RUNNING);
	assert_int_equal(after.expires_at_ms, before.expires_at_ms);
	sandbox_record_fini(&after);
	sandbox_record_fini(&before);
}

static void the_reaper_stops_the_idle_and_deletes_the_old(void **state)
{
	struct world *world = *state;
	struct sandbox *idle = create_with(world, 0, SANDBOX_NO_LIMIT);
	struct sandbox *old = create_with(world, SANDBOX_NO_LIMIT, 0);
	struct sandbox *other = create_with(world, 3600, 3600);
	struct listener idle_events, old_events;
	struct sandbox_record record;

	world_listener_open(&idle_events, world->engine, sandbox_id(idle));
	world_listener_open(&old_events, world->engine, sandbox_id(old));
	listener_wait(&idle_events, "sandbox.stopped");
	listener_wait(&old_events, "sandbox.deleted");
	assert_true(world_row(world, sandbox_id(idle), &record));
	assert_int_equal(record.end.reason, END_IDLE);
	sandbox_record_fini(&record);
	world_assert_agree(world, sandbox_id(idle));
	world_assert_agree(world, sandbox_id(old));
	assert_true(world_has_workspace(world, sandbox_id(old)));
	assert_int_equal(world_status(other), SANDBOX_RUNNING);
	listener_close(&idle_events);
	listener_close(&old_events);
	sandbox_unref(idle);
	sandbox_unref(old);
	sandbox_unref(other);
}

/* A command that runs counts as use, also when nobody calls. */
static pthread_mutex_t touch_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t touch_came = PTHREAD_COND_INITIALIZER;
static unsigned touches;

static void note_touch(enum store_op op, const char *id)
{
	(void)id;
	if (op != STORE_TOUCH)
		return;
	pthread_mutex_lock(&touch_lock);
	touches++;
	pthread_cond_broadcast(&touch_came);
	pthread_mutex_unlock(&touch_lock);
}

static void watch_ended(void *arg, const struct process_end *end)
{
	(void)end;
	sem_post(arg);
}

static void watch_released(void *arg)
{
	(void)arg;
}

static const struct process_events watch = {.ended = watch_ended, .release = watch_released};

static struct process *run_in(struct sandbox *sandbox, bool is_kept, sem_t *ended)
{
	static const char *const argv[] = {"sleep", "9", NULL}, *const env[] = {NULL};
	struct process_spec spec = {.argv = argv, .env = env, .cwd = "/", .is_kept = is_kept};
	struct process *process;
	struct err err = {0};

	if (process_new(sandbox, &process, &err) < 0)
		fail_msg("%s", err.message);
	if (ended)
		assert_true(process_watch(process, &watch, ended));
	if (process_run(process, &spec, &err) < 0)
		fail_msg("%s", err.message);
	return process;
}

static void the_reaper_leaves_a_sandbox_alone_in_which_a_client_waits(void **state)
{
	struct world *world = *state;
	struct sandbox *sandbox = create_with(world, 0, SANDBOX_NO_LIMIT);
	struct process *process;
	struct timespec until;
	sem_t ended;
	struct err err;
	int waited = 0, count = -1;

	sem_init(&ended, 0, 0);
	process = run_in(sandbox, false, &ended);
	atomic_store(&store_script.after, note_touch);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += DEADLINE_MS / 1000;
	pthread_mutex_lock(&touch_lock);
	while (touches == 0 && waited == 0)
		waited = pthread_cond_timedwait(&touch_came, &touch_lock, &until);
	assert_true(touches > 0);
	pthread_mutex_unlock(&touch_lock);
	assert_int_equal(world_status(sandbox), SANDBOX_RUNNING);
	assert_int_equal(sem_getvalue(&ended, &count), 0);
	assert_int_equal(count, 0);
	assert_int_equal(sandbox_delete(sandbox, END_OPERATOR, &err), 0);
	assert_int_equal(sem_timedwait(&ended, &until), 0);
	sem_destroy(&ended);
	process_unref(process);
	sandbox_unref(sandbox);
}

/* What the row of the only process of a sandbox says. */
static struct process_record row_of(struct world *world, struct sandbox *sandbox)
{
	struct process_record record;
	struct err err = {0};

	if (store_process_get(world->store, sandbox_id(sandbox), 1, &record, &err) < 0)
		fail_msg("%s", err.message);
	process_record_fini(&record);
	return record; /* the plain members of it */
}

static void what_the_reaper_ends_says_why(void **state)
{
	struct world *world = *state;
	struct sandbox *idle = create_with(world, 0, SANDBOX_NO_LIMIT);
	struct sandbox *old = create_with(world, SANDBOX_NO_LIMIT, 0);
	struct listener idle_events, old_events;

	world_listener_open(&idle_events, world->engine, sandbox_id(idle));
	world_listener_open(&old_events, world->engine, sandbox_id(old));
	/* Nobody waits for them. */
	process_unref(run_in(idle, true, NULL));
	process_unref(run_in(old, true, NULL));
	listener_wait(&idle_events, "sandbox.stopped");
	listener_wait(&old_events, "sandbox.deleted");
	assert_int_equal(row_of(world, idle).end.reason, END_IDLE);
	assert_int_equal(row_of(world, old).end.reason, END_LIFETIME);
	assert_true(row_of(world, idle).ended_at_ms > 0 && row_of(world, old).ended_at_ms > 0);
	listener_close(&idle_events);
	listener_close(&old_events);
	sandbox_unref(idle);
	sandbox_unref(old);
}

/* --- when memory is short --- */

static int setup_short_of_memory(void **state)
{
	struct world *world;

	if (world_setup_closed(state) < 0)
		return -1;
	world = *state;
	world->config.memory_reserve = UINT64_MAX; /* no machine has that */
	world_open(world);
	return 0;
}

/* Makes it unused for so long. */
static void leave_alone(struct sandbox *sandbox, int64_t ms)
{
	atomic_store(&sandbox->last_active_ms, store_clock_ms(sandbox->engine->config.store) - ms);
}

static void a_machine_short_of_memory_loses_what_was_left_alone_longest(void **state)
{
	struct world *world = *state;
	struct sandbox *watched = create_with(world, SANDBOX_NO_LIMIT, SANDBOX_NO_LIMIT);
	struct sandbox *longest = create_with(world, SANDBOX_NO_LIMIT, SANDBOX_NO_LIMIT);
	struct sandbox *second = create_with(world, SANDBOX_NO_LIMIT, SANDBOX_NO_LIMIT);
	struct sandbox *used = create_with(world, SANDBOX_NO_LIMIT, SANDBOX_NO_LIMIT);
	struct listener longest_events, second_events;
	struct sandbox_record record;
	struct process *process;
	sem_t ended;

	sem_init(&ended, 0, 0);
	world_listener_open(&longest_events, world->engine, sandbox_id(longest));
	world_listener_open(&second_events, world->engine, sandbox_id(second));
	process = run_in(watched, false, &ended);
	process_unref(run_in(longest, true, NULL));
	leave_alone(watched, 9000000); /* but somebody waits for it */
	leave_alone(second, 3600000);
	leave_alone(longest, 7200000);
	listener_wait(&longest_events, "sandbox.stopped");
	listener_wait(&second_events, "sandbox.stopped");
	assert_true(longest_events.sequences[longest_events.count - 1] <
		    second_events.sequences[second_events.count - 1]);
	assert_true(world_row(world, sandbox_id(longest), &record));
	assert_int_equal(record.end.reason, END_MEMORY_PRESSURE);
	sandbox_record_fini(&record);
	assert_int_equal(row_of(world, longest).end.reason, END_MEMORY_PRESSURE);
	assert_int_equal(world_status(used), SANDBOX_RUNNING);
	assert_int_equal(world_status(watched), SANDBOX_RUNNING);
	listener_close(&longest_events);
	listener_close(&second_events);
	process_unref(process);
	sandbox_unref(watched);
	sandbox_unref(longest);
	sandbox_unref(second);
	sandbox_unref(used);
	world_close(world); /* lets go of the process, and says so */
	sem_destroy(&ended);
}

/* 2^61 bytes are missing; no machine has them, but one sandbox does. */
static int setup_with_a_hog(void **state)
{
	struct world *world;

	if (world_setup_closed(state) < 0)
		return -1;
	world = *state;
	world->config.memory_reserve = 1ull << 61;
	world_open(world);
	return 0;
}

static void a_hog_in_use_is_stopped_before_an_idle_neighbour(void **state)
{
	struct world *world = *state;
	struct sandbox *neighbour = create_with(world, SANDBOX_NO_LIMIT, SANDBOX_NO_LIMIT);
	struct sandbox *hog =
		create_for(world, &world_stranger, SANDBOX_NO_LIMIT, SANDBOX_NO_LIMIT);
	struct listener neighbour_events, hog_events;
	struct sandbox_record record;

	world_listener_open(&neighbour_events, world->engine, sandbox_id(neighbour));
	world_listener_open(&hog_events, world->engine, sandbox_id(hog));
	sandbox_enter(hog);
	fake_set_memory(&world->driver, sandbox_id(hog), 1ull << 62);
	leave_alone(neighbour, 7200000);
	listener_wait(&hog_events, "sandbox.stopped");
	sandbox_leave(hog);
	/* The host, which is made up, is as short as before. */
	listener_wait(&neighbour_events, "sandbox.stopped");
	assert_true(hog_events.sequences[hog_events.count - 1] <
		    neighbour_events.sequences[neighbour_events.count - 1]);
	assert_true(world_row(world, sandbox_id(hog), &record));
	assert_int_equal(record.end.reason, END_MEMORY_PRESSURE);
	assert_non_null(strstr(record.end.detail, "its reserve is 2199023255552"));
	assert_non_null(strstr(record.end.detail, "this sandbox held 4398046511104"));
	assert_non_null(strstr(record.end.detail, "of a share of "));
	sandbox_record_fini(&record);
	listener_close(&neighbour_events);
	listener_close(&hog_events);
	sandbox_unref(neighbour);
	sandbox_unref(hog);
}

/* --- when one is slow to stop --- */

/* The driver takes until this is over to stop the sandbox of that id. */
struct slow_stop {
	const char *id;
	sem_t is_begun, may_end;
};

static void slow_hook(enum fake_op op, const char *id, void *arg)
{
	struct slow_stop *slow = arg;

	if (op != FAKE_STOP || strcmp(id, slow->id) != 0)
		return;
	sem_post(&slow->is_begun);
	world_await(&slow->may_end);
}

/* Until the disk of one may hardly grow any more. */
static void await_held_disk(struct world *world, struct sandbox *sandbox)
{
	struct timespec deadline = world_deadline(), now;
	struct virtual_proc machine;

	do {
		clock_gettime(CLOCK_REALTIME, &now);
		assert_true(now.tv_sec < deadline.tv_sec);
		sched_yield();
		assert_true(fake_look(&world->driver, sandbox_id(sandbox), &machine));
	} while (machine.growth_bytes == 0);
}

static void one_that_is_slow_to_stop_keeps_neither_disk_nor_memory_from_being_watched(void **state)
{
	struct world *world = *state;
	struct sandbox *slow = create_with(world, 0, SANDBOX_NO_LIMIT);
	struct sandbox *writer = create_with(world, SANDBOX_NO_LIMIT, SANDBOX_NO_LIMIT);
	struct sandbox *hog =
		create_for(world, &world_stranger, SANDBOX_NO_LIMIT, SANDBOX_NO_LIMIT);
	struct slow_stop stop = {.id = sandbox_id(slow)};
	struct listener hog_events;

	sem_init(&stop.is_begun, 0, 0);
	sem_init(&stop.may_end, 0, 0);
	world_listener_open(&hog_events, world->engine, sandbox_id(hog));
	fake_set_hook(&world->driver, slow_hook, &stop);
	world_await(&stop.is_begun);
	/* From here on the reaper waits. */
	world->engine->config.disk_reserve = UINT64_MAX;
	await_held_disk(world, writer);
	world->engine->config.memory_reserve = 1ull << 61;
	sandbox_enter(hog);
	fake_set_memory(&world->driver, sandbox_id(hog), 1ull << 62);
	listener_wait(&hog_events, "sandbox.stopped");
	sandbox_leave(hog);
	assert_int_equal(world_status(slow), SANDBOX_RUNNING);
	sem_post(&stop.may_end);
	listener_close(&hog_events);
	sandbox_unref(slow);
	sandbox_unref(writer);
	sandbox_unref(hog);
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)

static void one_that_somebody_is_connected_to_is_not_idle(void **state)
{
	struct world *world = *state;
	struct sandbox *visited = create_with(world, 0, SANDBOX_NO_LIMIT);
	struct sandbox *idle;
	struct listener visited_events, idle_events;

	sandbox_enter(visited);
	sandbox_enter(visited);
	idle = create_with(world, 0, SANDBOX_NO_LIMIT);
	world_listener_open(&visited_events, world->engine, sandbox_id(visited));
	world_listener_open(&idle_events, world->engine, sandbox_id(idle));
	listener_wait(&idle_events, "sandbox.stopped");
	assert_int_equal(world_status(visited), SANDBOX_RUNNING);
	sandbox_leave(visited);
	assert_true(sandbox_is_occupied(visited));
	sandbox_leave(visited);
	listener_wait(&visited_events, "sandbox.stopped");
	listener_close(&visited_events);
	listener_close(&idle_events);
	sandbox_unref(visited);
	sandbox_unref(idle);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		IN_WORLD(the_reaper_stops_the_idle_and_deletes_the_old),
		IN_WORLD(the_reaper_leaves_a_sandbox_alone_in_which_a_client_waits),
		IN_WORLD(one_that_somebody_is_connected_to_is_not_idle),
		IN_WORLD(what_the_reaper_ends_says_why),
		IN_WORLD(a_step_of_the_wall_clock_ends_nothing),
		IN_WORLD(one_that_is_slow_to_stop_keeps_neither_disk_nor_memory_from_being_watched),
		cmocka_unit_test_setup_teardown(a_hog_in_use_is_stopped_before_an_idle_neighbour,
			setup_with_a_hog, world_teardown),
		cmocka_unit_test_setup_teardown(
			a_machine_short_of_memory_loses_what_was_left_alone_longest,
			setup_short_of_memory, world_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
