/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "event/event_loop_private.h"
#include "event/timer.h"
#include "sem_await.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

struct probe {
	struct timer *alarm;
	atomic_int rings, releases;
	uint64_t rang_ms;
	int again; /* so often it sets itself once more */
	bool closes;
	sem_t rang, released;
};

static void ring(void *arg)
{
	struct probe *probe = arg;

	atomic_fetch_add(&probe->rings, 1);
	probe->rang_ms = clock_steady_ms();
	if (probe->again-- > 0)
		timer_set(probe->alarm, 1);
	if (probe->closes)
		timer_close(probe->alarm);
	sem_post(&probe->rang);
}

static void release(void *arg)
{
	struct probe *probe = arg;

	atomic_fetch_add(&probe->releases, 1);
	sem_post(&probe->released);
}

static void probe_open(struct probe *probe, struct event_loop *loop, uint64_t ms)
{
	sem_init(&probe->rang, 0, 0);
	sem_init(&probe->released, 0, 0);
	probe->alarm = timer_open(loop, ring, release, probe);
	timer_set(probe->alarm, ms);
}

static void probe_close(struct probe *probe)
{
	timer_close(probe->alarm);
	sem_await(&probe->released);
	assert_int_equal(probe->releases, 1);
	sem_destroy(&probe->rang);
	sem_destroy(&probe->released);
}

static int setup(void **state)
{
	struct event_loop *loop;
	struct err err;

	if (event_loop_open("test", NULL, &loop, &err) < 0)
		return -1;
	*state = loop;
	return 0;
}

static int teardown(void **state)
{
	event_loop_close(*state);
	return 0;
}

static void it_rings_once_and_not_before_its_time(void **state)
{
	uint64_t now = clock_steady_ms();
	struct probe probe = {0};

	probe_open(&probe, *state, 20);
	sem_await(&probe.rang);
	assert_true(probe.rang_ms >= now + 20);
	assert_int_equal(probe.rings, 1);
	probe_close(&probe);
	assert_int_equal(probe.rings, 1);
}

static void no_time_at_all_is_soon_and_not_never(void **state)
{
	struct probe probe = {0};

	probe_open(&probe, *state, 0);
	sem_await(&probe.rang);
	probe_close(&probe);
}

/* Waits until the thread waits for the kernel, and returns when it is to be woken. */
static uint64_t await_waiting(struct event_loop *loop)
{
	for (;;) {
		bool is_waiting;
		uint64_t alarm_us;

		pthread_mutex_lock(&loop->lock);
		is_waiting = loop->is_waiting;
		alarm_us = loop->alarm_us;
		pthread_mutex_unlock(&loop->lock);
		if (is_waiting)
			return alarm_us;
		sched_yield();
	}
}

/* It would take the processor from the thread that sets it. */
static void setting_one_wakes_the_thread_when_it_is_due_and_not_before(void **state)
{
	struct event_loop *loop = *state;
	struct probe late = {0}, soon = {0};
	uint64_t alarm_us;

	await_waiting(loop);
	probe_open(&late, loop, 3600000);
	alarm_us = await_waiting(loop);
	assert_int_not_equal(alarm_us, 0);
	probe_open(&soon, loop, 30);
	assert_true(await_waiting(loop) < alarm_us);
	sem_await(&soon.rang);
	assert_int_equal(late.rings, 0);
	probe_close(&soon);
	probe_close(&late);
}

static void it_can_be_set_again_when_it_rang(void **state)
{
	struct probe probe = {.again = 3};

	probe_open(&probe, *state, 1);
	for (int i = 0; i < 4; i++)
		sem_await(&probe.rang);
	assert_int_equal(probe.rings, 4);
	probe_close(&probe);
}

static void a_closed_one_does_not_ring(void **state)
{
	struct probe probe = {0};

	probe_open(&probe, *state, 3600000);
	probe_close(&probe);
	assert_int_equal(probe.rings, 0);
	timer_close(NULL);
}

static void it_may_close_itself_when_it_rings(void **state)
{
	struct probe probe = {.closes = true};

	probe_open(&probe, *state, 0);
	sem_await(&probe.rang);
	sem_await(&probe.released);
	assert_int_equal(probe.rings, 1);
	assert_int_equal(probe.releases, 1);
}

/* Closed at just the moment it rings, many times over: it is released once, and never rings after that. */
static void closing_while_it_rings_is_safe(void **state)
{
	for (int i = 0; i < 200; i++) {
		struct probe probe = {0};
		int rings;

		probe_open(&probe, *state, (uint64_t)(i % 2));
		if (i % 4 < 2)
			sem_await(&probe.rang);
		timer_close(probe.alarm);
		sem_await(&probe.released);
		rings = atomic_load(&probe.rings);
		assert_true(rings <= 1);
		assert_int_equal(probe.releases, 1);
	}
}

