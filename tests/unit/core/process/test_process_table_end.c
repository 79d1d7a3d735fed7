/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of all processes (process_table_end_all in src/core/process table.c) while the end of one is being written, at the
 * worst moment: just before it begins to wait for that. The linker puts our pthread_cond_wait first.
 */
#include "process_stage.h"

#include "core/engine/db_writer.h"
#include "core/engine/sandbox_state.h"
#include "wire/agent.h"

#include <errno.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static struct sandbox *_Atomic trap; /* whose end of all is to be held */
static sem_t writing, may_write, written;

static int await(sem_t *sem, time_t seconds)
{
	struct timespec until;
	int r;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += seconds;
	while ((r = sem_timedwait(sem, &until)) < 0 && errno == EINTR)
		;
	return r;
}

int __real_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);

/* Lets the database writer go on, and gives it time to be through, if it can be without the lock that is held here. */
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	struct sandbox *sandbox = atomic_load(&trap);

	if (sandbox && cond == &sandbox->changed && !sandbox->link) {
		atomic_store(&trap, NULL);
		sem_post(&may_write);
		await(&written, 1);
	}
	return __real_pthread_cond_wait(cond, mutex);
}

static void hold(enum store_op op, const char *id)
{
	(void)id;
	if (op != STORE_PROCESS_UPDATE)
		return;
	atomic_store(&store_script.before, NULL);
	sem_post(&writing);
	await(&may_write, DEADLINE_MS / 1000);
}

static void post(void *arg)
{
	sem_post(arg);
}

static void *reset(void *arg)
{
	struct err err;

	return sandbox_reset(arg, &err) < 0 ? arg : NULL;
}

static void an_end_that_is_written_just_before_it_is_waited_for_is_not_missed(void **state)
{
	struct stage stage;
	struct timespec until;
	pthread_t thread;
	void *failed = NULL;

	sem_init(&writing, 0, 0);
	sem_init(&may_write, 0, 0);
	sem_init(&written, 0, 0);
	stage_init(&stage, *state);
	stage_start(&stage, true);
	world_flush(stage.world);
	atomic_store(&store_script.before, hold);
	say_survivors(&stage, 2);
	say_exited(&stage, 0, 0);
	assert_int_equal(await(&writing, DEADLINE_MS / 1000), 0);
	db_writer_put(stage.world->engine->db_writer, post, &written);
	atomic_store(&trap, stage.sandbox);
	assert_int_equal(pthread_create(&thread, NULL, reset, stage.sandbox), 0);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += DEADLINE_MS / 1000;
	if (pthread_timedjoin_np(thread, &failed, &until) != 0) {
		print_error("it waits for ever\n");
		_exit(1); /* nothing can be cleaned up around a thread that hangs */
	}
	assert_null(failed);
	assert_null(atomic_load(&trap)); /* it did come to that moment */
	stage_fini(&stage, true);
}

static void hold_end(struct heard *heard)
{
	(void)heard;
	sem_post(&writing);
	await(&may_write, DEADLINE_MS / 1000);
}

static void an_end_that_is_being_told_is_waited_for_until_all_have_heard_of_it(void **state)
{
	struct stage stage;
	pthread_t thread;
	void *failed = NULL;

	sem_init(&writing, 0, 0);
	sem_init(&may_write, 0, 0);
	sem_init(&written, 0, 0);
	stage_init(&stage, *state);
	stage.heard.at_end = hold_end;
	stage_start(&stage, true);
	world_flush(stage.world);
	say_survivors(&stage, 2);
	say_exited(&stage, 0, 0);
	assert_int_equal(await(&writing, DEADLINE_MS / 1000), 0);
	db_writer_put(stage.world->engine->db_writer, post, &written);
	atomic_store(&trap, stage.sandbox);
	assert_int_equal(pthread_create(&thread, NULL, reset, stage.sandbox), 0);
	pthread_join(thread, &failed);
	sem_post(&may_write); /* for one that did not wait */
	assert_null(failed);
	assert_null(atomic_load(&trap));
	stage_fini(&stage, true);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			an_end_that_is_being_told_is_waited_for_until_all_have_heard_of_it,
			world_setup, world_teardown),
		cmocka_unit_test_setup_teardown(
			an_end_that_is_written_just_before_it_is_waited_for_is_not_missed,
			world_setup, world_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
