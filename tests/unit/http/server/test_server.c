/* SPDX-License-Identifier: Apache-2.0 */
/* What requests are let in, and what the answers look like. */
#include "http_fixture.h"

#include "base/mem.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

/* The error document of a reply, checked for its shape; the caller owns it. */
static json_t *error_of(const struct reply *reply)
{
	json_t *document = json_loads(reply->body, 0, NULL);
	json_t *error = json_object_get(document, "error");
	char value[256];

	assert_non_null(error);
	assert_int_equal(json_object_size(document), 1);
	assert_int_equal(json_object_size(error), 5);
	assert_true(json_is_string(json_object_get(error, "code")));
	assert_true(json_is_string(json_object_get(error, "message")));
	assert_true(json_is_boolean(json_object_get(error, "retryable")));
	assert_non_null(json_object_get(error, "remediation"));
	assert_string_equal(json_string_value(json_object_get(error, "request_id")),
		reply_header(reply, "X-Request-ID", value));
	assert_string_equal(reply_header(reply, "Content-Type", value), "application/json");
	json_incref(error);
	json_decref(document);
	return error;
}

static void an_answer_has_the_headers_that_all_have(void **state)
{
	struct fixture *fixture = *state;
	struct reply reply;
	char value[256];

	client_call(fixture->port, "GET /plain", "X-Request-ID: My.id_1-2\r\n", NULL, &reply);
	assert_int_equal(reply.status, 200);
	assert_string_equal(reply.body, "hello");
	assert_string_equal(reply_header(&reply, "Content-Type", value), "text/plain");
	assert_string_equal(reply_header(&reply, "X-Request-ID", value), "My.id_1-2");
	assert_string_equal(reply_header(&reply, "X-Content-Type-Options", value), "nosniff");
	assert_string_equal(reply_header(&reply, "Content-Security-Policy", value),
		"default-src 'none'; frame-ancestors 'none'");
	assert_string_equal(
		reply_header(&reply, "Cross-Origin-Opener-Policy", value), "same-origin");
	assert_string_equal(
		reply_header(&reply, "Cross-Origin-Resource-Policy", value), "same-origin");
	assert_string_equal(reply_header(&reply, "Cache-Control", value), "no-store");
	assert_string_equal(reply_header(&reply, "X-Extra", value), "yes");
	assert_null(reply_header(&reply, "Server", value));
	reply_fini(&reply);
	client_call(fixture->port, "GET /plain", "X-Request-ID: not good\r\n", NULL, &reply);
	assert_int_equal(strlen(reply_header(&reply, "X-Request-ID", value)), 16);
	assert_int_equal(strspn(value, "0123456789abcdef"), 16);
	reply_fini(&reply);
}

static void a_handler_sees_what_was_sent(void **state)
{
	struct fixture *fixture = *state;
	struct reply reply;
	json_t *seen;

	client_call(fixture->port, "GET /echo/a%20b%2Fc?q=%C3%A4+%26&other=1",
		WITH_TOKEN "X-Test: padded \t\r\nAccept: a\r\nAccept: b\r\n", NULL, &reply);
	assert_int_equal(reply.status, 200);
	seen = json_loads(reply.body, 0, NULL);
	assert_string_equal(json_string_value(json_object_get(seen, "name")), "a b/c");
	assert_string_equal(json_string_value(json_object_get(seen, "query")), "\xc3\xa4 &");
	assert_string_equal(json_string_value(json_object_get(seen, "header")), "padded");
	assert_string_equal(json_string_value(json_object_get(seen, "accept")), "a, b");
	assert_string_equal(json_string_value(json_object_get(seen, "user")), "tester");
	json_decref(seen);
	reply_fini(&reply);
}

