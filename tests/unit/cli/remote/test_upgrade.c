/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/remote/peer.h"
#include "cli/remote/upgrade.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The example of RFC 6455. */
#define KEY    "dGhlIHNhbXBsZSBub25jZQ=="
#define ACCEPT "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
#define HEAD                                                                                       \
	"HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\n"                               \
	"Connection: keep-alive, Upgrade\r\n" ACCEPT
#define PTY "Sec-WebSocket-Protocol: pty.v1\r\n"

static struct upgrade_answer answer;

static int parse(const char *text, size_t len)
{
	return upgrade_parse(text, len, KEY, "pty.v1", &answer);
}

static void the_answer_of_the_standard_is_taken_and_frames_begin_behind_it(void **state)
{
	static const char text[] = HEAD PTY "\r\n\x82\x01x";
	size_t head_len = sizeof(text) - 1 - 3;

	(void)state;
	for (size_t len = 0; len < head_len; len++)
		assert_int_equal(parse(text, len), UPGRADE_MORE);
	assert_int_equal(parse(text, sizeof(text) - 1), UPGRADE_DONE);
	assert_int_equal(answer.head_len, head_len);
}

static void an_upgrade_that_is_not_ours_is_refused(void **state)
{
	static const char *const bad[] = {
		HEAD "\r\n", /* no subprotocol */
		HEAD "Sec-WebSocket-Protocol: other\r\n\r\n",
		HEAD PTY PTY "\r\n",
		HEAD PTY ACCEPT "\r\n",
		HEAD PTY "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n",
		HEAD PTY "Upgrade: h2c\r\n\r\n",
		HEAD PTY " folded\r\n\r\n",
		HEAD PTY "no colon\r\n\r\n",
		"HTTP/1.1 101 X\r\nUpgrade: websocket\r\n" ACCEPT PTY "\r\n", /* no Connection */
		"HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
		"Sec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n" PTY "\r\n",
		"HTTP/1.0 101 X\r\n\r\n",
		"HTTP/1.1 10 X\r\n\r\n",
		"HTTP/1.1 1010 X\r\n\r\n",
		"HTTP/1.1 100 Continue\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
		"SSH-2.0-OpenSSH\r\n\r\n",
	};

	(void)state;
	for (size_t i = 0; i < array_len(bad); i++)
		assert_int_equal(parse(bad[i], strlen(bad[i])), -EPROTO);
	assert_int_equal(
		parse(HEAD "X: \0\r\n" PTY "\r\n", sizeof(HEAD "X: \0\r\n" PTY "\r\n") - 1),
		-EPROTO);
}

static void an_error_keeps_its_document(void **state)
{
	static const char text[] =
		"HTTP/1.1 404 Not Found\r\ncontent-length: 12\r\n\r\n{\"error\":{}}";

	(void)state;
	assert_int_equal(parse(text, sizeof(text) - 1), UPGRADE_REFUSED);
	assert_int_equal(answer.status, 404);
	assert_int_equal(answer.body_len, 12);
	assert_string_equal(text + answer.head_len, "{\"error\":{}}");
}

static void a_head_without_end_is_refused(void **state)
{
	char *text = malloc(UPGRADE_HEAD_MAX);

	(void)state;
	memset(text, 'a', UPGRADE_HEAD_MAX);
	assert_int_equal(parse(text, UPGRADE_HEAD_MAX - 1), UPGRADE_MORE);
	assert_int_equal(parse(text, UPGRADE_HEAD_MAX), -EPROTO);
	free(text);
}

static void expect_request(const char *url, const char *first_lines)
{
	struct buf request = BUF_INIT(UPGRADE_REQUEST_MAX);
	char key[UPGRADE_KEY_LEN + 1];
	struct client *client;
	struct err err;
	char *text;

	assert_int_equal(
		client_new(&(struct peer_address){.url = url}, "secret", &client, &err), 0);
	assert_int_equal(upgrade_request(client, "/v1/x?a=b", "pty.v1", key, &request, &err), 0);
	text = buf_take_str(&request);
	assert_int_equal(strncmp(text, first_lines, strlen(first_lines)), 0);
	assert_non_null(strstr(text, "\r\nAuthorization: Bearer secret\r\n"));
	assert_non_null(strstr(text, key));
	assert_string_equal(text + strlen(text) - 4, "\r\n\r\n");
	free(text);
	client_free(client);
}

static void the_request_names_the_host_as_the_address_does(void **state)
{
	(void)state;
	expect_request(
		"http://127.0.0.1:9090/", "GET /v1/x?a=b HTTP/1.1\r\nHost: 127.0.0.1:9090\r\n");
	expect_request(
		"https://example.org/lot", "GET /lot/v1/x?a=b HTTP/1.1\r\nHost: example.org\r\n");
	expect_request("http://[::1]:9090", "GET /v1/x?a=b HTTP/1.1\r\nHost: [::1]:9090\r\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_answer_of_the_standard_is_taken_and_frames_begin_behind_it),
		cmocka_unit_test(an_upgrade_that_is_not_ours_is_refused),
		cmocka_unit_test(an_error_keeps_its_document),
		cmocka_unit_test(a_head_without_end_is_refused),
		cmocka_unit_test(the_request_names_the_host_as_the_address_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
