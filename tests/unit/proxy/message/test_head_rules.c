/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One table of requests for both listeners: the API's, where libmicrohttpd parses, and that of previews,
 * where http_parser does. What one refuses the other must refuse too (http/head_rules.h).
 */
#include "base/fd.h"
#include "http_fixture.h"
#include "proxy_stage.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define POST   "POST /json HTTP/1.1"
#define GOOD   true
#define BAD    false
#define CHUNKS "2\r\n{}\r\n0\r\n\r\n"

static const struct {
	const char *name;
	const char *line;   /* of the request */
	const char *fields; /* behind Host, credentials and type */
	const char *body;
	bool is_good;
} cases[] = {
	/* How the body is delimited. */
	{"a length", POST, "Content-Length: 2\r\n", "{}", GOOD},
	{"a length with zeros before it", POST, "Content-Length: 0002\r\n", "{}", BAD},
	{"a length with a space behind it", POST, "Content-Length: 2 \r\n", "{}", BAD},
	{"chunks", POST, "Transfer-Encoding: chunked\r\n", CHUNKS, GOOD},
	{"chunks in capitals", POST, "transfer-encoding: CHUNKED\r\n", CHUNKS, GOOD},
	{"chunks with a space behind", POST, "Transfer-Encoding: chunked \r\n", CHUNKS, BAD},
	{"chunks with a tabulator behind", POST, "Transfer-Encoding: chunked\t\r\n", CHUNKS, BAD},
	{"chunks twice", POST, "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
		CHUNKS, BAD},
	{"chunks twice in a list", POST, "Transfer-Encoding: chunked, chunked\r\n", CHUNKS, BAD},
	{"chunks and nothing in a list", POST, "Transfer-Encoding: chunked,\r\n", CHUNKS, BAD},
	{"chunks behind another coding", POST, "Transfer-Encoding: gzip, chunked\r\n", CHUNKS, BAD},
	{"chunks before another coding", POST, "Transfer-Encoding: chunked, gzip\r\n", CHUNKS, BAD},
	{"chunks with a parameter", POST, "Transfer-Encoding: chunked;q=1\r\n", CHUNKS, BAD},
	{"chunks and identity", POST,
		"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", CHUNKS, BAD},
	{"another coding", POST, "Transfer-Encoding: gzip\r\n", "{}", BAD},
	{"identity", POST, "Transfer-Encoding: identity\r\nContent-Length: 2\r\n", "{}", BAD},
	{"a coding without a name", POST, "Transfer-Encoding:\r\nContent-Length: 2\r\n", "{}", BAD},
	{"chunks of HTTP/1.0", "POST /json HTTP/1.0", "Transfer-Encoding: chunked\r\n", CHUNKS,
		BAD},
	{"a length of HTTP/1.0", "POST /json HTTP/1.0", "Content-Length: 2\r\n", "{}", GOOD},
	{"length and chunks", POST, "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", CHUNKS,
		BAD},
	{"chunks and length", POST, "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n", CHUNKS,
		BAD},
	{"the same length twice", POST, "Content-Length: 2\r\nContent-Length: 2\r\n", "{}", BAD},
	{"two lengths", POST, "Content-Length: 2\r\ncontent-length: 3\r\n", "{}", BAD},
	{"a list of lengths", POST, "Content-Length: 2, 2\r\n", "{}", BAD},
	{"no length", POST, "Content-Length:\r\n", "", BAD},
	{"a length of a space", POST, "Content-Length:  \r\n", "", BAD},
	{"a length with a plus", POST, "Content-Length: +2\r\n", "{}", BAD},
	{"a length below zero", POST, "Content-Length: -1\r\n", "{}", BAD},
	{"a length in hexadecimal digits", POST, "Content-Length: 0x2\r\n", "{}", BAD},
	{"a length with a fraction", POST, "Content-Length: 2.0\r\n", "{}", BAD},
	{"a length of two words", POST, "Content-Length: 2 2\r\n", "{}", BAD},
	{"a length over 64 bits", POST, "Content-Length: 18446744073709551618\r\n", "{}", BAD},

	/* Names and values. */
	{"a value with a byte above ASCII", POST, "X-A: \xc3\xbc\r\nContent-Length: 2\r\n", "{}",
		GOOD},
	{"a value with a tabulator", POST, "X-A: a\tb\r\nContent-Length: 2\r\n", "{}", GOOD},
	{"a value that is empty", POST, "X-A:\r\nContent-Length: 2\r\n", "{}", GOOD},
	{"a name of odd letters", POST, "!#$%&'*+-.^_`|~9: a\r\nContent-Length: 2\r\n", "{}", GOOD},
	{"a name with a space behind it", POST, "Content-Length : 2\r\n", "{}", BAD},
	{"a name with a tabulator behind it", POST, "Content-Length\t: 2\r\n", "{}", BAD},
	{"a name with a space in it", POST, "X A: a\r\nContent-Length: 2\r\n", "{}", BAD},
	{"a name in brackets", POST, "X(A): a\r\nContent-Length: 2\r\n", "{}", BAD},
	{"a name above ASCII", POST, "X-\xc3\xbc: a\r\nContent-Length: 2\r\n", "{}", BAD},
	{"no name", POST, ": a\r\nContent-Length: 2\r\n", "{}", BAD},
	{"no colon", POST, "X-A\r\nContent-Length: 2\r\n", "{}", BAD},
	{"a value with a control character", POST, "X-A: a\x01\r\nContent-Length: 2\r\n", "{}",
		BAD},
	{"a value with DEL", POST, "X-A: a\x7f\r\nContent-Length: 2\r\n", "{}", BAD},

	/* Lines. */
	{"a folded line", POST, "X-A: a\r\n b\r\nContent-Length: 2\r\n", "{}", BAD},
	{"a folded coding", POST, "Transfer-Encoding:\r\n chunked\r\n", CHUNKS, BAD},
	{"a line feed alone", POST, "X-A: a\nContent-Length: 2\r\n", "{}", BAD},
	{"a carriage return alone", POST, "X-A: a\rX-B: b\r\nContent-Length: 2\r\n", "{}", BAD},
	{"a first line with a space first", " POST /json HTTP/1.1", "Content-Length: 2\r\n", "{}",
		BAD},
	{"a first line with two spaces", "POST  /json HTTP/1.1", "Content-Length: 2\r\n", "{}",
		BAD},
	{"a first line with two spaces later", "POST /json  HTTP/1.1", "Content-Length: 2\r\n",
		"{}", BAD},
	{"a first line with a space behind", "POST /json HTTP/1.1 ", "Content-Length: 2\r\n", "{}",
		BAD},
	{"a first line with a tabulator", "POST\t/json HTTP/1.1", "Content-Length: 2\r\n", "{}",
		BAD},

	/* Versions. */
	{"no version", "POST /json", "Content-Length: 2\r\n", "{}", BAD},
	{"HTTP/0.9", "POST /json HTTP/0.9", "Content-Length: 2\r\n", "{}", BAD},
	{"HTTP/1.2", "POST /json HTTP/1.2", "Content-Length: 2\r\n", "{}", BAD},
	{"HTTP/2.0", "POST /json HTTP/2.0", "Content-Length: 2\r\n", "{}", BAD},
	{"HTTP/1.10", "POST /json HTTP/1.10", "Content-Length: 2\r\n", "{}", BAD},
	{"a version in small letters", "POST /json http/1.1", "Content-Length: 2\r\n", "{}", BAD},

	/* Hosts: each request has a good one before. */
	{"two hosts", POST, "Host: b\r\nContent-Length: 2\r\n", "{}", BAD},
	{"a host that is empty", POST, "Host:\r\nContent-Length: 2\r\n", "{}", BAD},
};

