/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of requests: what they must say they are, how they are read, and how large they may be. */
#include "http/server/route/guard.h"
#include "http_fixture.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static void a_json_body_must_say_what_it_is(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(fixture_call(fixture, "POST /json", WITH_JSON, "{}"), 200);
	assert_int_equal(fixture_call(fixture, "POST /json", WITH_TOKEN, NULL), 200);
	assert_int_equal(fixture_call(fixture, "POST /json", WITH_TOKEN, ""), 200);
	assert_int_equal(
		fixture_call(fixture, "POST /json",
			WITH_TOKEN "Content-Type: Application/JSON; charset=UTF-8\r\n", "{}"),
		200);
	assert_int_equal(fixture_call(fixture, "POST /json", WITH_TOKEN, "{}"), 415);
	assert_int_equal(fixture_call(fixture, "POST /json",
				 WITH_TOKEN "Content-Type: text/plain\r\n", "{}"),
		415);
	assert_int_equal(
		fixture_call(fixture, "POST /json",
			WITH_TOKEN "Content-Type: application/json; charset=latin1\r\n", "{}"),
		415);
	assert_int_equal(fixture_call(fixture, "POST /json",
				 WITH_TOKEN "Content-Type: application/jsonx\r\n", "{}"),
		415);
	assert_int_equal(
		fixture_call(fixture, "POST /json", WITH_JSON "Content-Encoding: gzip\r\n", "{}"),
		415);
	assert_int_equal(fixture_call(fixture, "POST /json",
				 WITH_JSON "Content-Encoding: identity\r\n", "{}"),
		200);
	assert_int_equal(fixture_call(fixture, "GET /echo/x", WITH_JSON, ""), 200);
}

static void a_route_without_fields_takes_an_empty_object_and_nothing_else(void **state)
{
	static const char *const bad[] = {"{\"a\":1}", "[]", "null", "{", "{}{}"};
	struct fixture *fixture = *state;
	char body[GUARD_EMPTY_MAX + 2];

	memset(body, ' ', sizeof(body));
	memcpy(body, "{}", 2);
	body[GUARD_EMPTY_MAX] = '\0';
	assert_int_equal(fixture_call(fixture, "DELETE /thing", WITH_JSON, "{}"), 204);
	assert_int_equal(fixture_call(fixture, "GET /echo/x", WITH_JSON, "{}"), 200);
	assert_int_equal(fixture_call(fixture, "GET /echo/x", WITH_JSON, body), 200);
	assert_int_equal(fixture_call(fixture, "GET /plain", WITH_JSON, " { } "), 200);
	for (size_t i = 0; i < array_len(bad); i++)
		assert_int_equal(fixture_call(fixture, "DELETE /thing", WITH_JSON, bad[i]), 400);
	body[GUARD_EMPTY_MAX] = ' ';
	body[GUARD_EMPTY_MAX + 1] = '\0';
	assert_int_equal(fixture_call(fixture, "GET /echo/x", WITH_JSON, body), 400);
	assert_int_equal(fixture_call(fixture, "DELETE /thing", WITH_TOKEN, "{}"), 400);
	assert_int_equal(fixture_call(fixture, "DELETE /thing",
				 WITH_JSON "Content-Encoding: gzip\r\n", "{}"),
		400);
}

/* Says the status of a DELETE whose body comes in one chunk. */
static int status_of_chunk(struct fixture *fixture, const char *body)
{
	int fd = client_connect(fixture->port), status;
	struct reply reply;

	client_print(fd,
		"DELETE /thing HTTP/1.1\r\nHost: localhost:%u\r\n" WITH_JSON
		"Transfer-Encoding: chunked\r\n\r\n%zx\r\n%s\r\n0\r\n\r\n",
		fixture->port, strlen(body), body);
	client_receive(fd, &reply, true);
	status = reply.status;
	reply_fini(&reply);
	close(fd);
	return status;
}

static void a_chunked_empty_object_has_the_same_bound(void **state)
{
	char body[2 * GUARD_EMPTY_MAX] = "{}";

	assert_int_equal(status_of_chunk(*state, body), 204);
	memset(body + 2, ' ', sizeof(body) - 3);
	assert_int_equal(status_of_chunk(*state, body), 400);
}