static void missing_routes_and_methods_are_told_apart(void **state)
{
	struct fixture *fixture = *state;
	struct reply reply;
	char value[256];
	json_t *error;

	client_call(fixture->port, "GET /none", NULL, NULL, &reply);
	assert_int_equal(reply.status, 404);
	error = error_of(&reply);
	assert_string_equal(json_string_value(json_object_get(error, "code")), "route_not_found");
	json_decref(error);
	reply_fini(&reply);
	client_call(fixture->port, "POST /thing", NULL, "", &reply);
	assert_int_equal(reply.status, 405);
	assert_string_equal(reply_header(&reply, "Allow", value), "DELETE");
	reply_fini(&reply);
	client_call(fixture->port, "OPTIONS /plain", NULL, NULL, &reply);
	assert_int_equal(reply.status, 405);
	assert_string_equal(reply_header(&reply, "Allow", value), "GET, HEAD");
	reply_fini(&reply);
	assert_int_equal(fixture_call(fixture, "BREW /plain", NULL, NULL), 405);
	assert_int_equal(fixture_call(fixture, "get /plain", NULL, NULL), 405);
	/* A method that is not served has no name of ours to be told. */
	client_call(fixture->port, "BREW /none", NULL, NULL, &reply);
	assert_int_equal(reply.status, 404);
	error = error_of(&reply);
	assert_string_equal(
		json_string_value(json_object_get(error, "message")), "no such route: /none");
	json_decref(error);
	reply_fini(&reply);
}

static void the_target_is_checked(void **state)
{
	struct fixture *fixture = *state;
	char line[9000] = "GET /plain?a=";

	assert_int_equal(fixture_call(fixture, "GET /echo/x?q=1&q=2", WITH_TOKEN, NULL), 400);
	assert_int_equal(fixture_call(fixture, "GET /echo/x?q=1%00", WITH_TOKEN, NULL), 400);
	assert_int_equal(fixture_call(fixture, "GET /plain%00", NULL, NULL), 400);
	assert_int_equal(fixture_call(fixture, "GET /plain%", NULL, NULL), 400);
	assert_int_equal(fixture_call(fixture, "GET http://127.0.0.1/plain", NULL, NULL), 400);
	memset(line + strlen(line), 'a', 8500);
	assert_int_equal(fixture_call(fixture, line, NULL, NULL), 413);
}

static void only_own_hosts_are_served(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(
		fixture_status_of(fixture, "GET /plain HTTP/1.1\r\nHost: localhost:%u\r\n\r\n"),
		200);
	assert_int_equal(
		fixture_status_of(fixture, "GET /plain HTTP/1.1\r\nHost: [::1]:%u\r\n\r\n"), 200);
	assert_int_equal(
		fixture_status_of(fixture, "GET /plain HTTP/1.1\r\nHost: sandlot.example\r\n\r\n"),
		200);
	assert_int_equal(
		fixture_status_of(fixture, "GET /plain HTTP/1.0\r\nHost: localhost:%u\r\n\r\n"),
		200);
	assert_int_equal(
		fixture_status_of(fixture, "GET /plain HTTP/1.1\r\nHost: evil.example\r\n\r\n"),
		421);
	assert_int_equal(
		fixture_status_of(fixture, "GET /plain HTTP/1.1\r\nHost: evil.example:%u\r\n\r\n"),
		421);
	assert_int_equal(
		fixture_status_of(fixture, "GET /plain HTTP/1.1\r\nHost: localhost\r\n\r\n"), 421);
	assert_int_equal(fixture_status_of(fixture, "GET /plain HTTP/1.1\r\n\r\n"), 400);
	assert_int_equal(fixture_status_of(fixture, "GET /plain HTTP/1.0\r\n\r\n"), 400);
	assert_int_equal(
		fixture_status_of(fixture, "GET /plain HTTP/1.1\r\nHost: localhost:%1$u\r\n"
					   "Host: localhost:%1$u\r\n\r\n"),
		400);
}

