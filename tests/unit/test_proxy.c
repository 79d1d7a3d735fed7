/* SPDX-License-Identifier: Apache-2.0 */
/* The proxy between clients and an app that the test plays itself, over loopback. */
#include "proxy/proxy.h"

#include "base/clock.h"
#include "base/fd.h"
#include "http/listener.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define PATIENCE_MS 10000

struct stage {
	int listen_fd, app_fd; /* of the proxy, of the app */
	struct listener listener;
	struct proxy *proxy;
	atomic_uint_fast64_t generation;
	atomic_uint finds;
	atomic_bool is_granted;
	uint64_t good_ms, ends_in_ms;
};

static int listen_on_loopback(void)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(sock, (struct sockaddr *)&any, sizeof(any)), 0);
	assert_int_equal(listen(sock, 64), 0);
	return sock;
}

static int connect_to(int listener)
{
	struct sockaddr_in to;
	socklen_t len = sizeof(to);
	int sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(getsockname(listener, (struct sockaddr *)&to, &len), 0);
	assert_int_equal(connect(sock, (struct sockaddr *)&to, sizeof(to)), 0);
	assert_int_equal(fd_set_timeout(sock, PATIENCE_MS), 0);
	return sock;
}

static int accept_from(struct stage *stage)
{
	int sock = accept4(stage->app_fd, NULL, NULL, SOCK_CLOEXEC);

	assert_true(sock >= 0);
	assert_int_equal(fd_set_timeout(sock, PATIENCE_MS), 0);
	return sock;
}

static void find(void *context, const struct proxy_visit *visit, struct proxy_way *way)
{
	struct stage *stage = context;

	atomic_fetch_add(&stage->finds, 1);
	snprintf(way->key, sizeof(way->key), "%s", visit->target + 1);
	way->generation = atomic_load(&stage->generation);
	way->good_until_ms = clock_steady_ms() + stage->good_ms;
	way->ends_ms = clock_steady_ms() + stage->ends_in_ms;
	way->port = 3000;
	way->kind = PROXY_GO;
	way->fd = connect_to(stage->app_fd);
	assert_int_equal(fd_set_nonblocking(way->fd), 0);
}

static void wake(void *context, const char *key)
{
	(void)context;
	(void)key;
}

static bool is_granted(void *context, const struct proxy_way *way)
{
	(void)way;
	return atomic_load(&((struct stage *)context)->is_granted);
}

static void turn_away(void *context, const struct proxy_visit *visit, enum proxy_excess excess,
	unsigned wait_s, struct proxy_way *way)
{
	(void)context;
	(void)visit;
	assert_true(wait_s > 0);
	way->kind = PROXY_ANSWER;
	way->status = excess == PROXY_KEY_CROWDED ? 503 : 429;
	way->type = "text/plain";
}

static void open_limited_stage(struct stage *stage, unsigned max_connections,
	unsigned max_per_source, unsigned max_per_key)
{
	struct proxy_config config = {.listener = &stage->listener,
		.threads = 1,
		.max_workers = 4,
		.max_connections = max_connections,
		.max_per_source = max_per_source,
		.max_per_key = max_per_key,
		.requests_per_second = 1, /* which is not for clients of this machine */
		.context = stage,
		.generation = &stage->generation,
		.find = find,
		.turn_away = turn_away,
		.wake = wake,
		.is_granted = is_granted,
		.used = wake};
	struct err err;

	*stage = (struct stage){.good_ms = 60000, .ends_in_ms = 3600000, .is_granted = true};
	stage->listen_fd = stage->listener.fd = listen_on_loopback();
	assert_int_equal(fd_set_nonblocking(stage->listen_fd), 0);
	stage->app_fd = listen_on_loopback();
	assert_int_equal(fd_set_timeout(stage->app_fd, PATIENCE_MS), 0);
	assert_int_equal(proxy_open(&config, &stage->proxy, &err), 0);
}

static void open_stage(struct stage *stage, unsigned max_connections)
{
	open_limited_stage(stage, max_connections, max_connections, max_connections);
}

static void close_stage(struct stage *stage)
{
	proxy_close(stage->proxy);
	close(stage->listen_fd);
	close(stage->app_fd);
}

