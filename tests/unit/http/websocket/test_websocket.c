/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "http/server/server_private.h"
#include "http/websocket/websocket_private.h"
#include "websocket_fixture.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static void a_handshake_is_answered(void **state)
{
	static const struct {
		const char *extra, *protocol;
	} cases[] = {
		{UPGRADE, NULL},
		{UPGRADE "Sec-WebSocket-Protocol: chat\r\n", "chat"},
		{UPGRADE "Sec-WebSocket-Protocol: a,chat\r\nSec-WebSocket-Protocol: b\r\n", "chat"},
		{UPGRADE "Sec-WebSocket-Extensions: permessage-deflate\r\n", NULL},
		{UPGRADE "Origin: http://localhost:%u\r\n", NULL},
		{UPGRADE "Sec-Fetch-Site: same-origin\r\n", NULL},
	};
	struct site *site = *state;

	for (size_t i = 0; i < array_len(cases); i++) {
		int fd = client_connect(site->port);
		char extra[1024], value[256];
		struct reply reply;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(extra, sizeof(extra), cases[i].extra, site->port);
#pragma GCC diagnostic pop
		client_request(fd, site->port, "GET /socket", extra, NULL);
		client_receive(fd, &reply, false);
		assert_int_equal(reply.status, 101);
		assert_string_equal(reply_header(&reply, "Upgrade", value), "websocket");
		assert_string_equal(reply_header(&reply, "Connection", value), "Upgrade");
		assert_string_equal(reply_header(&reply, "Sec-WebSocket-Accept", value), ACCEPT);
		assert_null(reply_header(&reply, "Sec-WebSocket-Extensions", value));
		assert_non_null(reply_header(&reply, "X-Request-ID", value));
		if (cases[i].protocol)
			assert_string_equal(reply_header(&reply, "Sec-WebSocket-Protocol", value),
				cases[i].protocol);
		else
			assert_null(reply_header(&reply, "Sec-WebSocket-Protocol", value));
		reply_fini(&reply);
		site_wait(site, &site->opened, (unsigned)i + 1);
		close(fd);
	}
	site_wait(site, &site->gone, array_len(cases));
}

static void what_is_no_handshake_is_refused(void **state)
{
#define ASK(upgrade, connection, version, key)                                                     \
	WITH_TOKEN "Upgrade: " upgrade "\r\nConnection: " connection                               \
		   "\r\nSec-WebSocket-Version: " version "\r\nSec-WebSocket-Key: " key "\r\n"
	static const struct {
		const char *line, *extra;
		int status;
	} cases[] = {
		{"GET /socket", WITH_TOKEN, 426},
		{"GET /socket", ASK("h2c", "Upgrade", "13", KEY), 426},
		{"GET /socket", ASK("websocket", "keep-alive", "13", KEY), 426},
		{"GET /socket", ASK("websocket", "Upgrade", "8", KEY), 426},
		{"GET /socket", ASK("websocket", "Upgrade", "", KEY), 426},
		{"HEAD /socket", UPGRADE, 426},
		{"GET /socket", ASK("websocket", "Upgrade", "13", "short=="), 400},
		{"GET /socket", ASK("websocket", "Upgrade", "13", "dGhlIHNhbXBsZSBub25jZ!=="), 400},
		{"GET /socket", ASK("websocket", "Upgrade", "13", "dGhlIHNhbXBsZSBub25jZQAA"), 400},
		{"GET /socket", UPGRADE "Sec-WebSocket-Key: " KEY "\r\n", 400},
		{"GET /socket", UPGRADE "Sec-WebSocket-Protocol: other, Chat\r\n", 400},
		{"GET /socket", UPGRADE "Origin: http://evil.example\r\n", 403},
		{"GET /socket", UPGRADE "Origin: null\r\n", 403},
		{"GET /socket", UPGRADE "Sec-Fetch-Site: cross-site\r\n", 403},
		{"GET /socket", "Connection: Upgrade\r\nUpgrade: websocket\r\n", 401},
		{"GET /socket?fail=1", UPGRADE, 409},
	};
	struct site *site = *state;
	struct reply reply;
	char value[256];
	int fd;

	for (size_t i = 0; i < array_len(cases); i++) {
		client_call(site->port, cases[i].line, cases[i].extra, NULL, &reply);
		assert_int_equal(reply.status, cases[i].status);
		if (reply.status == 426) {
			assert_string_equal(reply_header(&reply, "Upgrade", value), "websocket");
			assert_non_null(reply_header(&reply, "Connection", value));
			assert_string_equal(
				reply_header(&reply, "Sec-WebSocket-Version", value), "13");
		}
		if (strncmp(cases[i].line, "GET", 3) == 0)
			assert_non_null(strstr(reply.body, "\"error\""));
		reply_fini(&reply);
	}
	client_call(site->port, "GET /socket", UPGRADE, "{}", &reply);
	assert_int_equal(reply.status, 400);
	reply_fini(&reply);
	fd = client_connect(site->port);
	client_print(
		fd, "GET /socket HTTP/1.0\r\nHost: 127.0.0.1:%u\r\n" UPGRADE "\r\n", site->port);
	client_receive(fd, &reply, true);
	assert_int_equal(reply.status, 426);
	reply_fini(&reply);
	close(fd);
	/* Only the one that had been taken and then was not: it ended without having opened. */
	site_wait(site, &site->gone, 1);
	assert_int_equal(site_count(site, &site->gone), 1);
	assert_int_equal(site_count(site, &site->opened), 0);
}

