/* SPDX-License-Identifier: Apache-2.0 */
/* How sandboxes run, pause, end and wake (src/core/sandbox_run.c, sandbox_link.c), over a driver that is played. */
#include "core_fixture.h"

#include "core/engine/agent_link.h"
#include "core/engine/disk_reserve.h"
#include "core/engine/sandbox_network.h"
#include "core/engine/sandbox_state.h"
#include "core/sandbox/sandbox_stats.h"
#include "deadline.h"
#include "store/access/store_quota.h"

#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

/* --- stop and start --- */

/* The profile comes from the template, and what the driver says of the walls is passed on. */
static void the_walls_are_those_of_the_running_sandbox(void **state)
{
	struct world *world = *state;
	struct sandbox *sandbox;
	struct sandbox_record draft;
	struct walls walls;
	struct err err;

	world_draft(&draft, "", "");
	snprintf(draft.template_name, sizeof(draft.template_name), "browser");
	assert_int_equal(sandbox_create(world->engine, &draft, &sandbox, &err), 0);
	assert_true(sandbox_read_walls(sandbox, &walls));
	assert_string_equal(walls.how[WALL_SECCOMP], "browser");
	assert_string_equal(walls.how[WALL_MEMORY], "");
	assert_int_equal(sandbox_stop(sandbox, END_OPERATOR, &err), 0);
	assert_false(sandbox_read_walls(sandbox, &walls));
	sandbox_unref(sandbox);
	sandbox_record_fini(&draft);
}

/* A driver that lists sandboxes to others labels them with it. */
static void the_driver_is_told_whose_a_sandbox_is(void **state)
{
	struct world *world = *state;
	struct sandbox *sandbox;
	struct sandbox_record draft;
	char expected[sizeof(world->driver.started_for)];
	struct err err;

	world_draft(&draft, "", "shop");
	snprintf(draft.session, sizeof(draft.session), "monday");
	assert_int_equal(sandbox_create(world->engine, &draft, &sandbox, &err), 0);
	snprintf(expected, sizeof(expected), "%s/%s/shop/monday", world_owner.organization,
		world_owner.user);
	assert_string_equal(world->driver.started_for, expected);
	sandbox_unref(sandbox);
	sandbox_record_fini(&draft);
}

static void a_template_that_is_gone_starts_nothing(void **state)
{
	struct world *world = *state;
	struct sandbox *sandbox = NULL;
	struct sandbox_record draft;
	struct err err;

	world_draft(&draft, "", "");
	snprintf(draft.template_name, sizeof(draft.template_name), "of-yesterday");
	assert_true(sandbox_create(world->engine, &draft, &sandbox, &err) < 0);
	assert_string_equal(err.code, "template_not_found");
	assert_int_equal(fake_calls(&world->driver, FAKE_START), 0);
	sandbox_record_fini(&draft);
}

/* --- a disk that is not in order, and a host that is full --- */

/* From now on a start fails until the disk was checked. */
static void spoil_disk(struct world *world)
{
	fake_set_agent(&world->driver, FAKE_AGENT_DIES);
	pthread_mutex_lock(&world->driver.lock);
	err_explain(&world->driver.cause, ERR_CONFLICT, DRIVER_UNCHECKED, NULL, "not clean");
	pthread_mutex_unlock(&world->driver.lock);
}

static void a_disk_that_is_not_in_order_is_checked_and_then_started(void **state)
{
	struct world *world = *state;
	struct sandbox *sandbox = world_create(world, "");
	struct err err;

	assert_int_equal(sandbox_stop(sandbox, END_OPERATOR, &err), 0);
	spoil_disk(world);
	assert_int_equal(sandbox_start(sandbox, &err), 0);
	assert_int_equal(fake_calls(&world->driver, FAKE_CHECK_DISK), 1);
	assert_int_equal(world_status(sandbox), SANDBOX_RUNNING);
	world_assert_agree(world, sandbox_id(sandbox));
	sandbox_unref(sandbox);
}

