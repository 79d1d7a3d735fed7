/* SPDX-License-Identifier: Apache-2.0 */
/* Connections: many requests on one, and more than there are places for. */
#include "http_fixture.h"

#include "base/mem.h"
#include "deadline.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* A connection that has served a request with this token, and waits for the next. */
static int connect_known(const struct fixture *fixture, const char *token)
{
	int fd = client_connect(fixture->port);
	struct reply reply;
	char header[128];

	snprintf(header, sizeof(header), "X-API-Key: %s\r\n", token);
	client_request(fd, fixture->port, "GET /echo/known", header, NULL);
	client_receive(fd, &reply, true);
	assert_int_equal(reply.status, 200);
	reply_fini(&reply);
	return fd;
}

static void a_connection_serves_many_requests(void **state)
{
	static const char *const lines[] = {
		"GET /plain", "GET /none", "GET /echo/x", "POST /thing"};
	static const int statuses[] = {200, 404, 401, 405};
	struct fixture *fixture = *state;
	int fd = connect_known(fixture, TOKEN);

	for (int i = 0; i < 200; i++) {
		struct reply reply;

		/* Small bodies of refused requests are dropped, so that the connection stays
		 * usable, once somebody has shown a token on it. */
		client_request(fd, fixture->port, lines[i % 4], NULL, i % 8 < 4 ? NULL : "dropped");
		client_receive(fd, &reply, true);
		assert_int_equal(reply.status, i % 8 == 4 ? 400 : statuses[i % 4]);
		reply_fini(&reply);
	}
	close(fd);
}

static void pipelined_requests_are_answered_in_order(void **state)
{
	struct fixture *fixture = *state;
	int fd = client_connect(fixture->port);

	for (int i = 0; i < 50; i++) {
		char line[64];

		snprintf(line, sizeof(line), "GET /echo/%d", i);
		client_request(fd, fixture->port, line, WITH_TOKEN, NULL);
		client_request(fd, fixture->port, "POST /json", WITH_JSON, "{\"a\":1}");
	}
	for (int i = 0; i < 50; i++) {
		struct reply reply;
		char want[64];

		client_receive(fd, &reply, true);
		snprintf(want, sizeof(want), "\"name\":\"%d\"", i);
		assert_non_null(strstr(reply.body, want));
		reply_fini(&reply);
		client_receive(fd, &reply, true);
		assert_string_equal(reply.body, "{\"a\":1}");
		reply_fini(&reply);
	}
	close(fd);
}

/* As many events at once as the library's array holds made its own threads stand still. */
static void waves_of_requests_on_many_connections_are_all_answered(void **state)
{
	enum { CLIENTS = 256, WAVES = 20 };
	struct fixture *fixture = *state;
	int fds[CLIENTS];

	for (int i = 0; i < CLIENTS; i++)
		fds[i] = client_connect(fixture->port);
	for (int wave = 0; wave < WAVES; wave++) {
		for (int i = 0; i < CLIENTS; i++)
			client_request(fds[i], fixture->port, "GET /plain", NULL, NULL);
		for (int i = 0; i < CLIENTS; i++) {
			struct reply reply;

			client_receive(fds[i], &reply, true);
			assert_int_equal(reply.status, 200);
			reply_fini(&reply);
		}
	}
	for (int i = 0; i < CLIENTS; i++)
		close(fds[i]);
}

/* Takes replies, which must have this status, until there are as many as wanted. */
static unsigned collect(struct pollfd *clients, size_t count, int status, unsigned want)
{
	unsigned got = 0;

	while (got < want) {
		assert_true(poll(clients, count, DEADLINE_MS) > 0);
		for (size_t i = 0; i < count; i++) {
			struct reply reply;
			char value[256];

			if (!(clients[i].revents & POLLIN))
				continue;
			client_receive(clients[i].fd, &reply, true);
			assert_int_equal(reply.status, status);
			if (status == 503)
				assert_string_equal(
					reply_header(&reply, "Retry-After", value), "1");
			reply_fini(&reply);
			close(clients[i].fd);
			clients[i].fd = -1;
			got++;
		}
	}
	return got;
}

