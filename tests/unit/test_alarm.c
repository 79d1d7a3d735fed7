/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "core/alarm.h"
#include "core_fixture.h"

#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

struct probe {
	struct alarm *alarm;
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
		alarm_set(probe->alarm, 1);
	if (probe->closes)
		alarm_close(probe->alarm);
	sem_post(&probe->rang);
}

static void release(void *arg)
{
	struct probe *probe = arg;

	atomic_fetch_add(&probe->releases, 1);
	sem_post(&probe->released);
}

static void probe_open(struct probe *probe, struct reactor *reactor, uint64_t ms)
{
	struct err err = {0};

	sem_init(&probe->rang, 0, 0);
	sem_init(&probe->released, 0, 0);
	if (alarm_open(reactor, ms, ring, release, probe, &probe->alarm, &err) < 0)
		fail_msg("%s", err.message);
}

static void probe_close(struct probe *probe)
{
	alarm_close(probe->alarm);
	world_await(&probe->released);
	assert_int_equal(probe->releases, 1);
	sem_destroy(&probe->rang);
	sem_destroy(&probe->released);
}

static int setup(void **state)
{
	struct reactor *reactor;
	struct err err;

	if (reactor_open(&reactor, &err) < 0)
		return -1;
	*state = reactor;
	return 0;
}

static int teardown(void **state)
{
	reactor_close(*state);
	return 0;
}

static void it_rings_once_and_not_before_its_time(void **state)
{
	uint64_t now = clock_steady_ms();
	struct probe probe = {0};

	probe_open(&probe, *state, 20);
	world_await(&probe.rang);
	assert_true(probe.rang_ms >= now + 20);
	assert_int_equal(probe.rings, 1);
	probe_close(&probe);
	assert_int_equal(probe.rings, 1);
}

static void no_time_at_all_is_soon_and_not_never(void **state)
{
	struct probe probe = {0};

	probe_open(&probe, *state, 0);
	world_await(&probe.rang);
	probe_close(&probe);
}

static void it_can_be_set_again_when_it_rang(void **state)
{
	struct probe probe = {.again = 3};

	probe_open(&probe, *state, 1);
	for (int i = 0; i < 4; i++)
		world_await(&probe.rang);
	assert_int_equal(probe.rings, 4);
	probe_close(&probe);
}

static void a_closed_one_does_not_ring(void **state)
{
	struct probe probe = {0};

	probe_open(&probe, *state, 3600000);
	probe_close(&probe);
	assert_int_equal(probe.rings, 0);
	alarm_close(NULL);
}

static void it_may_close_itself_when_it_rings(void **state)
{
	struct probe probe = {.closes = true};

	probe_open(&probe, *state, 0);
	world_await(&probe.rang);
	world_await(&probe.released);
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
			world_await(&probe.rang);
		alarm_close(probe.alarm);
		world_await(&probe.released);
		rings = atomic_load(&probe.rings);
		assert_true(rings <= 1);
		assert_int_equal(probe.releases, 1);
	}
}

#define IN_REACTOR(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		IN_REACTOR(it_rings_once_and_not_before_its_time),
		IN_REACTOR(no_time_at_all_is_soon_and_not_never),
		IN_REACTOR(it_can_be_set_again_when_it_rang),
		IN_REACTOR(a_closed_one_does_not_ring),
		IN_REACTOR(it_may_close_itself_when_it_rings),
		IN_REACTOR(closing_while_it_rings_is_safe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