static void one_that_cannot_be_mended_is_an_error_that_says_so(void **state)
{
	struct world *world = *state;
	struct sandbox *sandbox = world_create(world, "");
	struct sandbox_record record;
	struct virtual_proc machine;
	struct err err;

	assert_int_equal(sandbox_stop(sandbox, END_OPERATOR, &err), 0);
	spoil_disk(world);
	fake_fail(&world->driver, FAKE_CHECK_DISK, 1);
	assert_true(sandbox_start(sandbox, &err) < 0);
	assert_true(world_row(world, sandbox_id(sandbox), &record));
	assert_int_equal(record.status, SANDBOX_ERROR);
	assert_true(record.error_message[0]);
	sandbox_record_fini(&record);
	assert_true(fake_look(&world->driver, sandbox_id(sandbox), &machine));
	assert_true(machine.has_workspace && machine.has_layer);
	sandbox_unref(sandbox);
}

static void on_a_full_host_nothing_is_started_and_nothing_changes(void **state)
{
	struct world *world = *state;
	struct sandbox *sandbox = world_create(world, "");
	unsigned starts = fake_calls(&world->driver, FAKE_START);
	struct agent_link *link;
	struct err err;

	assert_int_equal(sandbox_stop(sandbox, END_OPERATOR, &err), 0);
	world->engine->config.disk_reserve = UINT64_MAX;
	assert_int_equal(sandbox_start(sandbox, &err), -ENOSPC);
	assert_int_equal(sandbox_use(sandbox, &link, &err), -ENOSPC);
	assert_int_equal(err.kind, ERR_NO_SPACE);
	assert_true(err.remedy[0]);
	assert_int_equal(fake_calls(&world->driver, FAKE_START), starts);
	assert_int_equal(world_status(sandbox), SANDBOX_STOPPED);
	sandbox_unref(sandbox);
}

static uint64_t growth_of(struct world *world, struct sandbox *sandbox)
{
	struct virtual_proc machine;

	assert_true(fake_look(&world->driver, sandbox_id(sandbox), &machine));
	return machine.growth_bytes;
}

static void on_a_full_host_the_disks_of_those_that_run_hardly_grow(void **state)
{
	struct world *world = *state;
	struct sandbox *sandbox = world_create(world, "");

	world->engine->config.disk_reserve = UINT64_MAX;
	disk_reserve_enforce(world->engine);
	assert_int_equal(growth_of(world, sandbox), disk_reserve_growth(world->engine));
	assert_true(growth_of(world, sandbox) > 0);
	world->engine->config.disk_reserve = 0;
	disk_reserve_enforce(world->engine);
	assert_int_equal(growth_of(world, sandbox), 0);
	sandbox_unref(sandbox);
}

static void a_disk_that_failed_is_told_once_and_forgotten_when_it_is_no_longer_in_use(void **state)
{
	struct world *world = *state;
	struct sandbox *sandbox = world_create(world, "");
	struct sandbox_record record;
	struct listener listener;
	struct err err;

	world_listener_open(&listener, world->engine, sandbox_id(sandbox));
	pthread_mutex_lock(&world->driver.lock);
	world->driver.failed = sandbox_id(sandbox);
	pthread_mutex_unlock(&world->driver.lock);
	listener_wait(&listener, "sandbox.disk_failed");
	assert_true(world_row(world, sandbox_id(sandbox), &record));
	assert_int_equal(record.status, SANDBOX_RUNNING);
	assert_true(record.error_message[0]);
	sandbox_record_fini(&record);
	pthread_mutex_lock(&world->driver.lock);
	world->driver.failed = NULL;
	pthread_mutex_unlock(&world->driver.lock);
	assert_int_equal(sandbox_pause(sandbox, &err), 0);
	assert_true(world_row(world, sandbox_id(sandbox), &record));
	assert_true(record.error_message[0]);
	sandbox_record_fini(&record);
	assert_int_equal(sandbox_stop(sandbox, END_OPERATOR, &err), 0);
	assert_true(world_row(world, sandbox_id(sandbox), &record));
	assert_string_equal(record.error_message, "");
	sandbox_record_fini(&record);
	listener_close(&listener);
	sandbox_unref(sandbox);
}