static void messages_go_both_ways_whole(void **state)
{
	static const size_t sizes[] = {0, 1, 125, 126, 127, 4090, 4096, 65535, 65536};
	static char data[WEBSOCKET_MESSAGE_MAX];
	struct site *site = *state;
	int fd = site_connect(site);

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (char)(i * 7 + i / 251);
	frame_send(fd, FIN | TEXT, "gr\xc3\xbc\xc3\x9f", 6);
	frame_expect(fd, TEXT, "gr\xc3\xbc\xc3\x9f", 6);
	assert_true(site_saw_text(site));
	for (size_t i = 0; i < array_len(sizes); i++) {
		frame_send(fd, FIN | BINARY, data, sizes[i]);
		frame_expect(fd, BINARY, data, sizes[i]);
		assert_false(site_saw_text(site));
	}
	close(fd);
}

static void what_comes_with_the_handshake_is_not_lost(void **state)
{
	static char data[10000];
	struct site *site = *state;
	int fd = client_connect(site->port);
	static uint8_t out[20000];
	struct reply reply;
	size_t len;

	memset(data, 'e', sizeof(data));
	len = (size_t)snprintf((char *)out, sizeof(out),
		"GET /socket HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n" UPGRADE "\r\n", site->port);
	len += frame_make(out + len, FIN | TEXT, "early", 5);
	len += frame_make(out + len, FIN | BINARY, data, sizeof(data));
	len += frame_make(out + len, FIN | TEXT, "last", 4) - 2;
	client_send(fd, out, len);
	client_receive(fd, &reply, false);
	assert_int_equal(reply.status, 101);
	reply_fini(&reply);
	frame_expect(fd, TEXT, "early", 5);
	frame_expect(fd, BINARY, data, sizeof(data));
	client_send(fd, out + len, 2);
	frame_expect(fd, TEXT, "last", 4);
	close(fd);
}