static void say(int sock, const char *text)
{
	assert_int_equal(fd_write_full(sock, text, strlen(text)), 0);
}

/* Reads until a text has come; all of it. */
static char *hear(int sock, const char *until)
{
	struct buf all = BUF_INIT(1 << 20);
	char byte;

	while (all.len < strlen(until) ||
		memcmp(all.data + all.len - strlen(until), until, strlen(until)) != 0) {
		if (recv(sock, &byte, 1, 0) != 1)
			fail_msg("no \"%s\", only %.*s", until, (int)all.len, (char *)all.data);
		buf_append(&all, &byte, 1);
	}
	return buf_take_str(&all);
}

static void expect(int sock, const char *until)
{
	free(hear(sock, until));
}

/* The other side ends the connection, and says nothing more. */
static void expect_end(int sock)
{
	char byte;

	assert_int_equal(recv(sock, &byte, 1, 0), 0);
}

/* Closes with a reset. */
static void tear(int sock)
{
	setsockopt(
		sock, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1}, sizeof(struct linger));
	close(sock);
}

#define GET  "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
#define OK   "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
#define POST "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10000000\r\n\r\n"

static void exchange(int client, int app)
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
	open_stage(&stage, 10);
	client = connect_to(stage.listen_fd);
	say(client, GET);
	app = accept_from(&stage);
	expect(app, "\r\n\r\n");
	say(app, OK);
	expect(client, "ok");
	exchange(client, app);
	assert_int_equal(atomic_load(&stage.finds), 1);
	atomic_fetch_add(&stage.generation, 1);
	say(client, GET);
	expect_end(app);
	close(app);
	app = accept_from(&stage);
	expect(app, "\r\n\r\n");
	say(app, OK);
	expect(client, "ok");
	assert_int_equal(atomic_load(&stage.finds), 2);
	/* The secret of a link is for us alone. */
	say(client, "GET /?sandlot_link=x HTTP/1.1\r\nHost: a\r\n\r\n");
	expect_end(app);
	close(client);
	close(app);
	close_stage(&stage);
}

static void a_way_ends_with_its_time(void **state)
{
	struct stage stage;
	int client, app;

	(void)state;
	open_stage(&stage, 10);
	stage.good_ms = 0;
	client = connect_to(stage.listen_fd);
	say(client, GET);
	app = accept_from(&stage);
	expect(app, "\r\n\r\n");
	say(app, OK);
	expect(client, "ok");
	say(client, GET);
	expect_end(app);
	close(client);
	close(app);
	close_stage(&stage);
}

static void open_tunnel(struct stage *stage, int *ret_client, int *ret_app)
{
	*ret_client = connect_to(stage->listen_fd);
	say(*ret_client,
		"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
		"early");
	*ret_app = accept_from(stage);
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
	open_stage(&stage, 10);
	open_tunnel(&stage, &client, &app);
	atomic_store(&stage.is_granted, false);
	atomic_fetch_add(&stage.generation, 1);
	expect_end(client);
	expect_end(app);
	close(client);
	close(app);
	stage.ends_in_ms = 1;
	atomic_store(&stage.is_granted, true);
	client = connect_to(stage.listen_fd);
	say(client, GET);
	app = accept_from(&stage);
	expect(app, "\r\n\r\n");
	expect_end(client);
	close(client);
	close(app);
	close_stage(&stage);
}

static void the_last_words_of_a_tunnel_reach_a_client_that_still_speaks(void **state)
{
	struct stage stage;
	int client, app;

	(void)state;
	open_stage(&stage, 10);
	open_tunnel(&stage, &client, &app);
	say(app, "bye");
	shutdown(app, SHUT_WR);
	say(client, "more");
	expect(client, "bye");
	expect_end(client);
	close(client);
	close(app);
	close_stage(&stage);
}

