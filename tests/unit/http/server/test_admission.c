/* SPDX-License-Identifier: Apache-2.0 */
/* Who is let in, and what becomes of those inside when their token ends. */
#include "base/clock.h"
#include "http/server/connection.h"
#include "http_fixture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define WITH_OTHER "X-API-Key: " OTHER_TOKEN "\r\n"

static void one_gate_stands_before_every_route_that_is_not_open(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(fixture_call(fixture, "GET /denied", WITH_TOKEN, NULL), 403);
	assert_int_equal(fixture_call(fixture, "GET /denied", "X-API-Key: wrong\r\n", NULL), 403);
	assert_int_equal(fixture->admitted, 2);
	assert_int_equal(fixture_call(fixture, "GET /echo/x", WITH_TOKEN, NULL), 200);
	assert_int_equal(fixture->admitted, 3);
	assert_int_equal(fixture_call(fixture, "GET /plain", WITH_TOKEN, NULL), 200);
	assert_int_equal(fixture->admitted, 3); /* that one is open */
}

static void a_token_in_the_query_is_refused_whatever_else_is_sent(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(fixture_call(fixture, "GET /echo/x?token=" TOKEN, NULL, NULL), 401);
	assert_int_equal(
		fixture_call(fixture, "GET /echo/x?access_token=" TOKEN, WITH_TOKEN, NULL), 401);
	assert_int_equal(
		fixture_call(fixture, "GET /echo/x?api_key=" TOKEN, WITH_TOKEN, NULL), 401);
	assert_int_equal(fixture_call(fixture, "GET /ticket?token=" TOKEN, NULL, NULL), 401);
	assert_int_equal(fixture->admitted, 0);
}

static void a_ticket_is_taken_only_where_the_route_takes_one_and_alone(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(fixture_call(fixture, "GET /ticket?ticket=" TOKEN, NULL, NULL), 200);
	assert_int_equal(fixture_call(fixture, "GET /ticket?ticket=wrong", NULL, NULL), 401);
	assert_int_equal(fixture_call(fixture, "GET /ticket?ticket=", NULL, NULL), 401);
	assert_int_equal(fixture_call(fixture, "GET /ticket", WITH_TOKEN, NULL), 200);
	assert_int_equal(fixture_call(fixture, "GET /ticket?ticket=" TOKEN, WITH_TOKEN, NULL), 400);
	assert_int_equal(fixture_call(fixture, "GET /echo/x?ticket=" TOKEN, NULL, NULL), 401);
}

/* --- the end of a token --- */

static int open_stream(struct fixture *fixture, const char *token)
{
	unsigned before;
	int fd = client_connect(fixture->port);

	pthread_mutex_lock(&fixture->lock);
	before = fixture->entered;
	pthread_mutex_unlock(&fixture->lock);
	client_request(fd, fixture->port, "GET /stream", token, NULL);
	fixture_wait(fixture, &fixture->entered, before + 1);
	return fd;
}

static void an_evicted_token_loses_its_streams_and_no_other_does(void **state)
{
	struct fixture *fixture = *state;
	int stream = open_stream(fixture, WITH_TOKEN);
	int hold = client_connect(fixture->port);
	int other = client_connect(fixture->port);
	struct reply reply;

	client_request(hold, fixture->port, "GET /hold", WITH_TOKEN, NULL);
	fixture_wait(fixture, &fixture->entered, 2);
	client_request(other, fixture->port, "GET /block", WITH_OTHER, NULL);
	fixture_wait(fixture, &fixture->entered, 3);
	assert_int_equal(fixture_call(fixture, "DELETE /token/one", WITH_OTHER, NULL), 204);
	assert_true(client_sees_close(stream));
	assert_true(client_sees_close(hold));
	fixture_wait(fixture, &fixture->gone, 2); /* the producer, and who held */
	request_release(fixture->held);
	fixture_let_go(fixture, 1);
	client_receive(other, &reply, true);
	assert_int_equal(reply.status, 200);
	reply_fini(&reply);
	close(stream);
	close(hold);
	close(other);
}