static void a_message_may_come_in_fragments_with_pings_between(void **state)
{
	struct site *site = *state;
	int fd = site_connect(site);
	uint8_t out[64];
	size_t len;

	assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)), 0);
	frame_send(fd, TEXT, "one \xc3", 5);
	frame_send(fd, FIN | PING, "still there?", 12);
	frame_expect(fd, PONG, "still there?", 12);
	frame_send(fd, CONTINUATION, "", 0);
	frame_send(fd, FIN | PONG, "unasked", 7);
	frame_send(fd, CONTINUATION, "\xa4 two ", 6);
	/* The last byte by byte. */
	len = frame_make(out, FIN | CONTINUATION, "three", 5);
	for (size_t i = 0; i < len; i++)
		client_send(fd, out + i, 1);
	frame_expect(fd, TEXT, "one \xc3\xa4 two three", 16);
	assert_int_equal(site_count(site, &site->messages), 1);
	close(fd);
}

static void what_breaks_the_rules_is_closed_with_the_reason(void **state)
{
#define FRAME(status, ...)                                                                         \
	{                                                                                          \
		status, {__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})                      \
	}
	/* With a mask of zeros, where there is one. */
	static const struct {
		unsigned status;
		uint8_t bytes[16];
		size_t len;
	} cases[] = {
		FRAME(1002, 0x81, 0x02, 'h', 'i'),			     /* not masked */
		FRAME(1002, 0xc1, 0x81, 0, 0, 0, 0, 'x'),		     /* reserved bit */
		FRAME(1002, 0x83, 0x81, 0, 0, 0, 0, 'x'),		     /* no such opcode */
		FRAME(1002, 0x8b, 0x81, 0, 0, 0, 0, 'x'),		     /* nor this */
		FRAME(1002, 0x80, 0x81, 0, 0, 0, 0, 'x'),		     /* continues nothing */
		FRAME(1002, 0x01, 0x80, 0, 0, 0, 0, 0x81, 0x80, 0, 0, 0, 0), /* not continued */
		FRAME(1002, 0x09, 0x80, 0, 0, 0, 0),			     /* ping in pieces */
		FRAME(1002, 0x89, 0xfe, 0, 126, 0, 0, 0, 0),		     /* long ping */
		FRAME(1002, 0x82, 0xfe, 0, 1, 0, 0, 0, 0, 'x'),		     /* long way to say 1 */
		FRAME(1002, 0x82, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 1),	     /* negative length */
		FRAME(1002, 0x88, 0x82, 0, 0, 0, 0, 1005 >> 8, 1005 & 255),  /* not to be sent */
		FRAME(1007, 0x81, 0x82, 0, 0, 0, 0, 0xc0, 0xaf),	     /* overlong */
		FRAME(1007, 0x81, 0x83, 0, 0, 0, 0, 0xed, 0xa0, 0x80),	     /* surrogate */
		FRAME(1007, 0x81, 0x81, 0, 0, 0, 0, 0xc3),		     /* half a character */
		FRAME(1009, 0x82, 0xff, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 'x'),
		FRAME(1009, 0x82, 0xff, 0x7f, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0, 'x'),
	};
	struct site *site = *state;

	for (size_t i = 0; i < array_len(cases); i++) {
		int fd = site_connect(site);

		client_send(fd, cases[i].bytes, cases[i].len);
		frame_expect_close(fd, cases[i].status);
		close(fd);
		site_wait(site, &site->gone, (unsigned)i + 1);
	}
	assert_int_equal(site_count(site, &site->messages), 0);
}

static void a_message_has_a_maximum_also_in_fragments(void **state)
{
	static char data[WEBSOCKET_MESSAGE_MAX];
	struct site *site = *state;
	int fd = site_connect(site);

	memset(data, 'x', sizeof(data));
	frame_send(fd, TEXT, data, sizeof(data) - 1);
	frame_send(fd, FIN | CONTINUATION, data, 1);
	frame_expect(fd, TEXT, data, sizeof(data));
	frame_send(fd, BINARY, data, sizeof(data));
	frame_send(fd, FIN | CONTINUATION, data, 1);
	frame_expect_close(fd, 1009);
	close(fd);
	site_wait(site, &site->gone, 1);
	assert_int_equal(site_count(site, &site->messages), 1);
}