/* Hosts alone. */
static const struct {
	const char *name, *field;
} hosts[] = {
	{"no host", ""},
	{"an empty host", "Host:\r\n"},
	{"a host with a space", "Host: a b\r\n"},
	{"a host with a slash", "Host: a/b\r\n"},
	{"a host with a user", "Host: u@a\r\n"},
	{"two hosts in a list", "Host: a, b\r\n"},
	{"a host above ASCII", "Host: \xc3\xbc\r\n"},
};

struct listeners {
	struct fixture api;
	struct stage previews;
};

static int setup(void **state)
{
	struct listeners *listeners = mem_new(sizeof(*listeners));

	fixture_open(&listeners->api, 0, 0);
	stage_open(&listeners->previews, 64);
	*state = listeners;
	return 0;
}

static int teardown(void **state)
{
	struct listeners *listeners = *state;

	fixture_close(&listeners->api);
	stage_close(&listeners->previews);
	free(listeners);
	return 0;
}

static char *compose(const char *line, const char *host, const char *fields, const char *body)
{
	return mem_printf("%s\r\n%s" WITH_JSON "%s\r\n%s", line, host, fields, body);
}

/* The API's answer; a refusal must end the connection. */
static bool does_api_take(struct listeners *listeners, const char *request)
{
	int fd = client_connect(listeners->api.port);
	struct reply reply;
	int status;

	client_send(fd, request, strlen(request));
	client_receive(fd, &reply, true);
	status = reply.status;
	reply_fini(&reply);
	if (status != 200)
		assert_true(client_sees_close(fd));
	close(fd);
	return status == 200;
}