static void a_stop_asks_the_agent_first_and_says_why(void **state)
{
	struct world *world = *state;
	struct sandbox *sandbox = world_create(world, "");
	struct sandbox_record record;
	struct err err;

	assert_int_equal(sandbox_stop(sandbox, END_OPERATOR, &err), 0);
	assert_int_equal(world->driver.shutdowns, 1);
	assert_true(world_row(world, sandbox_id(sandbox), &record));
	assert_int_equal(record.status, SANDBOX_STOPPED);
	assert_int_equal(record.end.reason, END_OPERATOR);
	sandbox_record_fini(&record);
	world_assert_agree(world, sandbox_id(sandbox));
	sandbox_unref(sandbox);
}

static void a_second_stop_and_a_second_start_do_nothing(void **state)
{
	struct world *world = *state;
	struct sandbox *sandbox = world_create(world, "");
	struct err err;

	assert_int_equal(sandbox_start(sandbox, &err), 0);
	assert_int_equal(fake_calls(&world->driver, FAKE_START), 1);
	assert_int_equal(sandbox_stop(sandbox, END_OPERATOR, &err), 0);
	assert_int_equal(sandbox_stop(sandbox, END_OPERATOR, &err), 0);
	assert_int_equal(fake_calls(&world->driver, FAKE_STOP), 1);
	assert_int_equal(sandbox_start(sandbox, &err), 0);
	assert_int_equal(sandbox_start(sandbox, &err), 0);
	assert_int_equal(fake_calls(&world->driver, FAKE_START), 2);
	world_assert_agree(world, sandbox_id(sandbox));
	sandbox_unref(sandbox);
}

static void a_start_keeps_how_it_had_ended(void **state)
{
	struct world *world = *state;
	struct sandbox *sandbox = world_create(world, "");
	struct sandbox_record record;
	struct err err;

	assert_int_equal(sandbox_stop(sandbox, END_IDLE, &err), 0);
	assert_int_equal(sandbox_start(sandbox, &err), 0);
	sandbox_read(sandbox, &record);
	assert_int_equal(record.status, SANDBOX_RUNNING);
	assert_int_equal(record.end.reason, END_IDLE);
	sandbox_record_fini(&record);
	sandbox_unref(sandbox);
}

static void a_start_that_fails_is_an_error_that_can_be_mended(void **state)
{
	struct world *world = *state;
	struct sandbox *sandbox = world_create(world, "");
	struct sandbox_record record;
	struct err err;

	assert_int_equal(sandbox_stop(sandbox, END_OPERATOR, &err), 0);
	fake_fail(&world->driver, FAKE_START, 1);
	assert_int_equal(sandbox_start(sandbox, &err), -EAGAIN);
	assert_non_null(strstr(err.message, sandbox_id(sandbox)));
	assert_true(world_row(world, sandbox_id(sandbox), &record));
	assert_int_equal(record.status, SANDBOX_ERROR);
	assert_non_null(strstr(record.error_message, "told to fail"));
	sandbox_record_fini(&record);
	assert_int_equal(sandbox_start(sandbox, &err), 0);
	sandbox_read(sandbox, &record);
	assert_int_equal(record.status, SANDBOX_RUNNING);
	assert_string_equal(record.error_message, "");
	sandbox_record_fini(&record);
	world_assert_agree(world, sandbox_id(sandbox));
	sandbox_unref(sandbox);
}

static void a_stop_that_the_driver_fails_leaves_it_for_the_next_try(void **state)
{
	struct world *world = *state;
	struct sandbox *sandbox = world_create(world, "");
	struct err err;

	fake_fail(&world->driver, FAKE_STOP, 1);
	assert_int_equal(sandbox_stop(sandbox, END_OPERATOR, &err), -EAGAIN);
	assert_int_equal(sandbox_stop(sandbox, END_OPERATOR, &err), 0);
	assert_int_equal(world_status(sandbox), SANDBOX_STOPPED);
	world_assert_agree(world, sandbox_id(sandbox));
	sandbox_unref(sandbox);
}