static void who_still_sends_learns_why_it_was_closed(void **state)
{
	static char data[4 * 1024 * 1024];
	struct site *site = *state;
	int fd = site_connect(site);

	frame_send(fd, FIN | BINARY, data, sizeof(data));
	frame_expect_close(fd, 1009);
	close(fd);
}

/* Sends until there is no room; how many messages that took. */
static unsigned fill(struct site *site, const char *data, size_t len)
{
	unsigned sent = 0;
	int r;

	while ((r = websocket_send(site->websocket, false, data, len)) == 0)
		sent++;
	assert_int_equal(r, -EAGAIN);
	return sent;
}

static void a_client_that_does_not_read_stops_the_sender(void **state)
{
	static char data[10000];
	struct site *site = *state;
	int fd = site_connect(site);
	unsigned sent;

	memset(data, 'b', sizeof(data));
	sent = fill(site, data, sizeof(data));
	/* Its window, our part of the kernel's buffer, and the queue. */
	assert_in_range(sent * sizeof(data), CAPACITY / 2, 16u * 1024 * 1024);
	/* It can still be heard. */
	site_set(site, &site->is_echo, false);
	frame_send(fd, FIN | TEXT, "^C", 2);
	site_wait(site, &site->messages, 1);
	assert_int_equal(websocket_send(site->websocket, true, data, sizeof(data)), -EAGAIN);
	assert_int_equal(site_count(site, &site->rooms), 0);
	for (unsigned i = 0; i < sent; i++)
		frame_expect(fd, BINARY, data, sizeof(data));
	site_wait(site, &site->rooms, 1);
	assert_int_equal(websocket_send(site->websocket, true, "on", 2), 0);
	frame_expect(fd, TEXT, "on", 2);
	assert_int_equal(site_count(site, &site->rooms), 1);
	close(fd);
}

static void an_empty_queue_takes_any_message(void **state)
{
	static char data[CAPACITY + 5000];
	struct site *site = *state;
	int fd = site_connect(site);

	memset(data, 'l', sizeof(data));
	assert_int_equal(websocket_send(site->websocket, false, data, sizeof(data)), 0);
	frame_expect(fd, BINARY, data, sizeof(data));
	close(fd);
}

static void pings_without_end_do_not_pile_up(void **state)
{
	static char data[10000];
	struct site *site = *state;
	int fd = site_connect(site);
	uint8_t out[6 + 125];
	size_t len = frame_make(out, FIN | PING, data, 125);
	struct frame *frame = malloc(sizeof(*frame));
	unsigned sent, data_frames = 0, pongs = 0, pings = 0;
	struct pollfd poll_fd = {fd, POLLOUT, 0};

	assert_non_null(frame);
	sent = fill(site, data, sizeof(data));
	/* With nobody to take the answers, reading must stop at some time. */
	while (poll(&poll_fd, 1, 200) > 0) {
		ssize_t n = send(fd, out, len, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n == (ssize_t)len)
			pings++;
		else if (n > 0)
			client_send(fd, out + n, len - (size_t)n);
		assert_true(pings < 1000u * 1000);
	}
	/* And go on: all that was sent and all answers, then an echo. */
	while (data_frames < sent || pongs < pings) {
		frame_receive(fd, frame);
		assert_true(frame->opcode == BINARY || frame->opcode == PONG);
		data_frames += frame->opcode == BINARY;
		pongs += frame->opcode == PONG;
	}
	frame_send(fd, FIN | TEXT, "x", 1);
	do
		frame_receive(fd, frame);
	while (frame->opcode == PONG);
	assert_int_equal(frame->opcode, TEXT);
	free(frame);
	close(fd);
}

