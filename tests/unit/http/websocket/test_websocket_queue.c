/* SPDX-License-Identifier: Apache-2.0 */
/* Frames on their way to the client: whole and in order, whatever the socket takes of them. */
#include "http/websocket/websocket_queue.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define TEXT  1
#define CLOSE 8

struct line {
	struct websocket_queue queue;
	int ours, theirs;
};

static struct line join(size_t capacity)
{
	struct line line = {.queue.capacity = capacity};
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	line.ours = ends[0];
	line.theirs = ends[1];
	return line;
}

static void part(struct line *line)
{
	websocket_queue_fini(&line->queue);
	close(line->ours);
	close(line->theirs);
}

static void receive(const struct line *line, uint8_t *data, size_t len)
{
	assert_int_equal(recv(line->theirs, data, len, MSG_WAITALL), len);
}

static void a_header_says_how_long_the_frame_is(void **state)
{
	static const struct {
		size_t len;
		size_t header_len;
		uint8_t header[10];
	} cases[] = {
		{0, 2, {0x81, 0}},
		{125, 2, {0x81, 125}},
		{126, 4, {0x81, 126, 0, 126}},
		{65535, 4, {0x81, 126, 0xff, 0xff}},
		{65536, 10, {0x81, 127, 0, 0, 0, 0, 0, 1, 0, 0}},
	};
	static const uint8_t data[65536];
	static uint8_t got[65536];
	struct line line = join(1);

	(void)state;
	for (size_t i = 0; i < array_len(cases); i++) {
		assert_int_equal(
			websocket_queue_put(&line.queue, line.ours, TEXT, data, cases[i].len), 0);
		receive(&line, got, cases[i].header_len);
		assert_memory_equal(got, cases[i].header, cases[i].header_len);
		if (cases[i].len > 0)
			receive(&line, got, cases[i].len);
	}
	part(&line);
}

static void what_the_socket_does_not_take_waits_and_follows_in_order(void **state)
{
	static uint8_t data[1 << 20], got[sizeof(data) + 10 + 3];
	struct line line = join(sizeof(data));
	size_t have = 0;
	int r = 0;

	(void)state;
	memset(data, 'a', sizeof(data));
	assert_int_equal(websocket_queue_put(&line.queue, line.ours, TEXT, data, sizeof(data)), 0);
	assert_true(line.queue.waiting.len > 0);
	assert_int_equal(websocket_queue_put(&line.queue, line.ours, TEXT, "z", 1), 0);
	assert_int_equal(websocket_queue_flush(&line.queue, line.ours), 0);
	while (have < sizeof(got) && r >= 0) {
		ssize_t n = recv(line.theirs, got + have, sizeof(got) - have, 0);

		assert_true(n > 0);
		have += (size_t)n;
		r = websocket_queue_flush(&line.queue, line.ours);
	}
	assert_true(r >= 0);
	assert_int_equal(line.queue.waiting.len, 0);
	assert_memory_equal(got + 10, data, sizeof(data));
	assert_memory_equal(got + 10 + sizeof(data), "\x81\x01z", 3);
	part(&line);
}

static void who_was_refused_is_called_when_half_is_free(void **state)
{
	struct websocket_queue queue = {.capacity = 100};
	char data[80] = {0};

	(void)state;
	assert_true(websocket_queue_admit(&queue, 1000)); /* empty: anything */
	assert_int_equal(ring_put(&queue.waiting, queue.capacity, data, sizeof(data)), 0);
	assert_true(websocket_queue_admit(&queue, 20));
	assert_false(websocket_queue_has_room(&queue)); /* nobody was refused */
	assert_false(websocket_queue_admit(&queue, 21));
	ring_drop(&queue.waiting, 29);
	assert_false(websocket_queue_has_room(&queue));
	ring_drop(&queue.waiting, 1);
	assert_true(websocket_queue_has_room(&queue));
	websocket_queue_fini(&queue);
}

static void a_reason_is_cut_between_characters(void **state)
{
	struct line line = join(200);
	char reason[126];
	uint8_t got[2 + 2 + 122];

	(void)state;
	memset(reason, 'x', sizeof(reason));
	memcpy(reason + 122, "\u00fc", 2); /* bytes 122 and 123: only half would fit */
	reason[125] = '\0';
	assert_int_equal(websocket_queue_put_close(&line.queue, line.ours, 1001, reason), 0);
	receive(&line, got, sizeof(got));
	assert_memory_equal(got, ((uint8_t[]){0x80 | CLOSE, 124, 1001 >> 8, 1001 & 0xff}), 4);
	part(&line);
}

static void a_client_who_left_is_noticed(void **state)
{
	struct line line = join(200);

	(void)state;
	assert_int_equal(shutdown(line.theirs, SHUT_RD), 0);
	assert_int_equal(websocket_queue_put(&line.queue, line.ours, TEXT, "a", 1), -EPIPE);
	part(&line);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_header_says_how_long_the_frame_is),
		cmocka_unit_test(what_the_socket_does_not_take_waits_and_follows_in_order),
		cmocka_unit_test(who_was_refused_is_called_when_half_is_free),
		cmocka_unit_test(a_reason_is_cut_between_characters),
		cmocka_unit_test(a_client_who_left_is_noticed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
