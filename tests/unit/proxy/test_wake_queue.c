/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/wake_queue.h"
#include "proxy_stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define MANY 8 /* more than there are workers */

static int visit(struct stage *stage, const char *target)
{
	int client = stage_connect(stage);
	char text[128];

	snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", target);
	say(client, text);
	return client;
}

/* Visits many that sleep and have one lane. */
static void visit_sleepers(struct stage *stage, char splice_pipe, int clients[MANY])
{
	for (int i = 0; i < MANY; i++) {
		char target[32];

		snprintf(target, sizeof(target), "/sleep%c%d", splice_pipe, i);
		clients[i] = visit(stage, target);
	}
}

static void await_count(atomic_uint *count, unsigned wanted)
{
	for (int tries = 0; atomic_load(count) < wanted; tries++) {
		assert_true(tries < DEADLINE_MS);
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
}

static void wake_all(struct stage *stage)
{
	atomic_store(&stage->is_awake, true);
	for (int i = 0; i < 4 * MANY; i++)
		sem_post(&stage->may_wake);
}

/* The app takes their connections in no particular order. */
static void serve(struct stage *stage, const int *clients, size_t count)
{
	int apps[3 * MANY];

	for (size_t i = 0; i < count; i++) {
		apps[i] = stage_accept(stage);
		expect(apps[i], "\r\n\r\n");
		say(apps[i], OK);
	}
	for (size_t i = 0; i < count; i++) {
		expect(clients[i], "ok");
		close(clients[i]);
		close(apps[i]);
	}
}

static void visit_one_awake(struct stage *stage)
{
	int client = visit(stage, "/");

	serve(stage, &client, 1);
}

static void wakes_that_take_long_keep_no_way_from_being_found(void **state)
{
	int clients[3 * MANY];
	struct stage stage;

	(void)state;
	stage_open(&stage, 100);
	visit_sleepers(&stage, '1', clients);
	await_count(&stage.finds, MANY);
	visit_one_awake(&stage);
	visit_sleepers(&stage, '2', clients + MANY);
	visit_sleepers(&stage, '3', clients + MANY * 2);
	await_count(&stage.finds, 3 * MANY + 1);
	visit_one_awake(&stage);
	wake_all(&stage);
	serve(&stage, clients, 3 * MANY);
	assert_int_equal(atomic_load(&stage.wakes), 3 * MANY);
	stage_close(&stage);
}

static void one_who_has_much_woken_leaves_others_their_share(void **state)
{
	int clients[MANY + 1];
	struct stage stage;

	(void)state;
	stage_open(&stage, 100);
	visit_sleepers(&stage, '1', clients);
	await_count(&stage.finds, MANY);
	await_count(&stage.wakes, 1);
	clients[MANY] = visit(&stage, "/sleep2");
	await_count(&stage.wakes, 2); /* the other's: the first has no more at a time */
	wake_all(&stage);
	serve(&stage, clients, MANY + 1);
	stage_close(&stage);
}

static void whoever_wants_the_same_waits_for_one_wake(void **state)
{
	int clients[MANY];
	struct stage stage;

	(void)state;
	stage_open(&stage, 100);
	for (int i = 0; i < MANY; i++)
		clients[i] = visit(&stage, "/sleep1");
	await_count(&stage.finds, MANY);
	wake_all(&stage);
	serve(&stage, clients, MANY);
	assert_int_equal(atomic_load(&stage.wakes), 1);
	stage_close(&stage);
}

static void who_waits_for_a_wake_waits_no_longer_than_the_limit(void **state)
{
	int clients[MANY];
	struct stage stage;

	(void)state;
	stage_init(&stage, 100);
	stage.config.wake_ms = 1;
	stage_start(&stage);
	visit_sleepers(&stage, '1', clients); /* one is being woken, the others wait in its lane */
	for (int i = 0; i < MANY; i++) {
		auto_free char *answer = hear(clients[i], "wake_timeout: ");

		assert_non_null(strstr(answer, "HTTP/1.1 503 "));
		close(clients[i]);
	}
	wake_all(&stage);
	await_count(&stage.wakes, MANY); /* all the same */
	visit_one_awake(&stage);
	stage_close(&stage);
}

static void nothing_is_woken_after_the_end(void **state)
{
	struct workers *workers;
	struct wake_queue *wake_queue;
	struct stage stage;
	struct err err;

	(void)state;
	stage_open(&stage, 100);
	assert_int_equal(workers_open(4, 100, &workers, &err), 0);
	wake_queue = wake_queue_new(&stage.config, workers);
	for (int i = 0; i < MANY; i++) {
		struct proxy_way way = {.wake_class = 1};

		snprintf(way.key, sizeof(way.key), "%d", i);
		wake_queue_join(wake_queue, &way, NULL);
	}
	await_count(&stage.wakes, 1);
	wake_queue_stop(wake_queue);
	sem_post(&stage.may_wake);
	workers_close(workers);
	wake_queue_free(wake_queue);
	assert_int_equal(atomic_load(&stage.wakes), 1);
	stage_close(&stage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wakes_that_take_long_keep_no_way_from_being_found),
		cmocka_unit_test(one_who_has_much_woken_leaves_others_their_share),
		cmocka_unit_test(whoever_wants_the_same_waits_for_one_wake),
		cmocka_unit_test(who_waits_for_a_wake_waits_no_longer_than_the_limit),
		cmocka_unit_test(nothing_is_woken_after_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