static void a_paused_one_delivers_nothing(void **state)
{
	static char data[32768];
	struct site *site = *state;
	int fd = site_connect(site);
	struct pollfd poll_fd = {fd, POLLOUT, 0};
	size_t buffered = 0;
	uint8_t out[64];
	size_t len;

	site_set(site, &site->pauses, true);
	/* In one segment: what was read with the first must wait as well. */
	len = frame_make(out, FIN | TEXT, "one", 3);
	len += frame_make(out + len, FIN | TEXT, "two", 3);
	len += frame_make(out + len, FIN | TEXT, "three", 5);
	client_send(fd, out, len);
	frame_expect(fd, TEXT, "one", 3);
	assert_int_equal(site_count(site, &site->messages), 1);
	websocket_pause(site->websocket, false);
	frame_expect(fd, TEXT, "two", 3);
	assert_int_equal(site_count(site, &site->messages), 2);
	/* The client's own sending comes to a halt. */
	while (poll(&poll_fd, 1, 200) > 0) {
		ssize_t n = send(fd, data, sizeof(data), MSG_DONTWAIT | MSG_NOSIGNAL);

		buffered += n > 0 ? (size_t)n : 0;
		assert_true(buffered < 64u * 1024 * 1024);
	}
	assert_int_equal(site_count(site, &site->messages), 2);
	site_set(site, &site->pauses, false);
	websocket_pause(site->websocket, false);
	frame_expect(fd, TEXT, "three", 5);
	/* The rest is no frames at all. */
	frame_expect_close(fd, 1002);
	close(fd);
	site_wait(site, &site->gone, 1);
}

static void a_close_waits_until_what_came_before_it_is_delivered(void **state)
{
	struct site *site = *state;
	int fd = site_connect(site);
	uint8_t out[64];
	size_t len;

	site_set(site, &site->pauses, true);
	len = frame_make(out, FIN | TEXT, "one", 3);
	len += frame_make(out + len, FIN | TEXT, "two", 3);
	len += frame_make(out + len, FIN | CLOSE, "\x03\xe8", 2);
	client_send(fd, out, len);
	frame_expect(fd, TEXT, "one", 3);
	websocket_pause(site->websocket, false);
	frame_expect(fd, TEXT, "two", 3);
	frame_expect_close(fd, 1000);
	close(fd);
	site_wait(site, &site->gone, 1);
	assert_int_equal(site_count(site, &site->messages), 2);
}

static void a_close_of_ours_comes_after_what_was_sent(void **state)
{
	static char data[10000];
	struct site *site = *state;
	int fd = site_connect(site);
	char reason[200], expected[126] = "\x03\xe8";
	unsigned sent;

	sent = fill(site, data, sizeof(data));
	/* Cut where a character ends: 122 bytes are whole ones. */
	for (size_t i = 0; i < 66; i++)
		memcpy(reason + 3 * i, "\xe2\x82\xac", 4);
	memmove(reason + 2, reason, 197);
	memcpy(reason, "xx", 2);
	websocket_close(site->websocket, WEBSOCKET_NORMAL, reason);
	websocket_close(site->websocket, WEBSOCKET_FAILED, "too late");
	assert_int_equal(websocket_send(site->websocket, true, "late", 4), -EPIPE);
	for (unsigned i = 0; i < sent; i++)
		frame_expect(fd, BINARY, data, sizeof(data));
	memcpy(expected + 2, reason, 122);
	frame_expect(fd, CLOSE, expected, 2 + 122);
	/* What crosses it on the way is dropped. */
	frame_send(fd, FIN | TEXT, "crossing", 8);
	frame_send(fd, FIN | PING, "", 0);
	assert_int_equal(site_count(site, &site->gone), 0);
	frame_send(fd, FIN | CLOSE, "\x03\xe8", 2);
	assert_true(client_sees_close(fd));
	close(fd);
	site_wait(site, &site->gone, 1);
	assert_int_equal(site_count(site, &site->messages), 0);
}

static void a_close_that_is_not_answered_ends_after_a_while(void **state)
{
	static char data[10000];
	struct site *site = *state;
	int fd = site_connect(site);
	int deaf = site_connect(site);

	fill(site, data, sizeof(data));
	websocket_close(site->websocket, WEBSOCKET_REFUSED, NULL);
	site_wait(site, &site->gone, 1);
	/* This one is of the first client, whose end the other's did not touch. */
	frame_send(fd, FIN | PING, "", 0);
	frame_expect(fd, PONG, "", 0);
	close(fd);
	close(deaf);
}

