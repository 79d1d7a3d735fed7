/* SPDX-License-Identifier: Apache-2.0 */
#include "http/buffered_socket.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static const struct buffered_socket_limits limits = {
	.read_bytes = 8, .waiting_max = 16, .out_max = 64};

/* A connected one; the peer in *ret_peer. */
static void open_pair(struct buffered_socket *sock, int *ret_peer)
{
	int pair[2];

	assert_int_equal(
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
	buffered_socket_init(sock, NULL, pair[0], &limits);
	*ret_peer = pair[1];
}

static void say(int peer, const char *text)
{
	assert_int_equal(send(peer, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static void it_is_read_only_when_it_was_told_to_be_readable(void **state)
{
	struct buffered_socket sock;
	int peer;

	(void)state;
	open_pair(&sock, &peer);
	say(peer, "abc");
	assert_false(buffered_socket_receive(&sock));
	buffered_socket_note(&sock, EPOLLIN);
	assert_true(buffered_socket_receive(&sock));
	assert_memory_equal(sock.in.data, "abc", 3);
	/* The read was short, so another event comes with more. */
	assert_false(sock.is_readable);
	assert_false(sock.has_ended);
	buffered_socket_close(&sock);
	close(peer);
}

static void an_end_that_was_told_with_the_last_bytes_is_read(void **state)
{
	struct buffered_socket sock;
	int peer;

	(void)state;
	open_pair(&sock, &peer);
	say(peer, "abc");
	close(peer);
	buffered_socket_note(&sock, EPOLLIN | EPOLLRDHUP);
	assert_true(buffered_socket_receive(&sock));
	assert_int_equal(sock.in.len, 3);
	assert_true(buffered_socket_receive(&sock));
	assert_true(sock.has_ended);
	assert_false(sock.is_broken);
	assert_false(buffered_socket_receive(&sock));
	buffered_socket_close(&sock);
	assert_int_equal(sock.fd, -1);
	assert_false(sock.has_ended);
}

static void more_than_one_read_waits_for_its_turn(void **state)
{
	struct buffered_socket sock;
	int peer;

	(void)state;
	open_pair(&sock, &peer);
	say(peer, "0123456789");
	buffered_socket_note(&sock, EPOLLIN);
	assert_true(buffered_socket_receive(&sock));
	assert_int_equal(sock.in.len, limits.read_bytes);
	assert_true(buffered_socket_receive(&sock));
	assert_int_equal(sock.in.len, 10);
	assert_false(buffered_socket_receive(&sock));
	buffered_socket_close(&sock);
	close(peer);
}

static void what_waits_to_be_sent_takes_its_room(void **state)
{
	struct buffered_socket sock;
	char text[64];
	int peer;

	(void)state;
	open_pair(&sock, &peer);
	assert_true(buffered_socket_has_room(&sock));
	buf_append_str(&sock.out, "0123456789abcdef");
	assert_false(buffered_socket_has_room(&sock));
	assert_true(buffered_socket_flush(&sock));
	assert_true(buffered_socket_has_room(&sock));
	assert_null(sock.out.data); /* a quiet socket keeps no memory */
	assert_int_equal(recv(peer, text, sizeof(text), 0), 16);
	assert_false(buffered_socket_flush(&sock));
	buffered_socket_close(&sock);
	close(peer);
}

static void a_peer_that_reads_no_more_is_still_read(void **state)
{
	struct buffered_socket sock;
	int peer;

	(void)state;
	open_pair(&sock, &peer);
	say(peer, "last");
	shutdown(peer, SHUT_RD);
	buf_append_str(&sock.out, "lost");
	assert_true(buffered_socket_flush(&sock));
	assert_true(sock.has_write_failed);
	assert_int_equal(sock.out.len, 0);
	buf_append_str(&sock.out, "dropped");
	assert_true(buffered_socket_flush(&sock));
	assert_int_equal(sock.out.len, 0);
	assert_true(buffered_socket_receive(&sock));
	assert_memory_equal(sock.in.data, "last", 4);
	assert_false(sock.has_ended);
	buffered_socket_close(&sock);
	close(peer);
}

/* What TLS has decrypted but not given out yet brings no event: a short read is not the last. */
static ssize_t read_piece(void *arg, void *data, size_t len)
{
	int *pieces = arg;

	(void)len;
	if (*pieces < 0)
		return -ECONNRESET;
	if ((*pieces)-- == 0)
		return -EAGAIN;
	memcpy(data, "x", 1);
	return 1;
}

static ssize_t write_half(void *arg, const void *data, size_t len)
{
	(void)arg;
	(void)data;
	return (ssize_t)(len + 1) / 2;
}

static void another_way_to_read_and_write_is_used_until_it_has_no_more(void **state)
{
	static const struct buffered_socket_io io = {read_piece, write_half};
	struct buffered_socket sock;
	int peer, pieces = 3;

	(void)state;
	open_pair(&sock, &peer);
	sock.io = &io;
	sock.io_arg = &pieces;
	buffered_socket_note(&sock, EPOLLIN);
	while (buffered_socket_receive(&sock))
		;
	assert_int_equal(sock.in.len, 3);
	assert_false(sock.has_ended);
	buffered_socket_note(&sock, EPOLLIN);
	assert_true(buffered_socket_receive(&sock));
	assert_true(sock.has_ended && sock.is_broken);
	buf_append_str(&sock.out, "1234");
	assert_true(buffered_socket_flush(&sock));
	assert_int_equal(sock.out.len, 2);
	buffered_socket_close(&sock);
	close(peer);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_read_only_when_it_was_told_to_be_readable),
		cmocka_unit_test(an_end_that_was_told_with_the_last_bytes_is_read),
		cmocka_unit_test(more_than_one_read_waits_for_its_turn),
		cmocka_unit_test(what_waits_to_be_sent_takes_its_room),
		cmocka_unit_test(a_peer_that_reads_no_more_is_still_read),
		cmocka_unit_test(another_way_to_read_and_write_is_used_until_it_has_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
