/* SPDX-License-Identifier: Apache-2.0 */
#include "http/message.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define OUT_MAX 65536

/* Feeds a whole message in pieces of a size, its body re-framed in chunks; 0, or what message_feed() says. */
static ssize_t feed_in_pieces(
	struct message *message, const char *text, size_t len, size_t piece, struct buf *out)
{
	size_t at = 0, end = 0;

	while (at < len) {
		bool had_head = message->has_head;
		ssize_t n;

		end = end + piece < len ? end + piece : len;
		n = message_feed(message, (const uint8_t *)text + at, end - at);
		if (n < 0)
			return n;
		at += (size_t)n;
		if (!had_head && message->has_head) {
			message->out = out;
			message->in_chunks = message->is_chunked;
			end = at;
		}
		if ((n == 0 && end == len) || message->is_complete)
			break;
	}
	return 0;
}

static void assert_read(const char *text, const char *body)
{
	for (size_t piece = 1; piece <= strlen(text); piece++) {
		struct message message = {0};
		struct buf out = BUF_INIT(OUT_MAX);

		message_begin(&message, MESSAGE_REQUEST);
		assert_int_equal(feed_in_pieces(&message, text, strlen(text), piece, &out), 0);
		assert_true(message.is_complete);
		if (piece == strlen(text)) {
			assert_int_equal(out.len, strlen(body));
			assert_memory_equal(out.data, body, out.len);
		}
		buf_fini(&out);
		message_fini(&message);
	}
}

static void assert_refused(enum message_kind type, const char *text, size_t len, int r)
{
	struct message message = {0};
	struct buf out = BUF_INIT(OUT_MAX);

	message_begin(&message, type);
	if (feed_in_pieces(&message, text, len, len, &out) != r)
		fail_msg("not refused: %s", text);
	buf_fini(&out);
	message_fini(&message);
}

#define HEAD "POST / HTTP/1.1\r\nHost: a\r\n"

static void a_head_is_taken_apart(void **state)
{
	static const char text[] =
		"GET /a?b HTTP/1.1\r\nHost:  x \r\nEmpty:\r\nX: 1\r\nx: 2\r\n\r\nrest";
	struct message message = {0};

	(void)state;
	message_begin(&message, MESSAGE_REQUEST);
	assert_int_equal(message_feed(&message, (const uint8_t *)text, 20), 0);
	assert_int_equal(
		message_feed(&message, (const uint8_t *)text, strlen(text)), strlen(text) - 4);
	assert_true(message.has_head && message.is_complete);
	assert_string_equal(message.target.at, "/a?b");
	assert_string_equal(message_get(&message, "host").at, "x");
	assert_string_equal(message_get(&message, "empty").at, "");
	assert_string_equal(message_get(&message, "X").at, "2");
	assert_true(slice_is(message.fields[2].name, "X")); /* whose line follows an empty one */
	assert_string_equal(message.fields[2].value.at, "1");
	assert_null(message_get(&message, "Y").at);
	message_fini(&message);
}

static void no_line_of_a_head_is_read_twice(void **state)
{
	static const char text[] = "GET / HTTP/1.1\r\nHost: x\r\nX: 1\r\n\r\n";
	struct message message = {0};

	(void)state;
	message_begin(&message, MESSAGE_REQUEST);
	for (size_t len = 1; len < strlen(text); len++) {
		size_t lines = 0;

		for (size_t i = 0; i < len; i++)
			lines = text[i] == '\n' ? i + 1 : lines;
		assert_int_equal(message_feed(&message, (const uint8_t *)text, len), 0);
		assert_int_equal(message.checked, lines);
	}
	assert_int_equal(message_feed(&message, (const uint8_t *)text, strlen(text)), strlen(text));
	assert_string_equal(message_get(&message, "X").at, "1");
	message_fini(&message);
}

static void bodies_arrive_however_they_are_cut(void **state)
{
	(void)state;
	assert_read(HEAD "\r\n", "");
	assert_read(HEAD "Content-Length: 5\r\n\r\nhello", "hello");
	assert_read(HEAD "Transfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\n\r\n",
		"3\r\nabc\r\n0\r\n\r\n");
	assert_read(HEAD "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-Sum: 42\r\nY:\r\n\r\n",
		"1\r\na\r\n0\r\nX-Sum: 42\r\nY: \r\n\r\n");
}

static void trailers_change_nothing_of_the_message(void **state)
{
	(void)state;
	assert_read(HEAD
		"Transfer-Encoding: chunked\r\n\r\n0\r\nHost: b\r\nHost : b\r\n"
		"content-length: 9\r\nCookie: a=1\r\nX-Real-IP: 6.6.6.6\r\nX-API-Key: k\r\n"
		"X-Good: 1\r\n\r\n",
		"0\r\nX-Good: 1\r\n\r\n");
}

/* The end of the last line finds no room in the buffer. */
static void trailers_that_just_fit_are_too_long(void **state)
{
	static const char head[] = HEAD "Transfer-Encoding: chunked\r\n\r\n0\r\nX: ";

	(void)state;
	for (size_t value = 8185; value <= 8195; value++) {
		struct buf text = BUF_INIT(OUT_MAX), out = BUF_INIT(OUT_MAX);
		struct message message = {0};
		bool fits = strlen("X: \r\n") + value <= 8192;

		buf_append_str(&text, head);
		for (size_t i = 0; i < value; i++)
			buf_append(&text, "a", 1);
		buf_append_str(&text, "\r\n\r\n");
		message_begin(&message, MESSAGE_REQUEST);
		assert_int_equal(
			feed_in_pieces(&message, (char *)text.data, text.len, text.len, &out),
			fits ? 0 : -EPROTO);
		assert_int_equal(message.is_complete, fits);
		message_fini(&message);
		buf_fini(&out);
		buf_fini(&text);
	}
}