static void foreign_pages_are_kept_out(void **state)
{
	struct fixture *fixture = *state;
	char own[128];

	assert_int_equal(
		fixture_call(fixture, "GET /plain", "Origin: http://evil.example\r\n", NULL), 403);
	assert_int_equal(fixture_call(fixture, "POST /open", "Origin: null\r\n", NULL), 403);
	assert_int_equal(
		fixture_call(fixture, "POST /open", "Sec-Fetch-Site: cross-site\r\n", NULL), 403);
	assert_int_equal(
		fixture_call(fixture, "POST /open", "Sec-Fetch-Site: same-site\r\n", NULL), 403);
	assert_int_equal(
		fixture_call(fixture, "GET /plain", "Sec-Fetch-Site: cross-site\r\n", NULL), 200);
	snprintf(own, sizeof(own), "Origin: http://localhost:%u\r\nSec-Fetch-Site: same-origin\r\n",
		fixture->port);
	assert_int_equal(fixture_call(fixture, "POST /open", own, NULL), 200);
}

static void a_token_is_needed(void **state)
{
	struct fixture *fixture = *state;
	struct reply reply;
	char value[256];
	json_t *error;

	client_call(fixture->port, "GET /echo/x", NULL, NULL, &reply);
	assert_int_equal(reply.status, 401);
	assert_string_equal(reply_header(&reply, "WWW-Authenticate", value), "Bearer");
	error = error_of(&reply);
	assert_string_equal(json_string_value(json_object_get(error, "code")), "unauthenticated");
	json_decref(error);
	reply_fini(&reply);
	client_call(fixture->port, "GET /echo/x", "X-API-Key: wrong\r\n", NULL, &reply);
	assert_int_equal(reply.status, 401);
	assert_string_equal(reply_header(&reply, "WWW-Authenticate", value), "Bearer");
	reply_fini(&reply);
	assert_int_equal(fixture_call(fixture, "GET /echo/x", WITH_TOKEN, NULL), 200);
	assert_int_equal(
		fixture_call(fixture, "GET /echo/x", "Authorization: Bearer " TOKEN "\r\n", NULL),
		200);
	assert_int_equal(
		fixture_call(fixture, "GET /echo/x", "Authorization: Basic eDp5\r\n", NULL), 401);
	/* A stranger is not told what else is wrong. */
	assert_int_equal(fixture_call(fixture, "POST /json", "X-API-Key: wrong\r\n", "{}"), 401);
	assert_int_equal(fixture_call(fixture, "POST /json",
				 "X-API-Key: wrong\r\n"
				 "Content-Type: application/json\r\n",
				 "nonsense"),
		401);
	assert_int_equal(fixture_call(fixture, "PUT /upload", "X-API-Key: wrong\r\n", "data"), 401);
	assert_int_equal(fixture->entered, 0);
}

static void what_may_have_changed_something_is_accounted_for_before_it_is_answered(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(fixture_call(fixture, "DELETE /thing", WITH_TOKEN, NULL), 204);
	assert_string_equal(fixture->account, "thing.delete tester 204  127.0.0.1");
	assert_int_equal(fixture_call(fixture, "GET /rate", WITH_TOKEN, NULL), 429);
	assert_string_equal(fixture->account, "rate tester 429 slow_down 127.0.0.1");
	assert_int_equal(fixture_call(fixture, "GET /hold/shortly", WITH_TOKEN, NULL), 200);
	assert_string_equal(fixture->account, "hold.shortly tester 200  127.0.0.1");
	/* Refused for its headers, but the sender is known. */
	assert_int_equal(fixture_call(fixture, "DELETE /thing", WITH_TOKEN, "body"), 400);
	assert_string_equal(fixture->account, "thing.delete tester 400 invalid_request 127.0.0.1");
	/* And one that may not is known as well. */
	assert_int_equal(fixture_call(fixture, "GET /denied", WITH_TOKEN, NULL), 403);
	assert_string_equal(fixture->account, "denied tester 403 permission_denied 127.0.0.1");
	assert_int_equal(fixture->accounts, 5);
	assert_int_equal(fixture_call(fixture, "GET /echo/x", WITH_TOKEN, NULL), 200);
	assert_int_equal(fixture_call(fixture, "GET /plain", NULL, NULL), 200);
	assert_int_equal(fixture->accounts, 5);
	assert_int_equal(fixture->refusals, 0);
}