/* Its link is still there after a purge that failed, or gone after a stop that asked it to end first. */
static void after_an_end_that_failed_the_loss_of_its_agent_is_noticed(void **state)
{
	struct world *world = *state;

	for (int i = 0; i < 2; i++) {
		struct sandbox *sandbox = world_create(world, "");
		const char *id = sandbox_id(sandbox);
		struct listener listener;
		struct err err;

		world_listener_open(&listener, world->engine, id);
		fake_fail(&world->driver, FAKE_STOP, 1);
		if (i == 0) {
			assert_int_equal(
				sandbox_purge(world->engine, &world_owner, id, &err), -EAGAIN);
			fake_crash(&world->driver, id, SIGKILL);
		} else {
			assert_int_equal(sandbox_stop(sandbox, END_OPERATOR, &err), -EAGAIN);
		}
		listener_wait(&listener, "sandbox.stopped");
		listener_close(&listener);
		assert_int_equal(world_status(sandbox), SANDBOX_STOPPED);
		world_assert_agree(world, id);
		sandbox_unref(sandbox);
	}
}

static void a_stop_that_cannot_be_written_is_put_right_by_the_next_verb(void **state)
{
	struct world *world = *state;
	struct sandbox *sandbox = world_create(world, "");
	struct err err;

	store_script.fail[STORE_UPDATE] = 1;
	assert_int_equal(sandbox_stop(sandbox, END_OPERATOR, &err), -ENOSPC);
	assert_int_equal(sandbox_stop(sandbox, END_OPERATOR, &err), 0);
	assert_int_equal(world_status(sandbox), SANDBOX_STOPPED);
	world_assert_agree(world, sandbox_id(sandbox));
	sandbox_unref(sandbox);
}

static void a_start_that_cannot_be_written_does_not_run(void **state)
{
	struct world *world = *state;
	struct sandbox *sandbox = world_create(world, "");
	struct err err;

	assert_int_equal(sandbox_stop(sandbox, END_OPERATOR, &err), 0);
	store_script.fail[STORE_UPDATE] = 1;
	assert_int_equal(sandbox_start(sandbox, &err), -ENOSPC);
	world_assert_agree(world, sandbox_id(sandbox));
	assert_int_equal(sandbox_start(sandbox, &err), 0);
	world_assert_agree(world, sandbox_id(sandbox));
	sandbox_unref(sandbox);
}

static void a_start_that_cannot_be_written_takes_no_quota(void **state)
{
	struct world *world = *state;
	struct sandbox *sandbox = world_create(world, ""), *other = world_create(world, "");
	struct quota quota;
	struct err err;

	assert_int_equal(sandbox_stop(sandbox, END_OPERATOR, &err), 0);
	assert_int_equal(sandbox_stop(other, END_OPERATOR, &err), 0);
	assert_int_equal(quota_parse("running=1", &quota), 0);
	assert_int_equal(store_quota_put(world->store, &world_owner, &quota, &err), 0);
	store_script.fail[STORE_UPDATE] = 1;
	assert_int_equal(sandbox_start(sandbox, &err), -ENOSPC);
	assert_int_equal(world_status(sandbox), SANDBOX_STOPPED);
	assert_int_equal(sandbox_start(other, &err), 0);
	sandbox_unref(sandbox);
	sandbox_unref(other);
}

/* --- pause --- */

static void a_paused_sandbox_is_frozen_and_cannot_be_used(void **state)
{
	struct world *world = *state;
	struct sandbox *sandbox = world_create(world, "");
	struct agent_link *link = NULL;
	struct err err;

	assert_int_equal(sandbox_pause(sandbox, &err), 0);
	assert_int_equal(sandbox_pause(sandbox, &err), 0);
	assert_int_equal(fake_calls(&world->driver, FAKE_FREEZE), 1);
	world_assert_agree(world, sandbox_id(sandbox));
	assert_int_equal(sandbox_use(sandbox, &link, &err), -EEXIST);
	assert_string_equal(err.code, "wrong_state");
	assert_int_equal(sandbox_start(sandbox, &err), -EEXIST);
	assert_int_equal(sandbox_resume(sandbox, &err), 0);
	world_assert_agree(world, sandbox_id(sandbox));
	assert_int_equal(sandbox_use(sandbox, &link, &err), 0);
	agent_link_unref(link);
	sandbox_unref(sandbox);
}