static void requests_beyond_the_queue_get_503(void **state)
{
	enum { WAITING = 16, REFUSED = 3, CLIENTS = 1 + WAITING + REFUSED };
	struct pollfd clients[CLIENTS];
	struct fixture fixture;

	(void)state;
	fixture_open(&fixture, 1, 0);
	for (int i = 0; i < CLIENTS; i++) {
		clients[i] = (struct pollfd){client_connect(fixture.port), POLLIN, 0};
		client_request(clients[i].fd, fixture.port, "GET /block", WITH_TOKEN, NULL);
		fixture_wait(&fixture, &fixture.entered, 1);
	}
	/* The refused ones are answered while the others wait. */
	assert_int_equal(collect(clients, CLIENTS, 503, REFUSED), REFUSED);
	fixture_let_go(&fixture, 1 + WAITING);
	assert_int_equal(collect(clients, CLIENTS, 200, 1 + WAITING), 1 + WAITING);
	fixture_close(&fixture);
}

/* One whose handler runs. */
static int connect_busy(struct fixture *fixture, const char *token)
{
	unsigned entered = fixture->entered;
	int fd = client_connect(fixture->port);
	char header[128];

	snprintf(header, sizeof(header), "X-API-Key: %s\r\n", token);
	client_request(fd, fixture->port, "GET /block", header, NULL);
	fixture_wait(fixture, &fixture->entered, entered + 1);
	return fd;
}

static void expect_status(int fd, int status)
{
	struct reply reply;

	client_receive(fd, &reply, true);
	assert_int_equal(reply.status, status);
	reply_fini(&reply);
	close(fd);
}

/* The status that somebody with this token gets on a connection of its own. */
static int status_with(struct fixture *fixture, const char *token)
{
	char header[128];

	snprintf(header, sizeof(header), "X-API-Key: %s\r\n", token);
	return fixture_call(fixture, "GET /echo/x", header, NULL);
}

enum {
	ALL = 16,
	EACH = 4,
	STRANGERS = 4,
	OWNERS = 11
}; /* places: a quarter of them, and one is the operator's */

static void one_owner_cannot_take_all_connections(void **state)
{
	struct fixture fixture;
	int busy[EACH], late;
	struct reply reply;
	char value[256];

	(void)state;
	fixture_open(&fixture, 0, ALL);
	for (size_t i = 0; i < array_len(busy); i++)
		busy[i] = connect_busy(&fixture, TOKEN);
	late = client_connect(fixture.port);
	client_request(late, fixture.port, "GET /echo/x", WITH_TOKEN, NULL);
	client_receive(late, &reply, true);
	assert_int_equal(reply.status, 429);
	assert_non_null(strstr(reply.body, "too_many_connections"));
	assert_string_equal(reply_header(&reply, "Connection", value), "close");
	reply_fini(&reply);
	assert_true(client_sees_close(late));
	close(late);
	assert_int_equal(status_with(&fixture, OTHER_TOKEN), 200);
	assert_int_equal(status_with(&fixture, OPERATOR_TOKEN), 200);
	fixture_let_go(&fixture, array_len(busy));
	for (size_t i = 0; i < array_len(busy); i++)
		expect_status(busy[i], 200);
	fixture_close(&fixture);
}

static void the_last_connections_are_the_operators(void **state)
{
	static const char *const owners[] = {OWNER_TOKEN "a", OWNER_TOKEN "b", OWNER_TOKEN "c"};
	struct fixture fixture;
	int busy[OWNERS];

	(void)state;
	fixture_open(&fixture, 0, ALL);
	for (size_t i = 0; i < array_len(busy); i++)
		busy[i] = connect_busy(&fixture, owners[i % 3]);
	assert_int_equal(status_with(&fixture, OWNER_TOKEN "d"), 503);
	assert_int_equal(status_with(&fixture, OPERATOR_TOKEN), 200);
	fixture_let_go(&fixture, array_len(busy));
	for (size_t i = 0; i < array_len(busy); i++)
		expect_status(busy[i], 200);
	assert_int_equal(status_with(&fixture, OWNER_TOKEN "d"), 200);
	fixture_close(&fixture);
}

/* Whoever keeps connections for later loses them to whoever has something to ask: of its own first. */
static void idle_connections_give_way_to_requests(void **state)
{
	static const char *const owners[] = {OWNER_TOKEN "a", OWNER_TOKEN "b", OWNER_TOKEN "c"};
	int idle[OWNERS], more[EACH];
	struct fixture fixture;

	(void)state;
	fixture_open(&fixture, 0, ALL);
	for (size_t i = 0; i < array_len(idle); i++)
		idle[i] = connect_known(&fixture, owners[i % 3]);
	for (size_t i = 0; i < array_len(more); i++)
		more[i] = connect_known(&fixture, OWNER_TOKEN "d");
	assert_int_equal(status_with(&fixture, OWNER_TOKEN "d"), 200);
	assert_int_equal(status_with(&fixture, OWNER_TOKEN "a"), 200);
	for (size_t i = 0; i < array_len(idle); i++)
		close(idle[i]);
	for (size_t i = 0; i < array_len(more); i++)
		close(more[i]);
	fixture_close(&fixture);
}

