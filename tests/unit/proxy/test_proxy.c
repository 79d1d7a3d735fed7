/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy_stage.h"

#include "base/fd.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define POST "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10000000\r\n\r\n"

/* Closes with a reset. */
static void tear(int sock)
{
	setsockopt(
		sock, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1}, sizeof(struct linger));
	close(sock);
}

static void mhd_callbacks(int client, int app)
{
	say(client, GET);
	expect(app, "\r\n\r\n");
	say(app, OK);
	expect(client, "\r\n\r\nok");
}

static void requests_of_one_client_share_a_connection_while_its_way_is_good(void **state)
{
	struct stage stage;
	int client, app;

	(void)state;
	stage_open(&stage, 10);
	client = stage_connect(&stage);
	app = stage_ask(&stage, client, GET);
	stage_reply(app, client);
	mhd_callbacks(client, app);
	assert_int_equal(atomic_load(&stage.finds), 1);
	atomic_fetch_add(&stage.generation, 1);
	say(client, GET);
	expect_end(app);
	close(app);
	app = stage_take(&stage);
	stage_reply(app, client);
	assert_int_equal(atomic_load(&stage.finds), 2);
	/* The secret of a link is for us alone. */
	say(client, "GET /?sandlot_link=x HTTP/1.1\r\nHost: a\r\n\r\n");
	expect_end(app);
	close(client);
	close(app);
	stage_close(&stage);
}

static void a_way_ends_with_its_time(void **state)
{
	struct stage stage;
	int client, app;

	(void)state;
	stage_open(&stage, 10);
	stage.good_ms = 0;
	client = stage_connect(&stage);
	app = stage_ask(&stage, client, GET);
	stage_reply(app, client);
	say(client, GET);
	expect_end(app);
	close(client);
	close(app);
	stage_close(&stage);
}

static void open_tunnel(struct stage *stage, int *ret_client, int *ret_app)
{
	*ret_client = stage_connect(stage);
	say(*ret_client,
		"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
		"early");
	*ret_app = stage_accept(stage);
	expect(*ret_app, "\r\n\r\n");
	say(*ret_app, "HTTP/1.1 101 Go\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello");
	expect(*ret_client, "\r\n\r\nhello");
	expect(*ret_app, "early");
}

static void a_tunnel_ends_with_what_opened_it(void **state)
{
	struct stage stage;
	int client, app;

	(void)state;
	stage_open(&stage, 10);
	open_tunnel(&stage, &client, &app);
	atomic_store(&stage.is_granted, false);
	atomic_fetch_add(&stage.generation, 1);
	expect_end(client);
	expect_end(app);
	close(client);
	close(app);
	stage.ends_in_ms = 1;
	atomic_store(&stage.is_granted, true);
	client = stage_connect(&stage);
	app = stage_ask(&stage, client, GET);
	expect_end(client);
	close(client);
	close(app);
	stage_close(&stage);
}

static void the_last_words_of_a_tunnel_reach_a_client_that_still_speaks(void **state)
{
	struct stage stage;
	int client, app;

	(void)state;
	stage_open(&stage, 10);
	open_tunnel(&stage, &client, &app);
	say(app, "bye");
	shutdown(app, SHUT_WR);
	say(client, "more");
	expect(client, "bye");
	expect_end(client);
	close(client);
	close(app);
	stage_close(&stage);
}

static void an_early_answer_reaches_a_client_that_still_sends(void **state)
{
	static const char answer[] = "HTTP/1.1 413 No\r\nContent-Length: 2\r\n\r\nno";
	static char block[65536];
	struct stage stage;
	int client, app;

	(void)state;
	stage_open(&stage, 10);
	client = stage_connect(&stage);
	app = stage_ask(&stage, client, POST);
	for (int i = 0; i < 8; i++)
		assert_int_equal(fd_write_full(client, block, sizeof(block)), 0);
	say(app, answer);
	close(app); /* with bytes that it did not read: a reset */
	expect(client, "\r\n\r\nno");
	close(client);
	stage_close(&stage);
}

static void an_answer_that_is_torn_does_not_look_whole(void **state)
{
	struct stage stage;
	auto_free char *text = NULL;
	int client, app;
	char rest[64];

	(void)state;
	stage_open(&stage, 10);
	client = stage_connect(&stage);
	app = stage_ask(&stage, client, GET);
	say(app, "HTTP/1.1 200 OK\r\n\r\nhalf");
	text = hear(client, "half\r\n");
	tear(app);
	assert_true(recv(client, rest, sizeof(rest), 0) <= 0);
	close(client);
	stage_close(&stage);
}