static void a_stranger_is_told_of_once(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(fixture_call(fixture, "DELETE /thing", NULL, NULL), 401);
	assert_int_equal(fixture->refusals, 1);
	assert_int_equal(fixture_call(fixture, "GET /echo/x", "X-API-Key: wrong\r\n", NULL), 401);
	assert_int_equal(fixture->refusals, 2);
	assert_int_equal(fixture_call(fixture, "PUT /upload", "X-API-Key: wrong\r\n", "data"), 401);
	assert_int_equal(fixture->refusals, 3);
	assert_string_equal(fixture->account, "upload  401 unauthenticated 127.0.0.1");
	assert_int_equal(fixture->accounts, 0);
}

static void headers_are_checked(void **state)
{
	struct fixture *fixture = *state;
	char many[8192] = WITH_TOKEN;

	assert_int_equal(fixture_call(fixture, "GET /echo/x", WITH_TOKEN WITH_TOKEN, NULL), 400);
	assert_int_equal(
		fixture_call(fixture, "GET /echo/x", WITH_TOKEN "X-Test: a\r\nx-test: b\r\n", NULL),
		400);
	assert_int_equal(
		fixture_call(fixture, "GET /echo/x", WITH_TOKEN "Bad Name: a\r\n", NULL), 400);
	assert_int_equal(
		fixture_call(fixture, "GET /echo/x", WITH_TOKEN "X-Test: a\x01\r\n", NULL), 400);
	for (int i = 0; i < 120; i++)
		snprintf(many + strlen(many), sizeof(many) - strlen(many), "X-%d: 1\r\n", i);
	assert_int_equal(fixture_call(fixture, "GET /echo/x", many, NULL), 413);
}

/* The library would take each of these for a whole and harmless head. */
static void a_head_has_no_bytes_that_could_be_read_in_another_way(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
	} heads[] = {
#define HEAD(line, headers)                                                                        \
	{line "\r\nHost: localhost:%u\r\n" headers,                                                \
		sizeof(line "\r\nHost: localhost:%u\r\n" headers) - 1}
		HEAD("GET /plain HTTP/1.1", "X-A: a\0b\r\n\r\n"),
		HEAD("GET /plain HTTP/1.1", "X-A: a\0\r\nX-B: b\r\n\r\n"),
		HEAD("GET /plain HTTP/1.1", "X-A: \0a\r\n\r\n"),
		HEAD("GET /plain HTTP/1.1", "X-A: a\r\n b\r\n\r\n"),
		HEAD("GET /plain HTTP/1.1", "X-A: a\r\n\tb\r\nX-B: b\r\n\r\n"),
		HEAD("GET /plain HTTP/1.1", "X-A: a\r\n \r\n\r\n"),
		HEAD("GET /plain HTTP/1.1", "X-A: a\nX-B: b\r\n\r\n"),
		HEAD("GET /plain HTTP/1.1", "X-A: a\r\n\n"),
		HEAD("GET /plain HTTP/1.1", "X-A: a\r\n\0\r\n"),
		HEAD("GET /plain HTTP/1.1", "\0X-A: a\r\n\r\n"),
		HEAD("GET /plain\0 HTTP/1.1", "\r\n"),
		HEAD("GET  /plain HTTP/1.1", "\r\n"),
#undef HEAD
	};
	struct fixture *fixture = *state;

	for (size_t i = 0; i < 2 * array_len(heads); i++) {
		/* On a new connection and on one that is kept. */
		int fd = i % 2 ? fixture_connect_idle(fixture) : client_connect(fixture->port);
		const char *at = memmem(heads[i / 2].bytes, heads[i / 2].len, "%u", 2);
		size_t before = (size_t)(at - heads[i / 2].bytes);
		struct reply reply;

		client_send(fd, heads[i / 2].bytes, before);
		client_print(fd, "%u", fixture->port);
		client_send(fd, at + 2, heads[i / 2].len - before - 2);
		client_receive(fd, &reply, true);
		if (reply.status != 400)
			fail_msg("head %zu: %d", i / 2, reply.status);
		reply_fini(&reply);
		assert_true(client_sees_close(fd));
		close(fd);
	}
}