static void a_paused_sandbox_is_stopped_without_being_asked(void **state)
{
	struct world *world = *state;
	struct sandbox *sandbox = world_create(world, "");
	struct err err;

	assert_int_equal(sandbox_pause(sandbox, &err), 0);
	assert_int_equal(sandbox_stop(sandbox, END_OPERATOR, &err), 0);
	assert_int_equal(world->driver.shutdowns, 0);
	world_assert_agree(world, sandbox_id(sandbox));
	sandbox_unref(sandbox);
}

static void a_pause_that_cannot_be_written_is_undone(void **state)
{
	struct world *world = *state;
	struct sandbox *sandbox = world_create(world, "");
	struct err err;

	store_script.fail[STORE_UPDATE] = 1;
	assert_int_equal(sandbox_pause(sandbox, &err), -ENOSPC);
	assert_int_equal(world_status(sandbox), SANDBOX_RUNNING);
	world_assert_agree(world, sandbox_id(sandbox));
	sandbox_unref(sandbox);
}

static void a_resume_that_cannot_be_written_is_undone(void **state)
{
	struct world *world = *state;
	struct sandbox *sandbox = world_create(world, "");
	struct err err;

	assert_int_equal(sandbox_pause(sandbox, &err), 0);
	store_script.fail[STORE_UPDATE] = 1;
	assert_int_equal(sandbox_resume(sandbox, &err), -ENOSPC);
	assert_int_equal(world_status(sandbox), SANDBOX_PAUSED);
	world_assert_agree(world, sandbox_id(sandbox));
	sandbox_unref(sandbox);
}

/* --- an agent that vanishes --- */

static void assert_crash_is_noted(
	struct world *world, int wait_status, int signal, const char *words)
{
	struct sandbox *sandbox = world_create(world, "");
	struct sandbox_record record;
	struct listener listener;

	world_listener_open(&listener, world->engine, sandbox_id(sandbox));
	fake_crash(&world->driver, sandbox_id(sandbox), wait_status);
	listener_wait(&listener, "sandbox.stopped");
	listener_close(&listener);
	assert_true(world_row(world, sandbox_id(sandbox), &record));
	assert_int_equal(record.status, SANDBOX_STOPPED);
	assert_int_equal(record.end.reason, END_AGENT_LOST);
	assert_int_equal(record.end.signal, signal);
	assert_non_null(strstr(record.end.detail, words));
	sandbox_record_fini(&record);
	world_assert_agree(world, sandbox_id(sandbox));
	sandbox_unref(sandbox);
}

static void a_sandbox_that_was_killed_is_stopped_with_the_signal_on_record(void **state)
{
	assert_crash_is_noted(*state, SIGKILL, SIGKILL, "killed by signal 9");
}

static void a_sandbox_that_exited_is_stopped_with_the_status_on_record(void **state)
{
	assert_crash_is_noted(*state, 3 << 8, 0, "exited with status 3");
}

static void note_stop(enum fake_op op, const char *id, void *arg)
{
	(void)id;
	if (op == FAKE_STOP)
		sem_post(arg);
}

