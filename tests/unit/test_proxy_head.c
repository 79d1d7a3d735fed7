/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/proxy_head.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void a_tunnel_names_its_end(void **state)
{
	static const char text[] = "CONNECT Ok.Test:443 HTTP/1.1\r\nHost: other.test\r\n\r\nrest";
	struct proxy_head head;

	(void)state;
	assert_int_equal(proxy_head_read(text, strlen(text), &head), 1);
	assert_true(head.is_connect);
	assert_string_equal(head.name, "ok.test");
	assert_int_equal(head.port, 443);
	assert_int_equal(head.len, strlen(text) - 4);
	assert_int_equal(proxy_head_read("CONNECT 10.0.0.5:22 HTTP/1.0\r\n\r\n", 32, &head), 1);
	assert_true(head.is_address);
	assert_int_equal(ntohl(head.address.s_addr), 0x0a000005);
}

static void a_plain_request_is_rewritten_for_its_server(void **state)
{
	static const char text[] =
		"POST http://ok.test:81?q=1 HTTP/1.1\r\nHost: evil.test\r\n"
		"proxy-connection: keep-alive\r\nConnection: keep-alive\r\n"
		"Proxy-Authorization: Basic eA==\r\nContent-Length: 2\r\nX-A: b\r\n\r\nhi";
	struct buf out = BUF_INIT(1024);
	struct proxy_head head;

	(void)state;
	assert_int_equal(proxy_head_read(text, strlen(text), &head), 1);
	assert_false(head.is_connect);
	assert_int_equal(head.port, 81);
	proxy_head_write(text, &head, &out);
	buf_append(&out, "", 1);
	assert_string_equal((const char *)out.data,
		"POST /?q=1 HTTP/1.1\r\nHost: ok.test:81\r\nConnection: close\r\n"
		"Content-Length: 2\r\nX-A: b\r\n\r\n");
	buf_fini(&out);
}

/* A client of an older version does not understand answers of a newer. */
static void the_version_of_the_client_is_kept(void **state)
{
	static const char text[] = "GET http://ok.test/x HTTP/1.0\r\n\r\n";
	struct buf out = BUF_INIT(1024);
	struct proxy_head head;

	(void)state;
	assert_int_equal(proxy_head_read(text, strlen(text), &head), 1);
	proxy_head_write(text, &head, &out);
	buf_append(&out, "", 1);
	assert_string_equal((const char *)out.data,
		"GET /x HTTP/1.0\r\nHost: ok.test\r\nConnection: close\r\n\r\n");
	buf_fini(&out);
}

static void a_head_may_come_in_pieces(void **state)
{
	static const char text[] = "GET http://ok.test/ HTTP/1.1\r\nA: b\r\n\r\n";
	struct proxy_head head;

	(void)state;
	for (size_t len = 0; len < strlen(text); len++)
		assert_int_equal(proxy_head_read(text, len, &head), 0);
	assert_int_equal(proxy_head_read(text, strlen(text), &head), 1);
	assert_int_equal(head.port, 80);
}

static void everything_else_is_refused(void **state)
{
	static const char *const bad[] = {"GET / HTTP/1.1\r\n\r\n", "GET ok.test/ HTTP/1.1\r\n\r\n",
		"GET https://ok.test/ HTTP/1.1\r\n\r\n", "CONNECT ok.test HTTP/1.1\r\n\r\n",
		"CONNECT ok.test:0 HTTP/1.1\r\n\r\n", "CONNECT ok.test:65536 HTTP/1.1\r\n\r\n",
		"CONNECT ok.test:443/ HTTP/1.1\r\n\r\n", "CONNECT u@ok.test:443 HTTP/1.1\r\n\r\n",
		"CONNECT [::1]:443 HTTP/1.1\r\n\r\n", "CONNECT 0177.1:443 HTTP/1.1\r\n\r\n",
		"CONNECT 2130706433:443 HTTP/1.1\r\n\r\n", "CONNECT ok.test:443 HTTP/2.0\r\n\r\n",
		"CONNECT ok.test:443  HTTP/1.1\r\n\r\n", "CONNECT  ok.test:443 HTTP/1.1\r\n\r\n",
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
	struct proxy_head head;

	(void)state;
	for (size_t i = 0; i < array_len(bad); i++) {
		if (proxy_head_read(bad[i], strlen(bad[i]), &head) != -EBADMSG)
			fail_msg("accepted: %s", bad[i]);
	}
	assert_int_equal(proxy_head_read("CONNECT a\0b:443", 15, &head), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tunnel_names_its_end),
		cmocka_unit_test(a_plain_request_is_rewritten_for_its_server),
		cmocka_unit_test(the_version_of_the_client_is_kept),
		cmocka_unit_test(a_head_may_come_in_pieces),
		cmocka_unit_test(everything_else_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