static void a_json_body_is_read_strictly(void **state)
{
	static const char *const bad[] = {"[]", "nonsense", "{\"a\":1,\"a\":2}", "{\"a\":NaN}",
		"{\"a\":\"\xff\"}", "\xef\xbb\xbf{}", "{}{}", "{\"a\":\"\\u0000\"}"};
	struct fixture *fixture = *state;
	char *deep = mem_new(100001);
	struct reply reply;

	for (size_t i = 0; i < array_len(bad); i++)
		assert_int_equal(fixture_call(fixture, "POST /json", WITH_JSON, bad[i]), 400);
	memset(deep, '[', 100000);
	assert_int_equal(fixture_call(fixture, "POST /json", WITH_JSON, deep), 400);
	free(deep);
	client_call(fixture->port, "POST /json", WITH_JSON, "{\"a\":[1,\"\xc3\xa4\"]}", &reply);
	assert_string_equal(reply.body, "{\"a\":[1,\"\xc3\xa4\"]}");
	reply_fini(&reply);
}

static void a_body_has_a_maximum(void **state)
{
	struct fixture *fixture = *state;
	char *body = mem_new(REQUEST_BODY_MAX + 2);
	struct reply reply;
	int fd;

	memset(body, ' ', REQUEST_BODY_MAX + 1);
	memcpy(body, "{}", 2);
	body[REQUEST_BODY_MAX] = '\0';
	assert_int_equal(fixture_call(fixture, "POST /json", WITH_JSON, body), 200);
	/* Refused by its length alone: nothing of it was sent. */
	fd = client_connect(fixture->port);
	client_print(fd,
		"POST /json HTTP/1.1\r\nHost: localhost:%u\r\n" WITH_JSON
		"Content-Length: %u\r\n\r\n",
		fixture->port, REQUEST_BODY_MAX + 1);
	client_receive(fd, &reply, true);
	assert_int_equal(reply.status, 413);
	reply_fini(&reply);
	assert_true(client_sees_close(fd));
	close(fd);
	/* In chunks the size shows only on the way. */
	body[REQUEST_BODY_MAX] = ' ';
	fd = client_connect(fixture->port);
	client_print(fd,
		"POST /json HTTP/1.1\r\nHost: localhost:%u\r\n" WITH_JSON
		"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n",
		fixture->port, REQUEST_BODY_MAX + 1, body);
	client_receive(fd, &reply, true);
	assert_int_equal(reply.status, 413);
	reply_fini(&reply);
	assert_true(client_sees_close(fd));
	close(fd);
	free(body);
}

static void a_chunked_body_is_read_as_well(void **state)
{
	struct fixture *fixture = *state;
	struct reply reply;
	int fd = client_connect(fixture->port);

	client_print(fd,
		"POST /json HTTP/1.1\r\nHost: localhost:%u\r\n" WITH_JSON
		"Transfer-Encoding: chunked\r\n\r\n3\r\n{\"a\r\n4\r\n\":1}\r\n0\r\n\r\n",
		fixture->port);
	client_receive(fd, &reply, true);
	assert_int_equal(reply.status, 200);
	assert_string_equal(reply.body, "{\"a\":1}");
	reply_fini(&reply);
	client_request(fd, fixture->port, "GET /plain", NULL, NULL);
	client_receive(fd, &reply, true);
	assert_int_equal(reply.status, 200);
	reply_fini(&reply);
	close(fd);
}

static void a_body_with_two_ends_is_refused_and_the_connection_closed(void **state)
{
	static const char *const framings[] = {
		"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n",
		"Content-Length: 2\r\nContent-Length: 2\r\n",
		"Content-Length: 2\r\nContent-Length: 3\r\n",
		"Transfer-Encoding: gzip\r\n",
		"Transfer-Encoding: chunked \r\n",
		"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
		"Transfer-Encoding: identity\r\n",
		"Content-Length : 2\r\n",
		"Content-Length: +2\r\n",
		"Content-Length: 2, 2\r\n",
		"Content-Length: 0x2\r\n",
		"Content-Length: -1\r\n",
		"Content-Length: 99999999999999999999999\r\n",
	};
	struct fixture *fixture = *state;

	for (size_t i = 0; i < array_len(framings); i++) {
		struct reply reply;
		int fd = client_connect(fixture->port);

		client_print(fd,
			"POST /json HTTP/1.1\r\nHost: localhost:%u\r\n" WITH_JSON "%s\r\n{}",
			fixture->port, framings[i]);
		client_receive(fd, &reply, true);
		if (reply.status != 400 && reply.status != 413)
			fail_msg("%s gave %d", framings[i], reply.status);
		reply_fini(&reply);
		assert_true(client_sees_close(fd));
		close(fd);
	}
}

