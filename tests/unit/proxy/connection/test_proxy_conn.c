/* SPDX-License-Identifier: Apache-2.0 */
/* How long a proxy connection waits, and for whom. Where a time is to be over it is a millisecond: the loop looks each second. */
#include "proxy_stage.h"

#include "base/fd.h"
#include "base/mem.h"
#include "proxy/connection/proxy_conn_answer.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define LONG_MS	   600000
#define MEMORY_MAX (64u << 20) /* far more than the buffers of the kernel and ours together */

#define WEBSOCKET "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"

static void open_stage(
	struct stage *stage, uint64_t answer_ms, uint64_t stall_ms, uint64_t quiet_ms)
{
	stage_init(stage, 10);
	stage->config.answer_ms = answer_ms;
	stage->config.stall_ms = stall_ms;
	stage->config.quiet_ms = quiet_ms;
	stage_start(stage);
}

/* A client whose request has reached the app. */
static int ask(struct stage *stage, const char *request, int *ret_app)
{
	int client = stage_connect(stage);

	say(client, request);
	*ret_app = stage_accept(stage);
	expect(*ret_app, "\r\n\r\n");
	return client;
}

static void leave(struct stage *stage, int client, int app)
{
	close(client);
	close(app);
	stage_close(stage);
}

static void an_app_that_hangs_is_given_up_in_words(void **state)
{
	static const struct {
		const char *request, *type;
	} cases[] = {
		{GET, "Content-Type: text/plain\r\n"},
		{"GET / HTTP/1.1\r\nHost: a\r\nAccept: text/html\r\n\r\n",
			"Content-Type: text/html\r\n"},
	};

	(void)state;
	for (size_t i = 0; i < array_len(cases); i++) {
		struct stage stage;
		int app, client;

		open_stage(&stage, 1, LONG_MS, LONG_MS);
		client = ask(&stage, cases[i].request, &app);
		say(app, "HTTP/1.1 200"); /* is no answer yet */
		expect(client, "HTTP/1.1 504 Gateway Timeout\r\n");
		expect(client, cases[i].type);
		expect(client, "answer_timeout: ");
		expect_end(app);
		leave(&stage, client, app);
	}
}