static void what_may_be_read_in_two_ways_is_refused(void **state)
{
	static const char *const requests[] = {
		HEAD "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		HEAD "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
		HEAD "Content-Length: +5\r\n\r\nhello",
		HEAD "Content-Length: 5, 5\r\n\r\nhello",
		HEAD "X: a\r\n b\r\n\r\n",
		HEAD "X : a\r\n\r\n",
		HEAD "X\r\n\r\n",
		HEAD ": a\r\n\r\n",
		HEAD "X: a\rb\r\n\r\n",
		HEAD "X: a\nY: b\r\n\r\n",
		HEAD "X: a\177\r\n\r\n",
		"\r\n" HEAD "\r\n",
		"GET /a\tb HTTP/1.1\r\n\r\n",
		HEAD "Transfer-Encoding: gzip\r\n\r\n",
		HEAD "Transfer-Encoding: chunked\r\n\r\nx\r\n",
		HEAD "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
	};
	static const char nul[] = HEAD "X: a\0b\r\n\r\n";

	(void)state;
	for (size_t i = 0; i < array_len(requests); i++)
		assert_refused(MESSAGE_REQUEST, requests[i], strlen(requests[i]), -EPROTO);
	assert_refused(MESSAGE_REQUEST, nul, sizeof(nul) - 1, -EPROTO);
	assert_refused(MESSAGE_RESPONSE, "hello\r\n\r\n", 9, -EPROTO);
	assert_refused(MESSAGE_RESPONSE, "HELP/1.1 200 OK\r\n\r\n", 19, -EPROTO);
}

static void heads_are_bounded(void **state)
{
	struct buf text = BUF_INIT(2 * MESSAGE_HEAD_MAX);

	(void)state;
	buf_append_str(&text, HEAD);
	for (int i = 0; i < MESSAGE_FIELDS_MAX; i++)
		buf_append_str(&text, "X: a\r\n");
	buf_append_str(&text, "\r\n");
	assert_refused(MESSAGE_REQUEST, (char *)text.data, text.len, -EPROTO);
	buf_fini(&text);
	buf_append_str(&text, HEAD "X: ");
	while (text.len < MESSAGE_HEAD_MAX)
		buf_append_str(&text, "a");
	assert_refused(MESSAGE_REQUEST, (char *)text.data, text.len, -EMSGSIZE);
	buf_fini(&text);
}

static bool ends(const char *text, bool has_no_body, bool *ret_is_complete)
{
	struct message message = {0};
	struct buf out = BUF_INIT(OUT_MAX);
	bool is_proper;

	message_begin(&message, MESSAGE_RESPONSE);
	message.has_no_body = has_no_body;
	assert_int_equal(feed_in_pieces(&message, text, strlen(text), strlen(text), &out), 0);
	*ret_is_complete = message.is_complete;
	is_proper = message_end(&message);
	message_fini(&message);
	buf_fini(&out);
	return is_proper;
}

static void an_answer_ends_where_its_head_says(void **state)
{
	bool is_complete;

	(void)state;
	assert_true(ends("HTTP/1.1 200 OK\r\n\r\nuntil the end", false, &is_complete));
	assert_false(is_complete);
	assert_false(
		ends("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort", false, &is_complete));
	assert_false(ends("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
		false, &is_complete));
	assert_true(ends("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", true, &is_complete));
	assert_true(is_complete);
	assert_true(ends("HTTP/1.1 204 No\r\nContent-Length: 9\r\n\r\n", false, &is_complete));
	assert_true(is_complete);
	assert_true(ends("HTTP/1.1 101 Go\r\nContent-Length: 9\r\n\r\n", false, &is_complete));
	assert_true(is_complete);
	assert_true(ends("HTTP/1.1 304 No\r\nContent-Length: 9\r\n\r\n", false, &is_complete));
	assert_true(is_complete);
}

static void lists_have_words(void **state)
{
	static const char text[] =
		"GET / HTTP/1.1\r\nConnection: keep-alive , Upgrade\r\nConnection: X-Drop\r\n\r\n";
	struct message message = {0};

	(void)state;
	message_begin(&message, MESSAGE_REQUEST);
	assert_true(message_feed(&message, (const uint8_t *)text, strlen(text)) > 0);
	assert_true(message_lists(&message, "connection", "upgrade"));
	assert_true(message_lists(&message, "Connection", "x-drop"));
	assert_false(message_lists(&message, "Connection", "keep"));
	message_fini(&message);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_head_is_taken_apart),
		cmocka_unit_test(no_line_of_a_head_is_read_twice),
		cmocka_unit_test(bodies_arrive_however_they_are_cut),
		cmocka_unit_test(trailers_change_nothing_of_the_message),
		cmocka_unit_test(trailers_that_just_fit_are_too_long),
		cmocka_unit_test(what_may_be_read_in_two_ways_is_refused),
		cmocka_unit_test(heads_are_bounded),
		cmocka_unit_test(an_answer_ends_where_its_head_says),
		cmocka_unit_test(lists_have_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
