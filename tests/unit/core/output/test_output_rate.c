/* SPDX-License-Identifier: Apache-2.0 */
#include "core/output/output_rate.h"
#include "sem_await.h"

#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>

#include <cmocka.h>

#define MIB   (1u << 20)
#define SAVED (32ull * MIB) /* what may be taken at once after quiet times */
#define CROWD 64

static atomic_ullong now_ms = 1;

uint64_t __wrap_clock_steady_ms(void);

uint64_t __wrap_clock_steady_ms(void)
{
	return now_ms;
}

struct world {
	struct post post;
	struct event_loop *loop;
	struct output_rate *rate;
	char order[CROWD + 1]; /* whose turns there were */
	atomic_uint gone;
	uint64_t bytes; /* of each */
	sem_t went, done;
};

struct waiter {
	struct world *world;
	char name;
};

static uint64_t go(void *arg)
{
	struct waiter *waiter = arg;
	struct world *world = waiter->world;

	world->order[world->gone++] = waiter->name;
	sem_post(&world->went);
	return world->bytes;
}

static struct waiter waiters[CROWD];

static void park(struct world *world, int i, char name)
{
	waiters[i] = (struct waiter){.world = world, .name = name};
	output_rate_park(world->rate, name == 'b' ? "b" : "a", go, &waiters[i]);
}

static void post_done(void *arg)
{
	sem_post(&((struct world *)arg)->done);
}

/* Parking happens on the loop's thread, so that no turn comes before all wait. */
static void run_on_loop(struct world *world, void (*function)(void *arg))
{
	world->post = (struct post){.run = function, .arg = world};
	event_loop_post(world->loop, &world->post);
	sem_await(&world->done);
}

static void park_two_sandboxes(void *arg)
{
	struct world *world = arg;

	park(world, 0, 'a');
	park(world, 1, 'A');
	park(world, 2, 'a');
	park(world, 3, 'b');
	now_ms += 100;
	post_done(arg);
}

static void park_crowd(void *arg)
{
	for (int i = 0; i < CROWD; i++)
		park(arg, i, 'a');
	now_ms += 10000;
	post_done(arg);
}

static void open_world(struct world *world)
{
	struct err err;

	*world = (struct world){0};
	sem_init(&world->went, 0, 0);
	sem_init(&world->done, 0, 0);
	assert_int_equal(event_loop_open("test", NULL, &world->loop, &err), 0);
	world->rate = output_rate_open(world->loop);
	assert_true(output_rate_allows(world->rate, SAVED + 1));
	assert_false(output_rate_allows(world->rate, 1));
}

static void close_world(struct world *world)
{
	output_rate_close(world->rate);
	event_loop_close(world->loop);
	sem_destroy(&world->went);
	sem_destroy(&world->done);
}

static void test_sandboxes_take_turns(void **state)
{
	struct world world;

	(void)state;
	open_world(&world);
	run_on_loop(&world, park_two_sandboxes);
	for (int i = 0; i < 4; i++)
		sem_await(&world.went);
	assert_string_equal(world.order, "abAa");
	close_world(&world);
}

/* Half a second counts at most, and a crowd gets a sixteenth of 64 MiB a second. */
static void test_a_crowd_shares_a_lower_rate(void **state)
{
	struct world world;

	(void)state;
	open_world(&world);
	world.bytes = MIB;
	run_on_loop(&world, park_crowd);
	sem_await(&world.went);
	sem_await(&world.went);
	run_on_loop(&world, post_done);
	assert_int_equal(world.gone, 2);
	close_world(&world);
	assert_int_equal(world.gone, CROWD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sandboxes_take_turns),
		cmocka_unit_test(test_a_crowd_shares_a_lower_rate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