/* Whether the app gets it; else the client is told, and the connection ends. */
static bool do_previews_take(struct listeners *listeners, const char *request)
{
	struct stage *stage = &listeners->previews;
	int client = stage_connect(stage);
	struct pollfd ready[] = {{client, POLLIN, 0}, {stage->app_fd, POLLIN, 0}};
	bool is_taken;

	say(client, request);
	assert_true(poll(ready, array_len(ready), DEADLINE_MS) > 0);
	is_taken = ready[1].revents;
	if (is_taken) {
		int app = stage_accept(stage);

		say(app, OK);
		free(hear(client, "ok"));
		close(app);
	} else {
		free(hear(client, "Connection: close"));
		assert_true(client_sees_close(client));
	}
	close(client);
	return is_taken;
}

static void both_listeners_take_and_refuse_the_same(void **state)
{
	struct listeners *listeners = *state;
	auto_free char *host = mem_printf("Host: localhost:%u\r\n", listeners->api.port);
	unsigned wrong = 0;

	for (size_t i = 0; i < array_len(cases); i++) {
		auto_free char *request =
			compose(cases[i].line, host, cases[i].fields, cases[i].body);
		bool api = does_api_take(listeners, request);
		bool previews = do_previews_take(listeners, request);

		if (api == cases[i].is_good && previews == cases[i].is_good)
			continue;
		wrong++;
		print_error("%s: the API %s it, previews %s it\n", cases[i].name,
			api ? "takes" : "refuses", previews ? "take" : "refuse");
	}
	assert_int_equal(wrong, 0);
}

static void both_listeners_refuse_the_same_hosts(void **state)
{
	struct listeners *listeners = *state;

	for (size_t i = 0; i < array_len(hosts); i++) {
		auto_free char *request =
			compose(POST, hosts[i].field, "Content-Length: 2\r\n", "{}");

		if (does_api_take(listeners, request))
			fail_msg("the API takes %s", hosts[i].name);
		if (do_previews_take(listeners, request))
			fail_msg("previews take %s", hosts[i].name);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			both_listeners_take_and_refuse_the_same, setup, teardown),
		cmocka_unit_test_setup_teardown(
			both_listeners_refuse_the_same_hosts, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