static void an_answer_without_a_body_has_none_whatever_it_says(void **state)
{
	struct stage stage;
	auto_free char *text = NULL;
	int client, app;

	(void)state;
	stage_open(&stage, 10);
	client = stage_connect(&stage);
	app = stage_ask(&stage, client, GET);
	say(app, "HTTP/1.1 304 Not Modified\r\nContent-Length: 42\r\n\r\n"
		 "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil");
	expect(client, "\r\n\r\n");
	close(app);
	app = stage_ask(&stage, client, GET);
	say(app, OK);
	text = hear(client, "ok");
	assert_null(strstr(text, "evil"));
	close(client);
	close(app);
	stage_close(&stage);
}

static void a_request_is_asked_twice_only_where_that_does_no_harm(void **state)
{
	static const char *const requests[] = {
		GET, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct stage stage;
		int client, app;

		stage_open(&stage, 10);
		client = stage_connect(&stage);
		app = stage_ask(&stage, client, GET);
		stage_reply(app, client);
		say(client, requests[i]);
		expect(app, "\r\n\r\n");
		close(app);
		if (i == 0) {
			app = stage_take(&stage);
			stage_reply(app, client);
			close(app);
		} else {
			expect(client, "HTTP/1.1 502 Bad Gateway\r\n");
		}
		close(client);
		stage_close(&stage);
	}
}

static void a_place_becomes_free_when_its_client_leaves_in_any_way(void **state)
{
	struct stage stage;
	int first, second, app;

	(void)state;
	stage_open(&stage, 1);
	first = stage_connect(&stage);
	say(first, "GET ");
	second = stage_connect(&stage);
	say(second, GET);
	tear(first);
	app = stage_take(&stage);
	stage_reply(app, second);
	close(second);
	close(app);
	stage_close(&stage);
}

static void serve(struct stage *stage, int client)
{
	int app;

	say(client, GET);
	app = stage_accept(stage);
	expect(app, "\r\n\r\n");
	stage_reply(app, client);
	close(app);
}

/* Who only holds connections open keeps nobody out. */
static void whoever_asks_for_nothing_gives_way_when_there_is_no_place(void **state)
{
	int first, second, third;
	struct stage stage;

	(void)state;
	stage_open(&stage, 2);
	first = stage_connect(&stage);
	serve(&stage, first);
	second = stage_connect(&stage);
	serve(&stage, second);
	third = stage_connect(&stage);
	serve(&stage, third);
	expect_end(first);
	serve(&stage, second);
	close(first);
	close(second);
	close(third);
	stage_close(&stage);
}

#define GET_OF(owner) "GET /of-" owner " HTTP/1.1\r\nHost: a\r\n\r\n"

static void one_owner_cannot_take_all_connections(void **state)
{
	static const char *const others[] = {GET_OF("b"), GET_OF("o")};
	int clients[4], apps[4], late;
	struct stage stage;

	(void)state;
	stage_open(&stage, 16); /* of which an owner has a quarter */
	for (size_t i = 0; i < array_len(clients); i++) {
		clients[i] = stage_connect(&stage);
		apps[i] = stage_ask(&stage, clients[i], GET_OF("a"));
	}
	late = stage_connect(&stage);
	say(late, GET_OF("a"));
	expect(late, "HTTP/1.1 503 ");
	close(late);
	close(stage_accept(&stage)); /* it was connected, and nothing came of it */
	for (size_t i = 0; i < array_len(others); i++) {
		int client = stage_connect(&stage), app = stage_ask(&stage, client, others[i]);

		stage_reply(app, client);
		close(client);
		close(app);
	}
	for (size_t i = 0; i < array_len(clients); i++) {
		stage_reply(apps[i], clients[i]);
		close(clients[i]);
		close(apps[i]);
	}
	stage_close(&stage);
}

static void a_source_with_too_many_connections_is_told_so_and_then_cut(void **state)
{
	int clients[2], told[64], last;
	struct stage stage;

	(void)state;
	stage_init(&stage, 1000);
	stage.config.max_per_source = array_len(clients);
	stage_start(&stage);
	for (size_t i = 0; i < array_len(clients); i++)
		clients[i] = stage_connect(&stage);
	for (size_t i = 0; i < array_len(told); i++)
		told[i] = stage_connect(&stage);
	last = stage_connect(&stage);
	expect_end(last);
	for (size_t i = 0; i < array_len(told); i++) {
		say(told[i], GET);
		expect(told[i], "HTTP/1.1 429 ");
		close(told[i]);
	}
	/* Whoever came in time is served, and whoever comes in the place of one that left. */
	close(clients[0]);
	for (int tries = 0;; tries++) {
		int app;

		assert_true(tries < 100);
		clients[0] = stage_connect(&stage);
		say(clients[0], GET);
		if (poll(&(struct pollfd){.fd = stage.app_fd, .events = POLLIN}, 1, 100) == 0) {
			close(clients[0]);
			continue;
		}
		app = stage_take(&stage);
		say(app, OK);
		expect(clients[0], "ok");
		close(app);
		break;
	}
	assert_int_equal(atomic_load(&stage.finds), 1);
	close(last);
	close(clients[0]);
	close(clients[1]);
	stage_close(&stage);
}

