/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/relay.h"

#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define HANDSHAKE_MS 10000
#define STALL_MS                                                                                   \
	30000 /* for a client to take something of what waits for it, once nobody serves it any more */
#define LINGER_MS  5000 /* for a client to read our end */
#define ROUNDS_MAX 16	/* then others have their turn */
#define READS_MAX  2	/* and within a round */

/*
 * OpenSSL reads on for as long as what comes is no data: a client that sends nothing but new keys, or asks to renegotiate,
 * would have the thread for itself.
 */
static long limit_reads(BIO *bio, int what, const char *data, size_t len, int argi, long argl,
	int result, size_t *processed)
{
	struct relay *relay = (struct relay *)BIO_get_callback_arg(bio);

	(void)data, (void)len, (void)argi, (void)argl, (void)processed;
	if (what != BIO_CB_READ || relay->reads_left-- > 0)
		return result;
	BIO_clear_retry_flags(bio);
	BIO_set_retry_read(bio);
	return -1;
}

struct relay *relay_open(SSL *ssl, int outer, int inner, struct tls_peer *peer)
{
	struct relay *relay = mem_new(sizeof(*relay));

	relay->ssl = ssl;
	relay->peer = peer;
	relay->outer = (struct relay_end){
		.relay = relay, .fd = outer, .is_readable = true, .is_writable = true};
	relay->inner = (struct relay_end){.relay = relay, .fd = inner, .is_writable = true};
	relay->in = relay->out = BUF_INIT(RELAY_BYTES);
	relay->due_ms = clock_steady_ms() + HANDSHAKE_MS;
	BIO_set_callback_ex(SSL_get_rbio(ssl), limit_reads);
	BIO_set_callback_arg(SSL_get_rbio(ssl), (char *)relay);
	return relay;
}

void relay_free(struct relay *relay)
{
	SSL_free(relay->ssl);
	fd_close(relay->outer.fd);
	fd_close(relay->inner.fd);
	buf_fini(&relay->in);
	buf_fini(&relay->out);
	tls_peer_unref(relay->peer);
	free(relay);
}

/* From here on nobody counts it but us, and it has its time. */
static void start_leaving(struct relay *relay)
{
	relay->state = RELAY_LEAVING;
	relay->due_ms = clock_steady_ms() + STALL_MS;
}

void relay_note(struct relay_end *end, uint32_t events)
{
	struct relay *relay = end->relay;
	bool is_gone = events & (EPOLLHUP | EPOLLERR);

	end->is_readable |= is_gone || (events & (EPOLLIN | EPOLLRDHUP));
	end->is_writable |= is_gone || (events & EPOLLOUT);
	/* A client that is gone in both directions; or one whom nobody wants to serve any more. */
	if (is_gone && (end == &relay->outer || relay->state == RELAY_HANDSHAKE))
		relay->state = RELAY_OVER;
	/* Its last words may be waiting for a client that takes nothing. */
	else if (is_gone && relay->state == RELAY_OPEN)
		start_leaving(relay);
}

/* --- handshake --- */

/* Before each call of OpenSSL. */
static void begin_call(struct relay *relay)
{
	ERR_clear_error();
	relay->reads_left = READS_MAX;
}

/* What a failed call waits for; 0 if it waits for something, 1 if the client has ended, -1 if it is broken. */
static int sort_failure(struct relay *relay, int result)
{
	switch (SSL_get_error(relay->ssl, result)) {
	case SSL_ERROR_WANT_READ:
		relay->outer.is_readable = relay->reads_left < 0;
		return 0;
	case SSL_ERROR_WANT_WRITE:
		relay->outer.is_writable = false;
		return 0;
	case SSL_ERROR_ZERO_RETURN:
		return 1;
	default:
		return -1;
	}
}

/* Who speaks plain HTTP here is mistaken about the address, and can be told. */
static void explain_to_plain_client(const struct relay *relay)
{
	static const char answer[] =
		"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nConnection: "
		"close\r\n\r\n"
		"{\"error\":{\"code\":\"https_only\",\"message\":\"this port speaks HTTPS\","
		"\"remediation\":\"use https:// in the address\",\"retryable\":false}}\n";

	if (ERR_GET_REASON(ERR_peek_error()) == SSL_R_HTTP_REQUEST)
		(void)!send(relay->outer.fd, answer, sizeof(answer) - 1, MSG_NOSIGNAL);
}

/* Our end is said. Closing with unread bytes would reset the connection under it. */
static void start_lingering(struct relay *relay)
{
	shutdown(relay->outer.fd, SHUT_WR);
	shutdown(relay->inner.fd, SHUT_RDWR);
	relay->outer.is_readable = true;
	relay->state = RELAY_LINGER;
	relay->due_ms = clock_steady_ms() + LINGER_MS;
}

static void note_server_name(struct relay *relay)
{
	const char *name = SSL_get_servername(relay->ssl, TLSEXT_NAMETYPE_host_name);

	if (name)
		tls_peer_set_server_name(relay->peer, name);
}

static void shake_hands(struct relay *relay)
{
	int result;

	begin_call(relay);
	result = SSL_do_handshake(relay->ssl);
	if (result == 1) {
		note_server_name(relay);
		relay->state = RELAY_OPEN;
		relay->due_ms = UINT64_MAX;
		/* What came right behind it may have been read with it: the kernel has nothing to tell then. */
		relay->outer.is_readable = true;
	} else if (sort_failure(relay, result) != 0) {
		explain_to_plain_client(relay);
		start_lingering(relay);
	}
}