static void a_lost_sandbox_that_cannot_be_ended_is_settled_by_the_next_verb(void **state)
{
	struct world *world = *state;
	struct sandbox *sandbox = world_create(world, "");
	struct agent_link *link = NULL;
	struct err err = {0};
	sem_t stopped;

	sem_init(&stopped, 0, 0);
	fake_set_hook(&world->driver, note_stop, &stopped);
	fake_fail(&world->driver, FAKE_STOP, 1);
	fake_crash(&world->driver, sandbox_id(sandbox), SIGKILL);
	world_await(&stopped); /* the reaper tried, in vain */
	assert_int_equal(sandbox_use(sandbox, &link, &err), 0);
	assert_int_equal(fake_calls(&world->driver, FAKE_STOP), 2);
	assert_int_equal(fake_calls(&world->driver, FAKE_START), 2);
	world_assert_agree(world, sandbox_id(sandbox));
	fake_set_hook(&world->driver, NULL, NULL);
	agent_link_unref(link);
	sem_destroy(&stopped);
	sandbox_unref(sandbox);
}

/* Then nobody may hold the handle any longer, and nobody would ever close it. */
static void the_way_out_of_a_lost_sandbox_is_closed_though_it_cannot_be_ended(void **state)
{
	struct world *world = *state;
	struct sandbox_record draft;
	struct sandbox *sandbox;
	struct err err = {0};
	char byte;

	world_draft(&draft, "", "");
	json_object_set_new(draft.network, "mode", json_string("open"));
	assert_int_equal(sandbox_create(world->engine, &draft, &sandbox, &err), 0);
	sandbox_record_fini(&draft);
	assert_int_equal(sandbox_network_need(sandbox, &err), 0);
	fake_fail(&world->driver, FAKE_STOP, 1);
	fake_crash(&world->driver, sandbox_id(sandbox), SIGKILL);
	assert_int_equal(
		poll(&(struct pollfd){world->driver.exit_peer, POLLIN, 0}, 1, DEADLINE_MS), 1);
	assert_int_equal(recv(world->driver.exit_peer, &byte, 1, 0), 0);
	close(world->driver.exit_peer);
	sandbox_unref(sandbox);
}

static void a_use_wakes_a_stopped_sandbox(void **state)
{
	struct world *world = *state;
	struct sandbox *sandbox = world_create(world, "");
	struct sandbox_record record;
	struct agent_link *link = NULL;
	struct err err;

	assert_int_equal(sandbox_stop(sandbox, END_IDLE, &err), 0);
	assert_int_equal(sandbox_use(sandbox, &link, &err), 0);
	assert_non_null(link);
	agent_link_unref(link);
	sandbox_read(sandbox, &record);
	assert_int_equal(record.status, SANDBOX_RUNNING);
	assert_true(record.last_active_at_ms >= record.created_at_ms);
	sandbox_record_fini(&record);
	world_assert_agree(world, sandbox_id(sandbox));
	sandbox_unref(sandbox);
}

static void a_use_of_one_that_does_not_start_gives_the_reason(void **state)
{
	struct world *world = *state;
	struct sandbox *sandbox = world_create(world, "");
	struct agent_link *link = NULL;
	struct err err;

	assert_int_equal(sandbox_stop(sandbox, END_IDLE, &err), 0);
	fake_set_agent(&world->driver, FAKE_AGENT_DIES);
	assert_true(sandbox_use(sandbox, &link, &err) < 0);
	assert_null(link);
	assert_int_equal(world_status(sandbox), SANDBOX_ERROR);
	world_assert_agree(world, sandbox_id(sandbox));
	sandbox_unref(sandbox);
}

/* A driver that pulls an image takes a minute: followers see how far it is, and then that it runs. */
static void a_start_that_takes_long_tells_its_progress(void **state)
{
	struct world *world = *state;
	struct sandbox *sandbox = world_create(world, "");
	struct listener listener;
	struct err err;

	assert_int_equal(sandbox_stop(sandbox, END_OPERATOR, &err), 0);
	world_listener_open(&listener, world->engine, sandbox_id(sandbox));
	world->driver.step = "pulling \"layer\" 3 of 7";
	assert_int_equal(sandbox_start(sandbox, &err), 0);
	listener_wait(&listener, "sandbox.progress");
	listener_wait(&listener, "sandbox.running");
	listener_close(&listener);
	sandbox_unref(sandbox);
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)

/* --- a driver that serves nobody --- */