static bool takes_query(const struct route *route, const char *name)
{
	return strcmp(route->path, "/plain") == 0 && strcmp(name, "known") == 0;
}

static void an_unknown_query_parameter_is_named(void **state)
{
	struct fixture fixture;
	struct reply reply;
	json_t *error;

	(void)state;
	fixture_open_asking(&fixture, takes_query);
	assert_int_equal(fixture_call(&fixture, "GET /plain?known=1", NULL, NULL), 200);
	assert_int_equal(fixture_call(&fixture, "GET /plain?", NULL, NULL), 200);
	assert_int_equal(fixture_call(&fixture, "GET /plain?=", NULL, NULL), 400);
	/* Only those who may ask are told what a route has. */
	assert_int_equal(fixture_call(&fixture, "GET /echo/x?known=1", NULL, NULL), 401);
	assert_int_equal(fixture_call(&fixture, "GET /echo/x?known=1", WITH_TOKEN, NULL), 400);
	client_call(fixture.port, "GET /plain?known=1&odd=2", NULL, NULL, &reply);
	assert_int_equal(reply.status, 400);
	error = error_of(&reply);
	assert_string_equal(json_string_value(json_object_get(error, "code")), "unknown_parameter");
	assert_non_null(strstr(json_string_value(json_object_get(error, "message")), "odd"));
	json_decref(error);
	reply_fini(&reply);
	fixture_close(&fixture);
}

static void errors_have_one_shape_and_tell_nothing_of_the_host(void **state)
{
	struct fixture *fixture = *state;
	struct reply reply;
	char value[256];
	json_t *error;

	client_call(
		fixture->port, "GET /internal", WITH_TOKEN "X-Request-ID: abc\r\n", NULL, &reply);
	assert_int_equal(reply.status, 500);
	error = error_of(&reply);
	assert_string_equal(json_string_value(json_object_get(error, "code")), "internal_error");
	assert_string_equal(json_string_value(json_object_get(error, "message")),
		"the server failed; see its log for request abc");
	assert_true(json_is_null(json_object_get(error, "remediation")));
	assert_null(strstr(reply.body, "secret"));
	json_decref(error);
	reply_fini(&reply);
	client_call(fixture->port, "GET /rate", WITH_TOKEN, NULL, &reply);
	assert_int_equal(reply.status, 429);
	assert_string_equal(reply_header(&reply, "Retry-After", value), "1");
	error = error_of(&reply);
	assert_string_equal(json_string_value(json_object_get(error, "code")), "slow_down");
	assert_string_equal(
		json_string_value(json_object_get(error, "message")), "not so fast \"?\"");
	assert_string_equal(json_string_value(json_object_get(error, "remediation")), "wait");
	assert_true(json_is_true(json_object_get(error, "retryable")));
	json_decref(error);
	reply_fini(&reply);
	assert_int_equal(fixture_call(fixture, "GET /nothing", WITH_TOKEN, NULL), 500);
}

static void head_is_get_without_a_body(void **state)
{
	struct fixture *fixture = *state;
	struct reply reply;
	char value[256];
	int fd = client_connect(fixture->port);

	client_request(fd, fixture->port, "HEAD /plain", NULL, NULL);
	client_receive(fd, &reply, false);
	assert_int_equal(reply.status, 200);
	assert_string_equal(reply_header(&reply, "Content-Length", value), "5");
	assert_string_equal(reply_header(&reply, "X-Extra", value), "yes");
	reply_fini(&reply);
	/* Nothing of the body is in the way of the next answer. */
	client_request(fd, fixture->port, "HEAD /none", NULL, NULL);
	client_receive(fd, &reply, false);
	assert_int_equal(reply.status, 404);
	reply_fini(&reply);
	client_request(fd, fixture->port, "HEAD /download?size=1000", WITH_TOKEN, NULL);
	client_receive(fd, &reply, false);
	assert_int_equal(reply.status, 200);
	assert_string_equal(reply_header(&reply, "Content-Length", value), "1000");
	reply_fini(&reply);
	client_request(fd, fixture->port, "HEAD /stream", WITH_TOKEN, NULL);
	client_receive(fd, &reply, false);
	assert_int_equal(reply.status, 200);
	reply_fini(&reply);
	assert_int_equal(recv(fd, value, 1, 0), 0);
	fixture_wait(fixture, &fixture->gone, 1);
	close(fd);
}

