/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/connection/proxy_head.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* As from a client: the whole head at once. */
static int read_text(const char *text, struct message *request, struct proxy_head *ret_head)
{
	ssize_t n;

	memset(request, 0, sizeof(*request));
	message_begin(request, MESSAGE_REQUEST);
	n = message_feed(request, (const uint8_t *)text, strlen(text));
	return n > 0 ? proxy_head_read(request, ret_head) : -EBADMSG;
}

static void check_rewritten(const char *text, const char *expected)
{
	struct buf out = BUF_INIT(1024);
	struct message request;
	struct proxy_head head;

	assert_int_equal(read_text(text, &request, &head), 0);
	proxy_head_write(&request, &head, &out);
	buf_append(&out, "", 1);
	assert_string_equal((const char *)out.data, expected);
	buf_fini(&out);
	message_fini(&request);
}

static void a_tunnel_names_its_end(void **state)
{
	struct message request;
	struct proxy_head head;

	(void)state;
	assert_int_equal(read_text("CONNECT Ok.Test:443 HTTP/1.1\r\nHost: other.test\r\n\r\nrest",
				 &request, &head),
		0);
	assert_true(head.is_connect);
	assert_string_equal(head.at.name, "ok.test");
	assert_int_equal(head.at.port, 443);
	message_fini(&request);
	assert_int_equal(read_text("CONNECT 10.0.0.5:22 HTTP/1.0\r\n\r\n", &request, &head), 0);
	assert_string_equal(head.at.name, "");
	assert_int_equal(ntohl(address_to_v4(head.at.address).s_addr), 0x0a000005);
	message_fini(&request);
}

static void a_plain_request_is_rewritten_for_its_server(void **state)
{
	(void)state;
	check_rewritten(
		"POST http://ok.test:81?q=1 HTTP/1.1\r\nHost: evil.test\r\n"
		"proxy-connection: keep-alive\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\n"
		"Proxy-Authorization: Basic eA==\r\nContent-Length: 2\r\nX-A: b\r\n\r\nhi",
		"POST /?q=1 HTTP/1.1\r\nHost: ok.test:81\r\nContent-Length: 2\r\nX-A: b\r\n"
		"Connection: close\r\n\r\n");
}

/* A length that is named as a matter of the hop is the length all the same. */
static void a_length_is_never_taken_away(void **state)
{
	(void)state;
	check_rewritten("POST http://ok.test/ HTTP/1.1\r\nConnection: content-length\r\n"
			"Content-Length: 2\r\n\r\nhi",
		"POST / HTTP/1.1\r\nHost: ok.test\r\nContent-Length: 2\r\n"
		"Connection: close\r\n\r\n");
}

/* A client of an older version does not understand answers of a newer. */
static void the_version_of_the_client_is_kept(void **state)
{
	(void)state;
	check_rewritten("GET http://ok.test/x HTTP/1.0\r\nA: b\r\n\r\n",
		"GET /x HTTP/1.0\r\nHost: ok.test\r\nA: b\r\nConnection: close\r\n\r\n");
}

static void everything_else_is_refused(void **state)
{
	static const char *const bad[] = {"GET / HTTP/1.1\r\n\r\n", "GET ok.test/ HTTP/1.1\r\n\r\n",
		"GET https://ok.test/ HTTP/1.1\r\n\r\n", "CONNECT ok.test HTTP/1.1\r\n\r\n",
		"CONNECT ok.test:0 HTTP/1.1\r\n\r\n", "CONNECT ok.test:65536 HTTP/1.1\r\n\r\n",
		"CONNECT ok.test:443/ HTTP/1.1\r\n\r\n", "CONNECT u@ok.test:443 HTTP/1.1\r\n\r\n",
		"CONNECT [a.test]:443 HTTP/1.1\r\n\r\n", "CONNECT 0177.1:443 HTTP/1.1\r\n\r\n",
		"CONNECT 2130706433:443 HTTP/1.1\r\n\r\n", "CONNECT ok.test:443 HTTP/2.0\r\n\r\n",
		"connect ok.test:443 HTTP/1.1\r\n\r\n", "CONNECT ok.test:443\tHTTP/1.1\r\n\r\n",
		"GET http://u:p@ok.test/ HTTP/1.1\r\n\r\n", "GET http:///x HTTP/1.1\r\n\r\n",
		"GET http://ok.test:80:81/ HTTP/1.1\r\n\r\n",
		"GET http://ok.test/\x80 HTTP/1.1\r\n\r\n",
		"GET http://ok.test/ HTTP/1.1\r\n folded: x\r\n\r\n",
		"GET http://ok.test/ HTTP/1.1\r\nA : b\r\n\r\n",
		"GET http://ok.test/ HTTP/1.1\r\nA: b\nB: c\r\n\r\n",
		"GET http://ok.test/ HTTP/1.1\r\nnocolon\r\n\r\n",
		"GET http://ok.test/ HTTP/1.1\r\n: empty\r\n\r\n", "\r\n\r\n", " \r\n\r\n",
		"HTTP/1.1\r\n\r\n"};
	struct message request;
	struct proxy_head head;

	(void)state;
	for (size_t i = 0; i < array_len(bad); i++) {
		if (read_text(bad[i], &request, &head) != -EBADMSG)
			fail_msg("accepted: %s", bad[i]);
		message_fini(&request);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tunnel_names_its_end),
		cmocka_unit_test(a_plain_request_is_rewritten_for_its_server),
		cmocka_unit_test(a_length_is_never_taken_away),
		cmocka_unit_test(the_version_of_the_client_is_kept),
		cmocka_unit_test(everything_else_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