static void a_client_that_does_not_finish_its_request_is_told_so(void **state)
{
	struct stage stage;
	int app, client;

	(void)state;
	open_stage(&stage, 1, LONG_MS, LONG_MS);
	client = ask(&stage, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n", &app);
	expect(client, "HTTP/1.1 408 Request Timeout\r\n");
	expect_end(app);
	leave(&stage, client, app);
}

/* Writes until nobody takes more for a while, or the other side is gone; how much went. */
static size_t pour(int sock)
{
	static const char block[65536];
	size_t sum = 0;

	assert_int_equal(fd_set_timeout(sock, 500), 0);
	for (ssize_t n; (n = send(sock, block, sizeof(block), MSG_NOSIGNAL)) > 0;)
		sum += (size_t)n;
	assert_int_equal(fd_set_timeout(sock, DEADLINE_MS), 0);
	return sum;
}

static void an_app_that_takes_no_body_is_given_up_in_words(void **state)
{
	struct stage stage;
	int app, client;

	(void)state;
	open_stage(&stage, LONG_MS, 1, LONG_MS);
	client = ask(
		&stage, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 900000000\r\n\r\n", &app);
	assert_true(pour(client) > 0); /* also what is thrown away behind the answer */
	expect(client, "HTTP/1.1 504 Gateway Timeout\r\n");
	leave(&stage, client, app);
}

static void a_client_that_takes_no_answer_is_cut_and_costs_little_until_then(void **state)
{
	struct stage stage;
	int app, client;
	char byte;

	(void)state;
	open_stage(&stage, LONG_MS, 1, LONG_MS);
	client = ask(&stage, GET, &app);
	say(app, "HTTP/1.1 200 OK\r\n\r\n");
	assert_in_range(pour(app), 1, MEMORY_MAX);
	/* With what it did not take: a reset, or the end. */
	assert_true(recv(app, &byte, 1, 0) == 0 || errno == ECONNRESET);
	leave(&stage, client, app);
}

static void an_answer_that_falls_silent_is_cut(void **state)
{
	struct stage stage;
	int app, client;

	(void)state;
	open_stage(&stage, LONG_MS, LONG_MS, 1);
	client = ask(&stage, GET, &app);
	say(app, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
	expect(client, "\r\n\r\nhalf");
	expect_end(client);
	expect_end(app);
	leave(&stage, client, app);
}

static void an_answer_that_comes_slowly_passes(void **state)
{
	const struct timespec pause = {.tv_sec = 1};
	struct stage stage;
	int app, client;

	(void)state;
	open_stage(&stage, 4000, 4000, 4000);
	client = ask(&stage, GET, &app);
	for (int i = 0; i < 3; i++) {
		say(app, i == 0	  ? "HTTP/1.1 200 OK\r\n"
			 : i == 1 ? "Content-Length: 3"
				  : "\r\n\r\n");
		nanosleep(&pause, NULL);
	}
	for (int i = 0; i < 3; i++) {
		say(app, "x");
		nanosleep(&pause, NULL);
	}
	expect(client, "\r\n\r\nxxx");
	leave(&stage, client, app);
}

static void a_websocket_may_say_nothing_for_longer_than_an_answer(void **state)
{
	int app, client, other, other_app;
	struct stage stage;

	(void)state;
	open_stage(&stage, 1, 1, LONG_MS);
	client = ask(&stage, WEBSOCKET, &app);
	say(app, "HTTP/1.1 101 Go\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
	expect(client, "\r\n\r\n");
	for (int i = 0; i < 2; i++) { /* the times of these are over meanwhile */
		other = ask(&stage, GET, &other_app);
		expect(other, "HTTP/1.1 504 ");
		close(other);
		close(other_app);
	}
	say(app, "hello");
	expect(client, "hello");
	say(client, "and you");
	expect(app, "and you");
	leave(&stage, client, app);
}

static void a_websocket_whose_client_takes_nothing_is_cut(void **state)
{
	struct stage stage;
	int app, client;
	char byte;

	(void)state;
	open_stage(&stage, LONG_MS, 1, LONG_MS);
	client = ask(&stage, WEBSOCKET, &app);
	say(app, "HTTP/1.1 101 Go\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
	expect(client, "\r\n\r\n");
	assert_in_range(pour(app), 1, MEMORY_MAX);
	assert_true(recv(app, &byte, 1, 0) == 0 || errno == ECONNRESET);
	leave(&stage, client, app);
}

/* On a stage it would have to send faster than the loop reads, which no machine promises. */
static void what_comes_behind_the_last_answer_is_dropped_in_turns(void **state)
{
	struct proxy_config config = {0};
	struct proxy_conn conn = {
		.config = &config, .state = PROXY_CONN_LAST, .has_said_end = true};
	static const struct buffered_socket_limits limits = {65536, 65536, 65536};
	static const char block[65536];
	int pair[2], waiting = 0;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	buffered_socket_init(&conn.client, &conn, pair[0], &limits);
	conn.client.is_readable = true;
	while (send(pair[1], block, sizeof(block), MSG_NOSIGNAL) > 0)
		;
	assert_true(proxy_conn_answer_move(&conn));
	assert_int_equal(ioctl(pair[0], FIONREAD, &waiting), 0);
	assert_true(waiting > 0);
	while (proxy_conn_answer_move(&conn))
		;
	assert_int_equal(ioctl(pair[0], FIONREAD, &waiting), 0);
	assert_int_equal(waiting, 0);
	buf_fini(&conn.client.in);
	close(pair[0]);
	close(pair[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_app_that_hangs_is_given_up_in_words),
		cmocka_unit_test(a_client_that_does_not_finish_its_request_is_told_so),
		cmocka_unit_test(an_app_that_takes_no_body_is_given_up_in_words),
		cmocka_unit_test(a_client_that_takes_no_answer_is_cut_and_costs_little_until_then),
		cmocka_unit_test(an_answer_that_falls_silent_is_cut),
		cmocka_unit_test(an_answer_that_comes_slowly_passes),
		cmocka_unit_test(a_websocket_may_say_nothing_for_longer_than_an_answer),
		cmocka_unit_test(a_websocket_whose_client_takes_nothing_is_cut),
		cmocka_unit_test(what_comes_behind_the_last_answer_is_dropped_in_turns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