/* All that the server sends until it closes. */
static void read_all(int fd, char *text, size_t size)
{
	size_t len = 0;
	ssize_t n;

	while (len < size - 1 && (n = recv(fd, text + len, size - 1 - len, 0)) > 0)
		len += (size_t)n;
	text[len] = '\0';
}

static void a_head_that_cannot_be_read_gets_one_answer_and_the_connection_is_closed(void **state)
{
	static const char *const heads[] = {
		"Host: localhost\r\nContent-Length: abc\r\n",
		"Host: localhost\r\nContent-Length:\r\n",
		"Host: localhost\r\nContent-Length: -1\r\n",
		"Host: localhost\r\nContent-Length: 2x\r\n",
		"Host: localhost\r\nContent-Length: 2, 2\r\n",
		"Host: localhost\r\nContent-Length: 18446744073709551615\r\n",
		"Host: localhost\r\nContent-Length: 99999999999999999999999\r\n",
		"",
	};
	struct fixture *fixture = *state;

	for (size_t i = 0; i < array_len(heads); i++) {
		int fd = client_connect(fixture->port), other = client_connect(fixture->port);
		struct reply reply;
		char text[8192];

		/* Half a head on another connection is nobody's business. */
		client_print(other, "GET /plain HTTP/1.1\r\nContent-Length: 0\r\n" WITH_TOKEN);
		client_print(fd, "POST /json HTTP/1.1\r\n" WITH_JSON "%s\r\n{}", heads[i]);
		read_all(fd, text, sizeof(text));
		if (strncmp(text, "HTTP/1.1 400 ", 13) != 0 || strstr(text + 13, "HTTP/1.1") ||
			!strstr(text, "\"invalid_request\""))
			fail_msg("%s gave %s", heads[i], text);
		client_print(other, "Host: localhost:%u\r\n\r\n", fixture->port);
		client_receive(other, &reply, true);
		assert_int_equal(reply.status, 200);
		reply_fini(&reply);
		close(fd);
		close(other);
	}
}

static void expect_100_continue_asks_before_the_body_comes(void **state)
{
	struct fixture *fixture = *state;
	struct reply reply;
	char line[64] = "";
	int fd = client_connect(fixture->port);

	client_print(fd,
		"POST /json HTTP/1.1\r\nHost: localhost:%u\r\n" WITH_JSON
		"Expect: 100-continue\r\nContent-Length: 7\r\n\r\n",
		fixture->port);
	assert_int_equal(recv(fd, line, 25, MSG_WAITALL), 25);
	assert_string_equal(line, "HTTP/1.1 100 Continue\r\n\r\n");
	client_send(fd, "{\"a\":1}", 7);
	client_receive(fd, &reply, true);
	assert_int_equal(reply.status, 200);
	reply_fini(&reply);
	close(fd);
	/* A refusal comes instead of the 100. */
	fd = client_connect(fixture->port);
	client_print(fd,
		"POST /json HTTP/1.1\r\nHost: localhost:%u\r\nX-API-Key: wrong\r\n"
		"Content-Type: application/json\r\n"
		"Expect: 100-continue\r\nContent-Length: 7\r\n\r\n",
		fixture->port);
	assert_int_equal(recv(fd, line, 12, MSG_WAITALL), 12);
	line[12] = '\0';
	assert_string_equal(line, "HTTP/1.1 401");
	close(fd);
}

#define server_test(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		server_test(a_json_body_must_say_what_it_is),
		server_test(a_route_without_fields_takes_an_empty_object_and_nothing_else),
		server_test(a_chunked_empty_object_has_the_same_bound),
		server_test(a_json_body_is_read_strictly),
		server_test(a_body_has_a_maximum),
		server_test(a_chunked_body_is_read_as_well),
		server_test(a_body_with_two_ends_is_refused_and_the_connection_closed),
		server_test(
			a_head_that_cannot_be_read_gets_one_answer_and_the_connection_is_closed),
		server_test(expect_100_continue_asks_before_the_body_comes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