static void an_early_answer_reaches_a_client_that_still_sends(void **state)
{
	static const char answer[] = "HTTP/1.1 413 No\r\nContent-Length: 2\r\n\r\nno";
	static char block[65536];
	struct stage stage;
	int client, app;

	(void)state;
	open_stage(&stage, 10);
	client = connect_to(stage.listen_fd);
	say(client, POST);
	app = accept_from(&stage);
	expect(app, "\r\n\r\n");
	for (int i = 0; i < 8; i++)
		assert_int_equal(fd_write_full(client, block, sizeof(block)), 0);
	say(app, answer);
	close(app); /* with bytes that it did not read: a reset */
	expect(client, "\r\n\r\nno");
	close(client);
	close_stage(&stage);
}

static void an_answer_that_is_torn_does_not_look_whole(void **state)
{
	struct stage stage;
	auto_free char *text = NULL;
	int client, app;
	char rest[64];

	(void)state;
	open_stage(&stage, 10);
	client = connect_to(stage.listen_fd);
	say(client, GET);
	app = accept_from(&stage);
	expect(app, "\r\n\r\n");
	say(app, "HTTP/1.1 200 OK\r\n\r\nhalf");
	text = hear(client, "half\r\n");
	tear(app);
	assert_true(recv(client, rest, sizeof(rest), 0) <= 0);
	close(client);
	close_stage(&stage);
}

static void an_answer_without_a_body_has_none_whatever_it_says(void **state)
{
	struct stage stage;
	auto_free char *text = NULL;
	int client, app;

	(void)state;
	open_stage(&stage, 10);
	client = connect_to(stage.listen_fd);
	say(client, GET);
	app = accept_from(&stage);
	expect(app, "\r\n\r\n");
	say(app, "HTTP/1.1 304 Not Modified\r\nContent-Length: 42\r\n\r\n"
		 "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil");
	expect(client, "\r\n\r\n");
	close(app);
	say(client, GET);
	app = accept_from(&stage);
	expect(app, "\r\n\r\n");
	say(app, OK);
	text = hear(client, "ok");
	assert_null(strstr(text, "evil"));
	close(client);
	close(app);
	close_stage(&stage);
}

static void a_request_is_asked_twice_only_where_that_does_no_harm(void **state)
{
	static const char *const requests[] = {
		GET, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct stage stage;
		int client, app;

		open_stage(&stage, 10);
		client = connect_to(stage.listen_fd);
		say(client, GET);
		app = accept_from(&stage);
		expect(app, "\r\n\r\n");
		say(app, OK);
		expect(client, "ok");
		say(client, requests[i]);
		expect(app, "\r\n\r\n");
		close(app);
		if (i == 0) {
			app = accept_from(&stage);
			expect(app, "\r\n\r\n");
			say(app, OK);
			expect(client, "ok");
			close(app);
		} else {
			expect(client, "HTTP/1.1 502 Bad Gateway\r\n");
		}
		close(client);
		close_stage(&stage);
	}
}

static void a_place_becomes_free_when_its_client_leaves_in_any_way(void **state)
{
	struct stage stage;
	int first, second, app;

	(void)state;
	open_stage(&stage, 1);
	first = connect_to(stage.listen_fd);
	say(first, "GET ");
	second = connect_to(stage.listen_fd);
	say(second, GET);
	tear(first);
	app = accept_from(&stage);
	expect(app, "\r\n\r\n");
	say(app, OK);
	expect(second, "ok");
	close(second);
	close(app);
	close_stage(&stage);
}

static void serve(struct stage *stage, int client)
{
	int app;

	say(client, GET);
	app = accept_from(stage);
	expect(app, "\r\n\r\n");
	say(app, OK);
	expect(client, "ok");
	close(app);
}

/* Who only holds connections open keeps nobody out. */
static void whoever_asks_for_nothing_gives_way_when_there_is_no_place(void **state)
{
	int first, second, third;
	struct stage stage;

	(void)state;
	open_stage(&stage, 2);
	first = connect_to(stage.listen_fd);
	serve(&stage, first);
	second = connect_to(stage.listen_fd);
	serve(&stage, second);
	third = connect_to(stage.listen_fd);
	serve(&stage, third);
	expect_end(first);
	serve(&stage, second);
	close(first);
	close(second);
	close(third);
	close_stage(&stage);
}