static void whoever_evicts_itself_still_gets_the_answer(void **state)
{
	struct fixture *fixture = *state;
	int stream = open_stream(fixture, WITH_TOKEN);

	assert_int_equal(fixture_call(fixture, "DELETE /token/one", WITH_TOKEN, NULL), 204);
	assert_true(client_sees_close(stream));
	close(stream);
}

static void a_stream_ends_when_its_token_expires(void **state)
{
	struct fixture *fixture = *state;
	int stream;

	atomic_store(&fixture->expires_at_ms, clock_wall_ms() + 300);
	stream = open_stream(fixture, WITH_TOKEN);
	assert_true(client_sees_close(stream));
	fixture_wait(fixture, &fixture->gone, 1);
	close(stream);
}

/* Evictions and admissions at once: whoever was let in before is cut, by one way or the other. */
static void *evict_often(void *arg)
{
	struct fixture *fixture = arg;

	for (int i = 0; i < 50; i++)
		if (fixture_call(fixture, "DELETE /token/one", WITH_OTHER, NULL) != 204)
			return arg;
	return NULL;
}

static void admissions_and_evictions_cross_without_harm(void **state)
{
	struct fixture *fixture = *state;
	void *failed;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, evict_often, fixture), 0);
	for (int i = 0; i < 100; i++) {
		int status = fixture_call(fixture, "GET /echo/x", WITH_TOKEN, NULL);

		assert_true(status == 200 || status == 0);
	}
	pthread_join(thread, &failed);
	assert_null(failed);
	assert_int_equal(fixture_call(fixture, "GET /echo/x", WITH_TOKEN, NULL), 200);
}

/* --- wrong tokens --- */

static int connect_from(uint16_t port, const char *source)
{
	struct sockaddr_in from = {.sin_family = AF_INET};
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	inet_pton(AF_INET, source, &from.sin_addr);
	inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
	assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof(from)), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

static int ask(struct fixture *fixture, int fd, const char *extra, unsigned *ret_wait_s)
{
	struct reply reply;
	char value[256];
	const char *text;
	int status;

	client_request(fd, fixture->port, "GET /echo/x", extra, NULL);
	client_receive(fd, &reply, true);
	status = reply.status;
	text = reply_header(&reply, "Retry-After", value);
	*ret_wait_s = text ? (unsigned)strtoul(text, NULL, 10) : 0;
	reply_fini(&reply);
	return status;
}

static void wrong_tokens_are_429_in_the_end_for_their_source_alone(void **state)
{
	struct fixture *fixture = *state;
	int bad = connect_from(fixture->port, "127.0.0.66");
	int good = connect_from(fixture->port, "127.0.0.67");
	unsigned wait_s = 0;
	int status = 401, count = 0;

	while (status == 401 && count++ < 100 * SERVER_FAILURES)
		status = ask(fixture, bad, "X-API-Key: wrong\r\n", &wait_s);
	assert_int_equal(status, 429);
	assert_true(count > SERVER_FAILURES);
	assert_true(wait_s >= 1);
	/* Another source, and a good token of the same. */
	assert_int_equal(ask(fixture, good, "X-API-Key: wrong\r\n", &wait_s), 401);
	assert_int_equal(ask(fixture, bad, WITH_TOKEN, &wait_s), 200);
	close(bad);
	close(good);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	static const struct CMUnitTest tests[] = {
		TEST(one_gate_stands_before_every_route_that_is_not_open),
		TEST(a_token_in_the_query_is_refused_whatever_else_is_sent),
		TEST(a_ticket_is_taken_only_where_the_route_takes_one_and_alone),
		TEST(an_evicted_token_loses_its_streams_and_no_other_does),
		TEST(whoever_evicts_itself_still_gets_the_answer),
		TEST(a_stream_ends_when_its_token_expires),
		TEST(admissions_and_evictions_cross_without_harm),
		TEST(wrong_tokens_are_429_in_the_end_for_their_source_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
