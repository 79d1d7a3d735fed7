/* SPDX-License-Identifier: Apache-2.0 */
/* A relay without its thread: the test says what happened, and when it may act. */
#include "tls/relay.h"

#include "base/clock.h"
#include "base/fd.h"
#include "tls/certificate.h"
#include "tls_fixture.h"

#include <openssl/ssl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

struct stage {
	struct certificate *certificate;
	SSL_CTX *context;
	struct tls_peer *tls_peer;
	struct relay *relay;
	SSL *ssl; /* the client's */
	int far;  /* its socket */
	int plain;
};

static void open_stage(struct stage *stage)
{
	int outer[2], inner[2];
	struct tls_files files;
	struct err err;

	tls_files_make(&files, "test");
	assert_int_equal(certificate_open(files.chain, files.key, &stage->certificate, &err), 0);
	tls_files_remove(&files);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, outer), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, inner), 0);
	/* Room for more than a turn. */
	setsockopt(outer[1], SOL_SOCKET, SO_SNDBUF, &(int){1 << 20}, sizeof(int));
	setsockopt(inner[0], SOL_SOCKET, SO_SNDBUF, &(int){1 << 20}, sizeof(int));
	stage->far = outer[1];
	stage->plain = inner[1];
	stage->tls_peer = tls_peer_new();
	stage->relay = relay_open(certificate_accept(stage->certificate, outer[0]), outer[0],
		inner[0], stage->tls_peer);
	stage->context = SSL_CTX_new(TLS_client_method());
	stage->ssl = SSL_new(stage->context);
	SSL_set_fd(stage->ssl, stage->far);
}

static void close_stage(struct stage *stage)
{
	relay_free(stage->relay);
	tls_peer_unref(stage->tls_peer);
	SSL_free(stage->ssl);
	SSL_CTX_free(stage->context);
	close(stage->far);
	close(stage->plain);
	certificate_close(stage->certificate);
}

static bool move(struct stage *stage)
{
	static uint8_t scratch[RELAY_BYTES];

	return relay_move(stage->relay, scratch);
}

static void shake_hands(struct stage *stage)
{
	assert_int_equal(SSL_connect(stage->ssl), -1);
	assert_false(move(stage));
	assert_int_equal(SSL_connect(stage->ssl), 1);
}

static void expect(struct stage *stage, const char *text)
{
	char got[64] = "";

	assert_int_equal(recv(stage->plain, got, sizeof(got), 0), strlen(text));
	assert_string_equal(got, text);
}

/*
 * The end of the handshake and the first request are read together, at the occasion of something else; and by the time
 * the kernel would tell of them there is nothing left to tell.
 */
static void what_comes_right_behind_a_handshake_is_not_left_lying(void **state)
{
	struct stage stage;

	(void)state;
	open_stage(&stage);
	shake_hands(&stage);
	assert_int_equal(SSL_write(stage.ssl, "hello", 5), 5);
	relay_note(&stage.relay->inner, EPOLLOUT);
	move(&stage);
	relay_note(&stage.relay->outer, EPOLLOUT);
	move(&stage);
	expect(&stage, "hello");
	close_stage(&stage);
}

static void a_handshake_has_its_time_and_what_follows_has_all_the_time(void **state)
{
	uint64_t before = clock_steady_ms();
	struct stage stage;

	(void)state;
	open_stage(&stage);
	assert_in_range(stage.relay->due_ms, before + 10000, clock_steady_ms() + 10000);
	shake_hands(&stage);
	move(&stage);
	assert_int_equal(stage.relay->state, RELAY_OPEN);
	assert_true(stage.relay->due_ms == UINT64_MAX);
	before = clock_steady_ms();
	shutdown(stage.plain, SHUT_RDWR);
	relay_note(&stage.relay->inner, EPOLLIN | EPOLLRDHUP | EPOLLHUP);
	move(&stage);
	assert_int_equal(stage.relay->state, RELAY_LINGER);
	assert_in_range(stage.relay->due_ms, before + 5000, clock_steady_ms() + 5000);
	close_stage(&stage);
}

/* What nobody serves any more nobody else counts: it has its time even if its client takes nothing. */
static void an_answer_that_is_not_taken_has_its_time_once_its_server_is_gone(void **state)
{
	static char block[65536];
	struct stage stage;
	size_t sent = 0, got = 0;
	uint64_t before;
	ssize_t n;

	(void)state;
	open_stage(&stage);
	shake_hands(&stage);
	do {
		while ((n = send(stage.plain, block, sizeof(block), 0)) > 0)
			sent += (size_t)n;
		relay_note(&stage.relay->inner, EPOLLIN);
	} while (move(&stage));
	assert_int_equal(stage.relay->state, RELAY_OPEN);
	close(stage.plain);
	stage.plain = -1;
	before = clock_steady_ms();
	relay_note(&stage.relay->inner, EPOLLIN | EPOLLRDHUP | EPOLLHUP);
	move(&stage);
	assert_int_equal(stage.relay->state, RELAY_LEAVING);
	assert_in_range(stage.relay->due_ms, before + 30000, clock_steady_ms() + 30000);
	do {
		while ((n = SSL_read(stage.ssl, block, sizeof(block))) > 0)
			got += (size_t)n;
		relay_note(&stage.relay->outer, EPOLLOUT);
		move(&stage);
	} while (SSL_get_error(stage.ssl, (int)n) == SSL_ERROR_WANT_READ);
	assert_int_equal(SSL_get_error(stage.ssl, (int)n), SSL_ERROR_ZERO_RETURN);
	assert_int_equal(got, sent);
	assert_int_equal(stage.relay->state, RELAY_LINGER);
	close_stage(&stage);
}