static void what_has_enough_connections_gets_no_more(void **state)
{
	int first, second, app;
	struct stage stage;

	(void)state;
	stage_init(&stage, 1000);
	stage.config.max_per_key = 1;
	stage_start(&stage);
	open_tunnel(&stage, &first, &app);
	second = stage_connect(&stage);
	say(second, GET);
	expect(second, "HTTP/1.1 503 ");
	close(second);
	close(stage_accept(&stage)); /* it was connected, and nothing came of it */
	close(first);
	expect_end(app);
	close(app);
	second = stage_connect(&stage);
	for (int i = 0; i < 3; i++) { /* as often as it likes: it is one connection */
		say(second, GET);
		if (i == 0)
			app = stage_take(&stage);
		stage_reply(app, second);
	}
	close(second);
	close(app);
	stage_close(&stage);
}

/* Two that a simpler digest takes for one: whoever chooses its own key takes no places of another. */
static void keys_that_look_alike_are_counted_apart(void **state)
{
	int first, second, first_app, app;
	struct stage stage;

	(void)state;
	stage_init(&stage, 1000);
	stage.config.max_per_key = 1;
	stage_start(&stage);
	first = stage_connect(&stage);
	first_app =
		stage_ask(&stage, first, "GET /8yn0iYCKYHlIj4-BwPqk HTTP/1.1\r\nHost: a\r\n\r\n");
	second = stage_connect(&stage);
	app = stage_ask(&stage, second, "GET /GReLUrM4wMqfg9yzV3KQ HTTP/1.1\r\nHost: a\r\n\r\n");
	stage_reply(app, second);
	close(app);
	close(first_app);
	close(first);
	close(second);
	stage_close(&stage);
}

struct flood {
	int client, app;
	atomic_bool is_over;
};

static void *pour(void *arg)
{
	static const char block[65536];
	struct flood *flood = arg;

	while (send(flood->app, block, sizeof(block), MSG_NOSIGNAL) > 0)
		;
	return NULL;
}

static void *drink(void *arg)
{
	struct flood *flood = arg;
	char block[65536];

	while (!atomic_load(&flood->is_over) && recv(flood->client, block, sizeof(block), 0) > 0)
		;
	return NULL;
}

/* On one thread, the loop must come back from a stream that never pauses. */
static void a_flood_leaves_turns_to_others(void **state)
{
	struct stage stage;
	struct flood flood = {0};
	pthread_t writer, reader;
	int client, app;

	(void)state;
	stage_open(&stage, 10);
	flood.client = stage_connect(&stage);
	say(flood.client, GET);
	flood.app = stage_accept(&stage);
	expect(flood.app, "\r\n\r\n");
	say(flood.app, "HTTP/1.1 200 OK\r\n\r\n");
	assert_int_equal(pthread_create(&writer, NULL, pour, &flood), 0);
	assert_int_equal(pthread_create(&reader, NULL, drink, &flood), 0);
	for (int i = 0; i < 20; i++) {
		client = stage_connect(&stage);
		app = stage_ask(&stage, client, GET);
		stage_reply(app, client);
		close(client);
		close(app);
	}
	atomic_store(&flood.is_over, true);
	pthread_join(reader, NULL);
	close(flood.client);
	pthread_join(writer, NULL);
	close(flood.app);
	stage_close(&stage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_of_one_client_share_a_connection_while_its_way_is_good),
		cmocka_unit_test(a_way_ends_with_its_time),
		cmocka_unit_test(a_tunnel_ends_with_what_opened_it),
		cmocka_unit_test(the_last_words_of_a_tunnel_reach_a_client_that_still_speaks),
		cmocka_unit_test(an_early_answer_reaches_a_client_that_still_sends),
		cmocka_unit_test(an_answer_that_is_torn_does_not_look_whole),
		cmocka_unit_test(an_answer_without_a_body_has_none_whatever_it_says),
		cmocka_unit_test(a_request_is_asked_twice_only_where_that_does_no_harm),
		cmocka_unit_test(a_place_becomes_free_when_its_client_leaves_in_any_way),
		cmocka_unit_test(whoever_asks_for_nothing_gives_way_when_there_is_no_place),
		cmocka_unit_test(one_owner_cannot_take_all_connections),
		cmocka_unit_test(a_source_with_too_many_connections_is_told_so_and_then_cut),
		cmocka_unit_test(what_has_enough_connections_gets_no_more),
		cmocka_unit_test(keys_that_look_alike_are_counted_apart),
		cmocka_unit_test(a_flood_leaves_turns_to_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