/* --- from the client --- */

/*
 * To the plain side, as much as it takes. What nobody wants to hear is dropped. If the kernel has no memory for it, all is
 * over: nobody would tell us when to try again, and what comes after must not arrive without it.
 */
static size_t deliver(struct relay *relay, const uint8_t *data, size_t len)
{
	ssize_t n = send(relay->inner.fd, data, len, MSG_NOSIGNAL);

	if (n < 0 && errno != EAGAIN) {
		if (errno != EPIPE && errno != ECONNRESET)
			relay->state = RELAY_OVER;
		return len;
	}
	relay->inner.is_writable = n == (ssize_t)len;
	return n < 0 ? 0 : (size_t)n;
}

static bool move_waiting_in(struct relay *relay)
{
	if (!relay->inner.is_writable)
		return false;
	buf_consume(&relay->in, deliver(relay, relay->in.data, relay->in.len));
	if (relay->in.len == 0)
		buf_fini(&relay->in);
	return relay->in.len == 0;
}

/* Whether something moved. */
static bool move_in(struct relay *relay, uint8_t *scratch)
{
	size_t sent;
	int n, failure;

	if (relay->in.len > 0)
		return move_waiting_in(relay);
	if (!relay->outer.is_readable || relay->has_client_ended)
		return false;
	begin_call(relay);
	n = SSL_read(relay->ssl, scratch, RELAY_BYTES);
	if (n > 0) {
		atomic_fetch_add(&relay->peer->bytes, (uint64_t)n);
		sent = deliver(relay, scratch, (size_t)n);
		buf_append(&relay->in, scratch + sent, (size_t)n - sent);
		return true;
	}
	failure = sort_failure(relay, n);
	if (failure == 0)
		return false;
	if (failure < 0) {
		relay->state = RELAY_OVER;
		return false;
	}
	relay->has_client_ended = true;
	shutdown(relay->inner.fd, SHUT_WR);
	return true;
}

/* --- to the client --- */

/* How much of it went out. */
static size_t encrypt(struct relay *relay, const uint8_t *data, size_t len)
{
	int n;

	begin_call(relay);
	n = SSL_write(relay->ssl, data, (int)len);
	if (n > 0 && relay->state == RELAY_LEAVING)
		relay->due_ms = clock_steady_ms() + STALL_MS;
	if (n > 0)
		return (size_t)n;
	if (sort_failure(relay, n) != 0)
		relay->state = RELAY_OVER;
	return 0;
}

/* Whether something moved. What was tried once must be tried again as it was: it stays in `out`. */
static bool move_waiting_out(struct relay *relay)
{
	size_t sent =
		relay->outer.is_writable ? encrypt(relay, relay->out.data, relay->out.len) : 0;

	buf_consume(&relay->out, sent);
	if (relay->out.len == 0)
		buf_fini(&relay->out);
	return sent > 0;
}

static bool move_out(struct relay *relay, uint8_t *scratch)
{
	size_t sent;
	ssize_t n;

	if (relay->out.len > 0)
		return move_waiting_out(relay);
	if (!relay->inner.is_readable || relay->has_server_ended)
		return false;
	n = recv(relay->inner.fd, scratch, RELAY_BYTES, 0);
	if (n > 0) {
		sent = encrypt(relay, scratch, (size_t)n);
		buf_append(&relay->out, scratch + sent, (size_t)n - sent);
		return true;
	}
	relay->inner.is_readable = false;
	if (n < 0 && errno == EAGAIN)
		return false;
	relay->has_server_ended = true;
	if (relay->state == RELAY_OPEN)
		start_leaving(relay);
	return true;
}

/* --- the end --- */

static void say_end(struct relay *relay)
{
	int result;

	if (!relay->outer.is_writable)
		return;
	begin_call(relay);
	result = SSL_shutdown(relay->ssl);
	if (result < 0 && sort_failure(relay, result) == 0)
		return; /* to be tried again when the socket takes it */
	start_lingering(relay);
}

static void linger(struct relay *relay, uint8_t *scratch)
{
	for (int i = 0; i < ROUNDS_MAX && relay->outer.is_readable; i++) {
		ssize_t n = recv(relay->outer.fd, scratch, RELAY_BYTES, 0);

		relay->outer.is_readable = n > 0;
		if (n == 0 || (n < 0 && errno != EAGAIN))
			relay->state = RELAY_OVER;
	}
}

bool relay_move(struct relay *relay, uint8_t *scratch)
{
	bool moved = true;

	relay->reads_left = 0;
	if (relay->state == RELAY_HANDSHAKE)
		shake_hands(relay);
	for (int i = 0; moved && i < ROUNDS_MAX &&
			(relay->state == RELAY_OPEN || relay->state == RELAY_LEAVING);
		i++) {
		moved = move_out(relay, scratch);
		if (relay->state == RELAY_OPEN)
			moved |= move_in(relay, scratch);
		if (relay->state == RELAY_LEAVING && relay->has_server_ended && relay->out.len == 0)
			say_end(relay);
	}
	if (relay->state == RELAY_LINGER) {
		linger(relay, scratch);
		return relay->outer.is_readable && relay->state == RELAY_LINGER;
	}
	return relay->state != RELAY_OVER &&
	       (relay->reads_left < 0 || (moved && relay->state != RELAY_HANDSHAKE));
}
