/* SPDX-License-Identifier: Apache-2.0 */
/* Connections: many requests on one, and more than there are places for. */
#include "http_fixture.h"

#include "base/mem.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void a_connection_serves_many_requests(void **state)
{
	static const char *const lines[] = {
		"GET /plain", "GET /none", "GET /echo/x", "POST /thing"};
	static const int statuses[] = {200, 404, 401, 405};
	struct fixture *fixture = *state;
	int fd = client_connect(fixture->port);

	for (int i = 0; i < 200; i++) {
		struct reply reply;

		/* Small bodies of refused requests are dropped, so that the connection stays
		 * usable. */
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
		assert_true(poll(clients, count, 10000) > 0);
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
static int connect_busy(struct fixture *fixture)
{
	unsigned entered = fixture->entered;
	int fd = client_connect(fixture->port);

	client_request(fd, fixture->port, "GET /block", WITH_TOKEN, NULL);
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

static void connections_beyond_the_maximum_wait_for_their_turn(void **state)
{
	struct fixture fixture;
	struct pollfd third;
	int first, second;

	(void)state;
	fixture_open(&fixture, 0, 2);
	first = connect_busy(&fixture);
	second = connect_busy(&fixture);
	third = (struct pollfd){client_connect(fixture.port), POLLIN, 0};
	client_request(third.fd, fixture.port, "GET /plain", NULL, NULL);
	assert_int_equal(poll(&third, 1, 50), 0);
	fixture_let_go(&fixture, 2);
	expect_status(first, 200);
	expect_status(third.fd, 200);
	expect_status(second, 200);
	fixture_close(&fixture);
}

static void the_connection_that_is_idle_for_the_longest_gives_way(void **state)
{
	struct fixture fixture;
	int slow, busy, idle, late;

	(void)state;
	fixture_open(&fixture, 0, 3);
	slow = client_connect(fixture.port);
	client_print(slow, "GET /plain HTTP/1.1\r\nHost: ");
	busy = connect_busy(&fixture);
	usleep(5000); /* idle times are counted in milliseconds */
	idle = fixture_connect_idle(&fixture);
	late = client_connect(fixture.port);
	client_request(late, fixture.port, "GET /plain", NULL, NULL);
	expect_status(late, 200);
	assert_true(client_sees_close(slow));
	fixture_let_go(&fixture, 1);
	expect_status(busy, 200);
	client_request(idle, fixture.port, "GET /plain", NULL, NULL);
	expect_status(idle, 200);
	close(slow);
	fixture_close(&fixture);
}

static void one_source_cannot_take_all_connections(void **state)
{
	struct fixture fixture;
	int busy[3], fourth, other;

	(void)state;
	fixture_open(&fixture, 0, 4); /* of which a source may have three */
	for (size_t i = 0; i < array_len(busy); i++)
		busy[i] = connect_busy(&fixture);
	fourth = client_connect(fixture.port);
	assert_true(client_sees_close(fourth));
	other = client_connect_from("127.0.0.2", fixture.port);
	client_request(other, fixture.port, "GET /plain", NULL, NULL);
	expect_status(other, 200);
	fixture_let_go(&fixture, array_len(busy));
	for (size_t i = 0; i < array_len(busy); i++)
		expect_status(busy[i], 200);
	/* The places are free again. */
	for (size_t i = 0; i < array_len(busy); i++)
		busy[i] = connect_busy(&fixture);
	fixture_let_go(&fixture, array_len(busy));
	for (size_t i = 0; i < array_len(busy); i++)
		expect_status(busy[i], 200);
	close(fourth);
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
		cmocka_unit_test(connections_beyond_the_maximum_wait_for_their_turn),
		cmocka_unit_test(the_connection_that_is_idle_for_the_longest_gives_way),
		cmocka_unit_test(one_source_cannot_take_all_connections),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