static void a_stopped_one_rings_only_when_it_is_set_again(void **state)
{
	struct probe probe = {0}, later = {0};

	probe_open(&probe, *state, 5);
	timer_stop(probe.alarm);
	probe_open(&later, *state, 10);
	sem_await(&later.rang);
	assert_int_equal(probe.rings, 0);
	timer_set(probe.alarm, 0);
	sem_await(&probe.rang);
	probe_close(&probe);
	probe_close(&later);
}

static void one_that_is_set_again_rings_at_the_later_time_alone(void **state)
{
	uint64_t now = clock_steady_ms();
	struct probe probe = {0};

	probe_open(&probe, *state, 3600000);
	timer_set(probe.alarm, 1);
	timer_set(probe.alarm, 30);
	sem_await(&probe.rang);
	assert_true(probe.rang_ms >= now + 30);
	assert_int_equal(probe.rings, 1);
	probe_close(&probe);
}

struct ringing {
	struct timer *timer;
	uint64_t ms;
	uint64_t not_before_us, not_after_us; /* when it is due */
	uint64_t *latest_us;		      /* not_before_us of those that rang */
	int *disorder, *left;
	sem_t *done;
};

static void note_order(void *arg)
{
	struct ringing *ringing = arg;

	*ringing->disorder += ringing->not_after_us < *ringing->latest_us;
	if (ringing->not_before_us > *ringing->latest_us)
		*ringing->latest_us = ringing->not_before_us;
	if (--*ringing->left == 0)
		sem_post(ringing->done);
}

static void set_ringing(struct ringing *ringing)
{
	ringing->not_before_us = clock_steady_us() + ringing->ms * 1000;
	timer_set(ringing->timer, ringing->ms);
	ringing->not_after_us = clock_steady_us() + ringing->ms * 1000 + 1;
}

/* Some are moved, some stopped and some closed. The guard keeps all of them waiting meanwhile. */
static void many_ring_in_the_order_of_their_times(void **state)
{
	enum { COUNT = 600 };
	static struct ringing ringings[COUNT];
	pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
	int disorder = 0, left = COUNT - COUNT / 3;
	struct event_loop *loop;
	uint64_t latest_us = 0;
	unsigned seed = 1;
	struct err err;
	sem_t done;

	(void)state;
	sem_init(&done, 0, 0);
	assert_int_equal(event_loop_open("test", &guard, &loop, &err), 0);
	pthread_mutex_lock(&guard);
	for (int i = 0; i < COUNT; i++) {
		ringings[i] =
			(struct ringing){.timer = timer_open(loop, note_order, NULL, &ringings[i]),
				.ms = i % 3 ? (uint64_t)(rand_r(&seed) % 100) : 3600000,
				.latest_us = &latest_us,
				.disorder = &disorder,
				.left = &left,
				.done = &done};
		set_ringing(&ringings[i]);
	}
	for (int i = 0; i < COUNT; i++) {
		ringings[i].ms = (uint64_t)(rand_r(&seed) % 100);
		if (i % 6 == 1)
			timer_stop(ringings[i].timer);
		else if (i % 6 == 2)
			timer_close(take_ptr(&ringings[i].timer));
		else if (i % 3 == 0)
			set_ringing(&ringings[i]);
	}
	pthread_mutex_unlock(&guard);
	sem_await(&done);
	pthread_mutex_lock(&guard);
	assert_int_equal(disorder, 0);
	for (int i = 0; i < COUNT; i++)
		timer_close(ringings[i].timer);
	pthread_mutex_unlock(&guard);
	event_loop_close(loop);
	sem_destroy(&done);
}

#define IN_LOOP(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		IN_LOOP(it_rings_once_and_not_before_its_time),
		IN_LOOP(no_time_at_all_is_soon_and_not_never),
		IN_LOOP(setting_one_wakes_the_thread_when_it_is_due_and_not_before),
		IN_LOOP(it_can_be_set_again_when_it_rang),
		IN_LOOP(a_closed_one_does_not_ring),
		IN_LOOP(it_may_close_itself_when_it_rings),
		IN_LOOP(closing_while_it_rings_is_safe),
		IN_LOOP(a_stopped_one_rings_only_when_it_is_set_again),
		IN_LOOP(one_that_is_set_again_rings_at_the_later_time_alone),
		IN_LOOP(many_ring_in_the_order_of_their_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