static void a_close_of_the_client_is_answered(void **state)
{
	struct site *site = *state;
	int fd = site_connect(site);

	frame_send(fd, FIN | TEXT, "before", 6);
	frame_send(fd, FIN | CLOSE, "\x0f\xa0reason", 8);
	frame_expect(fd, TEXT, "before", 6);
	frame_expect_close(fd, 4000);
	close(fd);
	site_wait(site, &site->gone, 1);
	fd = site_connect(site);
	frame_send(fd, FIN | CLOSE, "", 0);
	frame_expect_close(fd, 0);
	close(fd);
	site_wait(site, &site->gone, 2);
}

static void reset(int fd)
{
	struct linger linger = {1, 0};

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	close(fd);
}

static void a_client_that_vanishes_is_gone(void **state)
{
	static char data[10000];
	struct site *site = *state;
	int fd = site_connect(site);

	close(fd);
	site_wait(site, &site->gone, 1);
	assert_int_equal(websocket_send(site->websocket, true, "x", 1), -EPIPE);
	fd = site_connect(site);
	frame_send(fd, TEXT, "half of", 7);
	reset(fd);
	site_wait(site, &site->gone, 2);
	fd = site_connect(site);
	fill(site, data, sizeof(data));
	reset(fd);
	site_wait(site, &site->gone, 3);
	fd = site_connect(site);
	websocket_pause(site->websocket, true);
	reset(fd);
	site_wait(site, &site->gone, 4);
}

static void a_client_that_answers_no_ping_is_gone(void **state)
{
	struct site *site = *state;
	int fd = site_connect(site);
	uint64_t now = clock_steady_ms() + WEBSOCKET_PING_MS + 1000;

	websocket_sweep(&site->server->websockets, now);
	frame_expect(fd, PING, "", 0);
	websocket_sweep(&site->server->websockets, now + WEBSOCKET_PING_MS - 1);
	for (int i = 1; i < 4; i++) {
		frame_send(fd, FIN | PONG, "", 0);
		frame_send(fd, FIN | TEXT, "x", 1);
		frame_expect(fd, TEXT, "x", 1);
		websocket_sweep(&site->server->websockets, now += WEBSOCKET_PING_MS);
		frame_expect(fd, PING, "", 0);
	}
	websocket_sweep(&site->server->websockets, now += WEBSOCKET_PING_MS);
	frame_expect(fd, PING, "", 0);
	/* Not while we do not listen. */
	websocket_pause(site->websocket, true);
	for (int i = 0; i < 4; i++) {
		websocket_sweep(&site->server->websockets, now += WEBSOCKET_PING_MS);
		frame_expect(fd, PING, "", 0);
	}
	websocket_pause(site->websocket, false);
	websocket_sweep(&site->server->websockets, now += WEBSOCKET_PING_MS);
	frame_expect(fd, PING, "", 0);
	websocket_sweep(&site->server->websockets, now += WEBSOCKET_PING_MS);
	frame_expect(fd, PING, "", 0);
	assert_int_equal(site_count(site, &site->gone), 0);
	websocket_sweep(&site->server->websockets, now += WEBSOCKET_PING_MS);
	assert_true(client_sees_close(fd));
	site_wait(site, &site->gone, 1);
	close(fd);
}