static void a_source_with_too_many_connections_is_told_so_and_then_cut(void **state)
{
	int clients[2], told[64], last;
	struct stage stage;

	(void)state;
	open_limited_stage(&stage, 1000, array_len(clients), 1000);
	for (size_t i = 0; i < array_len(clients); i++)
		clients[i] = connect_to(stage.listen_fd);
	for (size_t i = 0; i < array_len(told); i++)
		told[i] = connect_to(stage.listen_fd);
	last = connect_to(stage.listen_fd);
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
		clients[0] = connect_to(stage.listen_fd);
		say(clients[0], GET);
		if (poll(&(struct pollfd){.fd = stage.app_fd, .events = POLLIN}, 1, 100) == 0) {
			close(clients[0]);
			continue;
		}
		app = accept_from(&stage);
		expect(app, "\r\n\r\n");
		say(app, OK);
		expect(clients[0], "ok");
		close(app);
		break;
	}
	assert_int_equal(atomic_load(&stage.finds), 1);
	close(last);
	close(clients[0]);
	close(clients[1]);
	close_stage(&stage);
}

static void what_has_enough_connections_gets_no_more(void **state)
{
	int first, second, app;
	struct stage stage;

	(void)state;
	open_limited_stage(&stage, 1000, 1000, 1);
	open_tunnel(&stage, &first, &app);
	second = connect_to(stage.listen_fd);
	say(second, GET);
	expect(second, "HTTP/1.1 503 ");
	close(second);
	close(accept_from(&stage)); /* it was connected, and nothing came of it */
	close(first);
	expect_end(app);
	close(app);
	second = connect_to(stage.listen_fd);
	for (int i = 0; i < 3; i++) { /* as often as it likes: it is one connection */
		say(second, GET);
		if (i == 0)
			app = accept_from(&stage);
		expect(app, "\r\n\r\n");
		say(app, OK);
		expect(second, "ok");
	}
	close(second);
	close(app);
	close_stage(&stage);
}

/* Two that a simpler digest takes for one: whoever chooses its own key takes no places of another. */
static void keys_that_look_alike_are_counted_apart(void **state)
{
	int first, second, first_app, app;
	struct stage stage;

	(void)state;
	open_limited_stage(&stage, 1000, 1000, 1);
	first = connect_to(stage.listen_fd);
	say(first, "GET /8yn0iYCKYHlIj4-BwPqk HTTP/1.1\r\nHost: a\r\n\r\n");
	first_app = accept_from(&stage);
	expect(first_app, "\r\n\r\n");
	second = connect_to(stage.listen_fd);
	say(second, "GET /GReLUrM4wMqfg9yzV3KQ HTTP/1.1\r\nHost: a\r\n\r\n");
	app = accept_from(&stage);
	expect(app, "\r\n\r\n");
	say(app, OK);
	expect(second, "ok");
	close(app);
	close(first_app);
	close(first);
	close(second);
	close_stage(&stage);
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
	open_stage(&stage, 10);
	flood.client = connect_to(stage.listen_fd);
	say(flood.client, GET);
	flood.app = accept_from(&stage);
	expect(flood.app, "\r\n\r\n");
	say(flood.app, "HTTP/1.1 200 OK\r\n\r\n");
	assert_int_equal(pthread_create(&writer, NULL, pour, &flood), 0);
	assert_int_equal(pthread_create(&reader, NULL, drink, &flood), 0);
	for (int i = 0; i < 20; i++) {
		client = connect_to(stage.listen_fd);
		say(client, GET);
		app = accept_from(&stage);
		expect(app, "\r\n\r\n");
		say(app, OK);
		expect(client, "ok");
		close(client);
		close(app);
	}
	atomic_store(&flood.is_over, true);
	pthread_join(reader, NULL);
	close(flood.client);
	pthread_join(writer, NULL);
	close(flood.app);
	close_stage(&stage);
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
		cmocka_unit_test(a_source_with_too_many_connections_is_told_so_and_then_cut),
		cmocka_unit_test(what_has_enough_connections_gets_no_more),
		cmocka_unit_test(keys_that_look_alike_are_counted_apart),
		cmocka_unit_test(a_flood_leaves_turns_to_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