static void what_a_request_keeps_is_released(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(fixture_call(fixture, "DELETE /thing", WITH_TOKEN, NULL), 204);
	fixture_wait(fixture, &fixture->released, 1);
}

static void a_server_that_cannot_listen_says_so(void **state)
{
	struct fixture *fixture = *state;
	struct server *server = NULL;
	struct err err = {0};
	char address[32];

	snprintf(address, sizeof(address), "127.0.0.1:%u", fixture->port);
	assert_int_equal(
		server_open(&(struct server_config){.bind = address}, &server, &err), -EADDRINUSE);
	assert_null(server);
	assert_string_equal(err.code, "cannot_listen");
}

/* Bytes that begin like a request, so that they get past the first line. */
static size_t make_garbage(unsigned round, uint16_t port, unsigned char *data, size_t size)
{
	static const char *const starts[] = {"", "GET /plain HTTP/1.1\r\nHost: localhost:%u\r\n",
		"POST /json HTTP/1.1\r\nHost: localhost:%u\r\n" WITH_JSON
		"Content-Length: 200\r\n\r\n",
		"POST /json HTTP/1.1\r\nHost: localhost:%u\r\n" WITH_JSON
		"Transfer-Encoding: chunked\r\n\r\n",
		"PUT /read HTTP/1.1\r\nHost: localhost:%u\r\n" WITH_TOKEN
		"Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n",
		"GET /"};
	size_t len;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	len = (size_t)snprintf((char *)data, size, starts[round % array_len(starts)], port);
#pragma GCC diagnostic pop
	assert_true(getrandom(data + len, size - len, 0) == (ssize_t)(size - len));
	return len + round * 131 % (size - len);
}

static void garbage_does_no_harm(void **state)
{
	struct fixture *fixture = *state;

	for (unsigned round = 0; round < 600; round++) {
		unsigned char data[2048];
		size_t len = make_garbage(round, fixture->port, data, sizeof(data));
		int fd = client_connect(fixture->port);

		/* The server may have closed already: then the rest cannot be sent. */
		if (send(fd, data, len, MSG_NOSIGNAL) < 0 || round % 3 == 0)
			shutdown(fd, SHUT_WR);
		if (round % 3 == 0)
			assert_true(client_sees_close(fd));
		close(fd);
	}
	assert_int_equal(fixture_call(fixture, "GET /plain", NULL, NULL), 200);
}

#define server_test(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		server_test(an_answer_has_the_headers_that_all_have),
		server_test(a_handler_sees_what_was_sent),
		server_test(missing_routes_and_methods_are_told_apart),
		server_test(the_target_is_checked),
		server_test(only_own_hosts_are_served),
		server_test(foreign_pages_are_kept_out),
		server_test(a_token_is_needed),
		server_test(what_may_have_changed_something_is_accounted_for_before_it_is_answered),
		server_test(a_stranger_is_told_of_once),
		server_test(headers_are_checked),
		server_test(a_head_has_no_bytes_that_could_be_read_in_another_way),
		cmocka_unit_test(an_unknown_query_parameter_is_named),
		server_test(errors_have_one_shape_and_tell_nothing_of_the_host),
		server_test(head_is_get_without_a_body),
		server_test(what_a_request_keeps_is_released),
		server_test(a_server_that_cannot_listen_says_so),
		server_test(garbage_does_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