static void a_server_that_closes_says_so(void **state)
{
	struct site *site = mem_new(sizeof(*site));
	int fds[5];
	uint64_t began;

	(void)state;
	site_open(site, 0);
	for (size_t i = 0; i < array_len(fds); i++) {
		fds[i] = site_connect(site);
		/* The answers to the close frames to come. */
		frame_send(fds[i], FIN | TEXT, "x", 1);
		frame_expect(fds[i], TEXT, "x", 1);
	}
	began = clock_steady_ms();
	site_close(site, 5000);
	/* Nobody answered, but nobody waits for ever. */
	assert_true(clock_steady_ms() - began < 4500);
	assert_int_equal(site->gone, array_len(fds));
	for (size_t i = 0; i < array_len(fds); i++) {
		frame_expect_close(fds[i], 1001);
		close(fds[i]);
	}
	free(site);
}

static void a_server_in_a_hurry_cuts(void **state)
{
	static char data[10000];
	struct site *site = mem_new(sizeof(*site));
	int fd, other;

	(void)state;
	site_open(site, 0);
	other = site_connect(site);
	fd = site_connect(site);
	fill(site, data, sizeof(data));
	site_close(site, 0);
	assert_int_equal(site->gone, 2);
	assert_true(client_sees_close(fd));
	close(fd);
	close(other);
	free(site);
}

/* The status of a request on a connection of its own, without the handshake. */
static int ask_for_socket(const struct site *site)
{
	struct reply reply;
	int status;

	client_call(site->port, "GET /socket", WITH_TOKEN, NULL, &reply);
	status = reply.status;
	reply_fini(&reply);
	return status;
}

static void a_websocket_keeps_its_place_among_the_connections(void **state)
{
	struct site *site = mem_new(sizeof(*site));
	int first, second, status = 429;

	(void)state;
	site_open(site, 8); /* of which an owner has two */
	first = site_connect(site);
	second = site_connect(site);
	assert_int_equal(ask_for_socket(site), 429);
	close(first);
	for (int tries = 0; tries < 1000 && status == 429; tries++) {
		usleep(10000);
		status = ask_for_socket(site);
	}
	assert_int_equal(status, 426);
	frame_send(second, FIN | TEXT, "x", 1);
	frame_expect(second, TEXT, "x", 1);
	close(second);
	site_close(site, 5000);
	free(site);
}

struct sender {
	pthread_t thread;
	struct site *site;
	char byte;
};

static void *send_many(void *arg)
{
	struct sender *sender = arg;
	char data[3000];

	memset(data, sender->byte, sizeof(data));
	for (unsigned i = 0; i < 500; i++) {
		unsigned rooms = site_count(sender->site, &sender->site->rooms);
		int r = websocket_send(sender->site->websocket, false, data, 1 + i * 5 % 3000);

		if (r == -EAGAIN) {
			site_wait(sender->site, &sender->site->rooms, rooms + 1);
			i--;
		} else {
			assert_int_equal(r, 0);
		}
	}
	return NULL;
}

static void messages_of_many_threads_do_not_mix(void **state)
{
	struct site *site = *state;
	int fd = site_connect(site);
	struct frame *frame = malloc(sizeof(*frame));
	struct sender senders[4];
	unsigned pongs = 0;

	assert_non_null(frame);
	for (size_t i = 0; i < array_len(senders); i++) {
		senders[i] = (struct sender){.site = site, .byte = (char)('a' + i)};
		pthread_create(&senders[i].thread, NULL, send_many, &senders[i]);
	}
	for (unsigned i = 0; i < array_len(senders) * 500;) {
		if (i % 10 == 0)
			frame_send(fd, FIN | PING, "?", 1);
		frame_receive(fd, frame);
		if (frame->opcode == PONG) {
			pongs++;
			continue;
		}
		assert_int_equal(frame->opcode, BINARY);
		for (uint64_t k = 1; k < frame->len; k++)
			assert_int_equal(frame->data[k], frame->data[0]);
		i++;
	}
	for (size_t i = 0; i < array_len(senders); i++)
		pthread_join(senders[i].thread, NULL);
	assert_true(pongs > 0);
	free(frame);
	close(fd);
}