static void one_that_ends_with_the_driver_while_it_starts_may_be_tried_again(void **state)
{
	struct world *world = *state;
	struct sandbox_record draft;
	struct sandbox *sandbox = NULL;
	struct err err;

	world_draft(&draft, "", "");
	fake_set_agent(&world->driver, FAKE_AGENT_DIES);
	fake_fail(&world->driver, FAKE_STOP, 1);
	assert_true(sandbox_create(world->engine, &draft, &sandbox, &err) < 0);
	assert_int_equal(err.kind, ERR_UNAVAILABLE);
	sandbox_record_fini(&draft);
}

static void a_driver_that_serves_nobody_makes_no_sandbox_faulty(void **state)
{
	struct world *world = *state;
	struct sandbox *sandbox = world_create(world, "");
	struct sandbox_record record;
	struct err err;

	assert_int_equal(sandbox_stop(sandbox, END_IDLE, &err), 0);
	fake_set_trouble(&world->driver, true);
	assert_int_equal(sandbox_start(sandbox, &err), -EAGAIN);
	assert_int_equal(world_status(sandbox), SANDBOX_STOPPED);
	assert_true(world_row(world, sandbox_id(sandbox), &record));
	assert_int_equal(record.end.reason, END_IDLE);
	sandbox_record_fini(&record);
	/* A keeper that has just died: the call knows it before the watch does. */
	world->driver.tells_late = true;
	assert_int_equal(sandbox_start(sandbox, &err), -EAGAIN);
	assert_int_equal(world_status(sandbox), SANDBOX_STOPPED);
	fake_set_trouble(&world->driver, false);
	assert_int_equal(sandbox_start(sandbox, &err), 0);
	sandbox_unref(sandbox);
}

static sem_t row_gone;

static void note_row_gone(enum store_op op, const char *id)
{
	(void)id;
	if (op == STORE_WORKSPACE_DELETE)
		sem_post(&row_gone);
}

static void a_create_that_could_not_be_undone_is_undone_later(void **state)
{
	struct world *world = *state;
	const char *id = world_id('u');
	struct sandbox_record draft;
	struct sandbox *sandbox = NULL;
	struct err err;

	sem_init(&row_gone, 0, 0);
	world_draft(&draft, id, "");
	fake_set_trouble(&world->driver, true);
	assert_int_equal(sandbox_create(world->engine, &draft, &sandbox, &err), -EAGAIN);
	assert_true(world_has_row(world, id));
	atomic_store(&store_script.after, note_row_gone);
	fake_set_trouble(&world->driver, false);
	world_await(&row_gone);
	atomic_store(&store_script.after, NULL);
	assert_false(world_has_row(world, id));
	sandbox_unref(world_create(world, id));
	sandbox_record_fini(&draft);
	sem_destroy(&row_gone);
}

/* Nobody waited for the answer to the start of one that runs. */
static void one_that_nobody_knows_of_is_in_nobodys_way(void **state)
{
	struct world *world = *state;
	struct sandbox *sandbox = world_create(world, "");
	struct err err;

	assert_int_equal(sandbox_stop(sandbox, END_OPERATOR, &err), 0);
	fake_plant(&world->driver, sandbox_id(sandbox), true);
	assert_int_equal(sandbox_start(sandbox, &err), 0);
	world_assert_agree(world, sandbox_id(sandbox));
	sandbox_unref(sandbox);
}

static uint64_t sample_disk(struct sandbox *sandbox, struct fake_driver *driver, uint64_t cpu_us)
{
	struct sandbox_stats stats;
	struct err err;

	pthread_mutex_lock(&driver->lock);
	driver->stats.cpu_us = cpu_us;
	pthread_mutex_unlock(&driver->lock);
	assert_int_equal(sandbox_stats_sample(sandbox, &stats, &err), 0);
	sandbox->sample.cpu_us = stats.cpu_us;
	return stats.disk_bytes;
}