static void the_stranger_that_is_there_for_the_longest_gives_way(void **state)
{
	int slow, idle[STRANGERS - 1], late;
	struct fixture fixture;

	(void)state;
	fixture_open(&fixture, 0, ALL);
	slow = client_connect(fixture.port);
	client_print(slow, "GET /plain HTTP/1.1\r\nHost: ");
	usleep(5000); /* idle times are counted in milliseconds */
	for (size_t i = 0; i < array_len(idle); i++)
		idle[i] = fixture_connect_idle(&fixture);
	late = client_connect(fixture.port);
	client_request(late, fixture.port, "GET /plain", NULL, NULL);
	expect_status(late, 200);
	assert_true(client_sees_close(slow));
	for (size_t i = 0; i < array_len(idle); i++) {
		client_request(idle[i], fixture.port, "GET /plain", NULL, NULL);
		expect_status(idle[i], 200);
	}
	close(slow);
	fixture_close(&fixture);
}

static void of_strangers_the_address_with_the_most_gives_way(void **state)
{
	int few, many[STRANGERS - 1], late;
	struct fixture fixture;
	struct reply reply;

	(void)state;
	fixture_open(&fixture, 0, ALL);
	few = client_connect_from("127.0.0.2", fixture.port);
	client_request(few, fixture.port, "GET /plain", NULL, NULL);
	client_receive(few, &reply, true);
	reply_fini(&reply);
	for (size_t i = 0; i < array_len(many); i++)
		many[i] = fixture_connect_idle(&fixture);
	late = client_connect_from("127.0.0.3", fixture.port);
	client_request(late, fixture.port, "GET /echo/x", WITH_TOKEN, NULL);
	expect_status(late, 200);
	client_request(few, fixture.port, "GET /plain", NULL, NULL);
	expect_status(few, 200);
	for (size_t i = 0; i < array_len(many); i++)
		close(many[i]);
	fixture_close(&fixture);
}

/* Their headers tell that they may not, so nobody waits for what they announce. */
static void strangers_that_announce_a_body_are_refused_at_once(void **state)
{
	static const char *const credentials[] = {"", "X-API-Key: slt_wrong\r\n"};
	static const char *const routes[] = {"POST /json", "PUT /read", "PUT /upload"};
	struct fixture fixture;
	int crowd[3 * ALL];

	(void)state;
	fixture_open(&fixture, 0, ALL);
	for (size_t i = 0; i < array_len(crowd); i++) {
		struct reply reply;

		crowd[i] = client_connect_from(i % 2 ? "127.0.0.1" : "127.0.0.2", fixture.port);
		client_print(crowd[i],
			"%s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n%sContent-Type: application/json\r\n"
			"Content-Length: 100\r\n\r\n",
			routes[i % 3], fixture.port, credentials[i / 3 % 2]);
		client_receive(crowd[i], &reply, true);
		assert_int_equal(reply.status, 401);
		reply_fini(&reply);
	}
	assert_int_equal(status_with(&fixture, TOKEN), 200);
	assert_int_equal(status_with(&fixture, OPERATOR_TOKEN), 200);
	/* Those that stay do not stay for long. */
	for (size_t i = 0; i < array_len(crowd); i++) {
		assert_true(client_sees_close(crowd[i]));
		close(crowd[i]);
	}
	fixture_close(&fixture);
}

#define server_test(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		server_test(a_connection_serves_many_requests),
		server_test(pipelined_requests_are_answered_in_order),
		server_test(waves_of_requests_on_many_connections_are_all_answered),
		cmocka_unit_test(requests_beyond_the_queue_get_503),
		cmocka_unit_test(one_owner_cannot_take_all_connections),
		cmocka_unit_test(the_last_connections_are_the_operators),
		cmocka_unit_test(idle_connections_give_way_to_requests),
		cmocka_unit_test(the_stranger_that_is_there_for_the_longest_gives_way),
		cmocka_unit_test(of_strangers_the_address_with_the_most_gives_way),
		cmocka_unit_test(strangers_that_announce_a_body_are_refused_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