/* Opening, closing from both sides and the server's end, all at once. */
static void *come_and_go(void *arg)
{
	struct sender *client = arg;

	for (unsigned i = 0; i < 40; i++) {
		int fd = client_connect(client->site->port);
		struct reply reply;

		client_request(fd, client->site->port, "GET /socket", UPGRADE, NULL);
		if (i % 4 != 0) {
			client_receive(fd, &reply, false);
			reply_fini(&reply);
		}
		if (i % 4 == 2)
			reset(fd);
		else
			close(fd);
	}
	return NULL;
}

static void many_may_come_and_go(void **state)
{
	struct site *site = *state;
	struct sender clients[4];

	for (size_t i = 0; i < array_len(clients); i++) {
		clients[i] = (struct sender){.site = site};
		pthread_create(&clients[i].thread, NULL, come_and_go, &clients[i]);
	}
	for (unsigned i = 0; i < 50; i++) {
		struct websocket *websocket;

		site_wait(site, &site->opened, 2 * i);
		pthread_mutex_lock(&site->lock);
		websocket = site->websocket ? websocket_ref(site->websocket) : NULL;
		pthread_mutex_unlock(&site->lock);
		if (websocket && websocket_send(websocket, true, "x", 1) == 0)
			websocket_close(websocket, WEBSOCKET_NORMAL, NULL);
		websocket_unref(websocket);
	}
	for (size_t i = 0; i < array_len(clients); i++)
		pthread_join(clients[i].thread, NULL);
}

static void a_websocket_closes_when_its_token_is_revoked(void **state)
{
	struct site *site = *state;
	int fd = site_connect(site);
	struct reply reply;

	client_call(site->port, "DELETE /token/two", WITH_TOKEN, NULL, &reply);
	reply_fini(&reply);
	frame_send(fd, FIN | TEXT, "still", 5);
	frame_expect(fd, TEXT, "still", 5);
	client_call(site->port, "DELETE /token/one", WITH_TOKEN, NULL, &reply);
	assert_int_equal(reply.status, 204);
	reply_fini(&reply);
	frame_expect_close(fd, WEBSOCKET_REFUSED);
	site_wait(site, &site->gone, 1);
	close(fd);
}

static void a_websocket_closes_when_its_token_expires(void **state)
{
	struct site *site = *state;
	int fd;

	atomic_store(&site->expires_at_ms, clock_wall_ms() + 300);
	fd = site_connect(site);
	frame_expect_close(fd, WEBSOCKET_REFUSED);
	site_wait(site, &site->gone, 1);
	close(fd);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, site_setup, site_teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_handshake_is_answered),
		TEST(a_websocket_closes_when_its_token_is_revoked),
		TEST(a_websocket_closes_when_its_token_expires),
		TEST(what_is_no_handshake_is_refused),
		TEST(messages_go_both_ways_whole),
		TEST(what_comes_with_the_handshake_is_not_lost),
		TEST(a_message_may_come_in_fragments_with_pings_between),
		TEST(what_breaks_the_rules_is_closed_with_the_reason),
		TEST(a_message_has_a_maximum_also_in_fragments),
		TEST(who_still_sends_learns_why_it_was_closed),
		TEST(a_client_that_does_not_read_stops_the_sender),
		TEST(an_empty_queue_takes_any_message),
		TEST(pings_without_end_do_not_pile_up),
		TEST(a_paused_one_delivers_nothing),
		TEST(a_close_waits_until_what_came_before_it_is_delivered),
		TEST(a_close_of_ours_comes_after_what_was_sent),
		TEST(a_close_that_is_not_answered_ends_after_a_while),
		TEST(a_close_of_the_client_is_answered),
		TEST(a_client_that_vanishes_is_gone),
		TEST(a_client_that_answers_no_ping_is_gone),
		cmocka_unit_test(a_server_that_closes_says_so),
		cmocka_unit_test(a_server_in_a_hurry_cuts),
		cmocka_unit_test(a_websocket_keeps_its_place_among_the_connections),
		TEST(messages_of_many_threads_do_not_mix),
		TEST(many_may_come_and_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