static void the_disk_of_one_in_which_nothing_ran_is_not_looked_at_again(void **state)
{
	struct world *world = *state;
	struct sandbox *sandbox = world_create(world, "");
	struct sandbox_stats stats;
	struct err err;

	atomic_store(&world->driver.used_bytes, 100);
	assert_int_equal(sample_disk(sandbox, &world->driver, 5), 100);
	atomic_store(&world->driver.used_bytes, 200);
	assert_int_equal(sample_disk(sandbox, &world->driver, 5), 100);
	assert_int_equal(sandbox_stats_read(sandbox, &stats, &err), 0);
	assert_int_equal(stats.disk_bytes, 200);
	assert_int_equal(sample_disk(sandbox, &world->driver, 6), 200);
	/* As where there are no control groups. */
	assert_int_equal(sample_disk(sandbox, &world->driver, 0), 200);
	atomic_store(&world->driver.used_bytes, 300);
	assert_int_equal(sample_disk(sandbox, &world->driver, 0), 300);
	sandbox_unref(sandbox);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		IN_WORLD(the_walls_are_those_of_the_running_sandbox),
		IN_WORLD(the_driver_is_told_whose_a_sandbox_is),
		IN_WORLD(a_template_that_is_gone_starts_nothing),
		IN_WORLD(a_disk_that_is_not_in_order_is_checked_and_then_started),
		IN_WORLD(one_that_cannot_be_mended_is_an_error_that_says_so),
		IN_WORLD(on_a_full_host_nothing_is_started_and_nothing_changes),
		IN_WORLD(on_a_full_host_the_disks_of_those_that_run_hardly_grow),
		IN_WORLD(a_disk_that_failed_is_told_once_and_forgotten_when_it_is_no_longer_in_use),
		IN_WORLD(a_stop_asks_the_agent_first_and_says_why),
		IN_WORLD(a_second_stop_and_a_second_start_do_nothing),
		IN_WORLD(a_start_keeps_how_it_had_ended),
		IN_WORLD(a_start_that_fails_is_an_error_that_can_be_mended),
		IN_WORLD(a_stop_that_the_driver_fails_leaves_it_for_the_next_try),
		IN_WORLD(after_an_end_that_failed_the_loss_of_its_agent_is_noticed),
		IN_WORLD(a_stop_that_cannot_be_written_is_put_right_by_the_next_verb),
		IN_WORLD(a_start_that_cannot_be_written_does_not_run),
		IN_WORLD(a_start_that_cannot_be_written_takes_no_quota),
		IN_WORLD(a_paused_sandbox_is_frozen_and_cannot_be_used),
		IN_WORLD(a_paused_sandbox_is_stopped_without_being_asked),
		IN_WORLD(a_pause_that_cannot_be_written_is_undone),
		IN_WORLD(a_resume_that_cannot_be_written_is_undone),
		IN_WORLD(a_sandbox_that_was_killed_is_stopped_with_the_signal_on_record),
		IN_WORLD(a_sandbox_that_exited_is_stopped_with_the_status_on_record),
		IN_WORLD(a_lost_sandbox_that_cannot_be_ended_is_settled_by_the_next_verb),
		IN_WORLD(the_way_out_of_a_lost_sandbox_is_closed_though_it_cannot_be_ended),
		IN_WORLD(a_use_wakes_a_stopped_sandbox),
		IN_WORLD(a_use_of_one_that_does_not_start_gives_the_reason),
		cmocka_unit_test_setup_teardown(
			one_that_ends_with_the_driver_while_it_starts_may_be_tried_again,
			world_setup, world_teardown),
		cmocka_unit_test_setup_teardown(a_driver_that_serves_nobody_makes_no_sandbox_faulty,
			world_setup, world_teardown),
		cmocka_unit_test_setup_teardown(a_create_that_could_not_be_undone_is_undone_later,
			world_setup, world_teardown),
		cmocka_unit_test_setup_teardown(
			one_that_nobody_knows_of_is_in_nobodys_way, world_setup, world_teardown),
		IN_WORLD(a_start_that_takes_long_tells_its_progress),
		IN_WORLD(the_disk_of_one_in_which_nothing_ran_is_not_looked_at_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
