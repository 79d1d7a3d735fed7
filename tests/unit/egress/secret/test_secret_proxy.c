/* SPDX-License-Identifier: Apache-2.0 */
/* Errands without their flow: the test is client and server, and says when something may move. */
#include "egress/secret/secret_proxy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define OWN   "Host: model.internal\r\n"
#define GIVEN "Host: api.test\r\nX-Secret: value\r\n"

struct stage {
	struct secret_cache *secret_cache;
	struct egress *egress;
	struct sandbox_egress sandbox_egress;
	struct secret_proxy *secret_proxy;
	int client[2], server[2]; /* the test's end, the secret proxy's end */
};

static int setup(void **state)
{
	static const struct secret_record record = {
		.name = "model", .url = "http://api.test", .header = "X-Secret"};
	static const struct authority inside = {.name = "model.internal", .port = SECRET_PORT};
	struct stage *stage = mem_new(sizeof(*stage));
	struct secret_server server;

	stage->secret_cache = secret_cache_new();
	assert_int_equal(secret_server_read(record.url, &server), 0);
	secret_cache_put(stage->secret_cache, &record, &server, "value");
	stage->egress = mem_new(sizeof(*stage->egress) + sizeof(stage->egress->workers[0]));
	stage->egress->config.secret_cache = stage->secret_cache;
	stage->egress->workers[0].egress = stage->egress;
	stage->sandbox_egress.worker = &stage->egress->workers[0];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, stage->client), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, stage->server), 0);
	stage->secret_proxy = secret_proxy_new(&stage->sandbox_egress, &inside,
		secret_cache_find(stage->secret_cache, &stage->sandbox_egress.owner, "model"), NULL,
		0);
	assert_int_equal(
		secret_proxy_connect(stage->secret_proxy, stage->client[1], stage->server[1]), 0);
	*state = stage;
	return 0;
}

static int teardown(void **state)
{
	struct stage *stage = *state;

	secret_proxy_free(stage->secret_proxy);
	for (int i = 0; i < 2; i++) {
		close(stage->client[i]);
		close(stage->server[i]);
	}
	free(stage->egress);
	secret_cache_free(stage->secret_cache);
	free(stage);
	return 0;
}

static enum secret_proxy_result move(struct stage *stage)
{
	struct secret_proxy_turn turn = {.budget = 1 << 20};

	return secret_proxy_move(stage->secret_proxy, &turn);
}

/* Says it, and lets it arrive. */
static enum secret_proxy_result say(struct stage *stage, int sock, const char *text)
{
	assert_int_equal(send(sock, text, strlen(text), MSG_NOSIGNAL), strlen(text));
	return move(stage);
}

static void expect(int sock, const char *text)
{
	char got[4096];
	ssize_t n = recv(sock, got, sizeof(got) - 1, 0);

	got[n > 0 ? n : 0] = '\0';
	assert_string_equal(got, text);
}

static void requests_are_given_the_secret_one_after_the_other(void **state)
{
	struct stage *stage = *state;

	for (int i = 0; i < 2; i++) {
		assert_int_equal(say(stage, stage->client[0], "GET /a HTTP/1.1\r\n" OWN "\r\n"),
			SECRET_PROXY_WAITS);
		expect(stage->server[0], "GET /a HTTP/1.1\r\n" GIVEN "\r\n");
		assert_int_equal(say(stage, stage->server[0],
					 "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
			SECRET_PROXY_WAITS);
		expect(stage->client[0], "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
	}
}

/* A server that takes a part of the next request for this one's body keeps the secret with it, or shows it. */
static void what_a_server_might_read_otherwise_or_send_back_is_refused(void **state)
{
	static const char *const requests[] = {
		"TRACE / HTTP/1.1\r\n" OWN "\r\n",
		"CONNECT /a HTTP/1.1\r\n" OWN "Content-Length: 64\r\n\r\n",
		"POST / HTTP/1.1\r\n" OWN
		"Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n",
		"POST / HTTP/1.1\r\n" OWN "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
		"POST / HTTP/1.0\r\n" OWN "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"GET /a/..# HTTP/1.1\r\n" OWN "\r\n",
		"GET /..#/b HTTP/1.1\r\n" OWN "\r\n",
		"GET /a#b?c HTTP/1.1\r\n" OWN "\r\n",
		"GET /a?b#c HTTP/1.1\r\n" OWN "\r\n",
		"GET http://model.internal/..# HTTP/1.1\r\n" OWN "\r\n",
	};

	for (size_t i = 0; i < array_len(requests); i++) {
		struct stage *stage = *state;

		if (say(stage, stage->client[0], requests[i]) != SECRET_PROXY_REFUSED)
			fail_msg("not refused: %s", requests[i]);
		expect(stage->server[0], "");
		teardown(state);
		setup(state);
	}
}

/* Its client would ask for others there too. */
static void a_connection_to_the_proxy_is_not_kept(void **state)
{
	struct stage *stage = *state;

	assert_int_equal(
		say(stage, stage->client[0], "GET http://model.internal/a HTTP/1.1\r\n" OWN "\r\n"),
		SECRET_PROXY_WAITS);
	expect(stage->server[0], "GET /a HTTP/1.1\r\n" GIVEN "Connection: close\r\n\r\n");
	assert_int_equal(
		say(stage, stage->server[0], "HTTP/1.1 204 None\r\n\r\n"), SECRET_PROXY_OVER);
	expect(stage->client[0], "HTTP/1.1 204 None\r\nConnection: close\r\n\r\n");
}

static void who_leaves_before_the_answer_is_noticed(void **state)
{
	struct stage *stage = *state;

	assert_int_equal(
		say(stage, stage->client[0], "GET /a HTTP/1.1\r\n" OWN "\r\n"), SECRET_PROXY_WAITS);
	assert_false(secret_proxy_is_half_open(stage->secret_proxy));
	shutdown(stage->client[0], SHUT_WR);
	assert_int_equal(move(stage), SECRET_PROXY_WAITS);
	assert_true(secret_proxy_is_half_open(stage->secret_proxy));
	assert_int_equal(
		say(stage, stage->server[0], "HTTP/1.1 204 None\r\n\r\n"), SECRET_PROXY_OVER);
	expect(stage->client[0], "HTTP/1.1 204 None\r\n\r\n");
}

/* With something unread, which tells the other side that nobody will. */
static void who_tears_the_connection_ends_the_request_at_once(void **state)
{
	struct stage *stage = *state;

	assert_int_equal(
		say(stage, stage->client[0], "GET /a HTTP/1.1\r\n" OWN "\r\n"), SECRET_PROXY_WAITS);
	assert_int_equal(
		say(stage, stage->server[0], "HTTP/1.1 100 Continue\r\n\r\n"), SECRET_PROXY_WAITS);
	close(stage->client[0]);
	assert_int_equal(move(stage), SECRET_PROXY_BROKEN);
	stage->client[0] = -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			requests_are_given_the_secret_one_after_the_other, setup, teardown),
		cmocka_unit_test_setup_teardown(
			what_a_server_might_read_otherwise_or_send_back_is_refused, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			a_connection_to_the_proxy_is_not_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(
			who_leaves_before_the_answer_is_noticed, setup, teardown),
		cmocka_unit_test_setup_teardown(
			who_tears_the_connection_ends_the_request_at_once, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