/* One who pours without end does not keep the thread from others. */
static void a_turn_ends_though_there_is_more(void **state)
{
	static char block[65536];
	struct stage stage;
	int turns = 0;

	(void)state;
	open_stage(&stage);
	shake_hands(&stage);
	move(&stage);
	do {
		while (SSL_write(stage.ssl, block, sizeof(block)) > 0)
			;
		relay_note(&stage.relay->outer, EPOLLIN);
		while (recv(stage.plain, block, sizeof(block), 0) > 0)
			;
		relay_note(&stage.relay->inner, EPOLLOUT);
	} while (!move(&stage) && turns++ < 1000);
	assert_true(turns < 1000);
	close_stage(&stage);
}

/* New keys are no data: OpenSSL would go on reading for as long as they come. */
static void a_turn_ends_though_nothing_comes_but_new_keys(void **state)
{
	struct stage stage;
	int turns = 0, unread = 0;

	(void)state;
	open_stage(&stage);
	shake_hands(&stage);
	move(&stage);
	while (SSL_key_update(stage.ssl, SSL_KEY_UPDATE_NOT_REQUESTED) == 1 &&
		SSL_do_handshake(stage.ssl) == 1)
		;
	relay_note(&stage.relay->outer, EPOLLIN);
	assert_true(move(&stage));
	assert_int_equal(ioctl(stage.relay->outer.fd, FIONREAD, &unread), 0);
	assert_true(unread > 0);
	while (move(&stage))
		assert_true(turns++ < 1000);
	/* The last one did not fit, and goes before what is said. */
	assert_int_equal(SSL_write(stage.ssl, "hello", 5), 5);
	relay_note(&stage.relay->outer, EPOLLIN);
	while (move(&stage))
		;
	expect(&stage, "hello");
	close_stage(&stage);
}

/* A kernel without memory cannot be had at will; a plain side that takes no message of this size fails like it. */
static void bytes_that_cannot_be_passed_on_though_somebody_listens_end_it(void **state)
{
	static const char block[8192];
	struct stage stage;
	int inner[2];

	(void)state;
	open_stage(&stage);
	shake_hands(&stage);
	move(&stage);
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, inner), 0);
	setsockopt(inner[0], SOL_SOCKET, SO_SNDBUF, &(int){1}, sizeof(int));
	assert_int_equal(dup2(inner[0], stage.relay->inner.fd), stage.relay->inner.fd);
	assert_int_equal(SSL_write(stage.ssl, block, sizeof(block)), sizeof(block));
	relay_note(&stage.relay->outer, EPOLLIN);
	assert_false(move(&stage));
	assert_int_equal(stage.relay->state, RELAY_OVER);
	close(inner[0]);
	close(inner[1]);
	close_stage(&stage);
}

static void what_a_server_does_not_want_to_hear_keeps_its_answer_from_nobody(void **state)
{
	struct stage stage;
	char got[8] = "";

	(void)state;
	open_stage(&stage);
	shake_hands(&stage);
	move(&stage);
	assert_int_equal(send(stage.plain, "answer", 6, 0), 6);
	shutdown(stage.plain, SHUT_RD);
	assert_int_equal(SSL_write(stage.ssl, "more", 4), 4);
	relay_note(&stage.relay->outer, EPOLLIN);
	move(&stage);
	assert_int_equal(stage.relay->state, RELAY_OPEN);
	relay_note(&stage.relay->inner, EPOLLIN);
	move(&stage);
	assert_int_equal(SSL_read(stage.ssl, got, sizeof(got)), 6);
	assert_string_equal(got, "answer");
	close_stage(&stage);
}

static void a_client_that_is_gone_is_over_at_once(void **state)
{
	struct stage stage;

	(void)state;
	open_stage(&stage);
	shake_hands(&stage);
	move(&stage);
	relay_note(&stage.relay->outer, EPOLLIN | EPOLLHUP | EPOLLERR);
	assert_int_equal(stage.relay->state, RELAY_OVER);
	close_stage(&stage);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_comes_right_behind_a_handshake_is_not_left_lying),
		cmocka_unit_test(a_handshake_has_its_time_and_what_follows_has_all_the_time),
		cmocka_unit_test(an_answer_that_is_not_taken_has_its_time_once_its_server_is_gone),
		cmocka_unit_test(a_turn_ends_though_there_is_more),
		cmocka_unit_test(a_turn_ends_though_nothing_comes_but_new_keys),
		cmocka_unit_test(bytes_that_cannot_be_passed_on_though_somebody_listens_end_it),
		cmocka_unit_test(what_a_server_does_not_want_to_hear_keeps_its_answer_from_nobody),
		cmocka_unit_test(a_client_that_is_gone_is_over_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
