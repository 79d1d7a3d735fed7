/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server/request/tunnel.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "event/timer.h"
#include "http/server/request/body.h"
#include "http/server/request/request_private.h"
#include "http/server/server_private.h"
#include "http/websocket/websocket.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define CAPACITY  (128u * 1024) /* bytes that wait for the client */
#define PIECE_MAX (32u * 1024)
#define ROUND_MAX (256u * 1024) /* read before others have their turn */

static const char end_message[] = "{\"type\":\"end\"}";

struct tunnel {
	atomic_uint refs; /* the websocket's, and those of its watch and timer */
	struct event_loop *poller;
	void (*ended)(void *arg);
	void *arg;
	atomic_bool is_cut;
	struct timer *cutting; /* for the poller's thread to act on that */

	/* Of the poller's thread, once it is open. */
	struct websocket *websocket;
	int fd; /* -1: there is nothing more to do with it */
	struct watch *watch;
	uint8_t *piece; /* of the socket, for the client: piece_len bytes that it had no room for */
	size_t piece_len;
	struct buf
		out; /* of the client, for the socket; while there is any the client is not read from */
	bool is_full;	/* the client takes nothing at present */
	bool has_ended; /* the socket's side */
	bool has_told;	/* the client of that */
	bool client_has_ended;
};

static struct tunnel *ref(struct tunnel *tunnel)
{
	atomic_fetch_add(&tunnel->refs, 1);
	return tunnel;
}

static void unref(void *arg)
{
	struct tunnel *tunnel = arg;

	if (atomic_fetch_sub(&tunnel->refs, 1) > 1)
		return;
	websocket_unref(tunnel->websocket);
	buf_fini(&tunnel->out);
	free(tunnel->piece);
	free(tunnel);
}

/* --- the socket --- */

static void close_socket(struct tunnel *tunnel)
{
	watch_close(take_ptr(&tunnel->watch));
	fd_close(take_fd(&tunnel->fd));
}

/* Whoever is at the other end must not take a break for an end. */
static void reset_socket(struct tunnel *tunnel)
{
	static const struct linger at_once = {.l_onoff = 1};

	setsockopt(tunnel->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	close_socket(tunnel);
}

static void fail(struct tunnel *tunnel)
{
	reset_socket(tunnel);
	websocket_close(tunnel->websocket, WEBSOCKET_FAILED, "the connection was reset");
}

/* How many of the bytes the socket takes now; -errno when it takes none any more. */
static ssize_t push(struct tunnel *tunnel, const uint8_t *data, size_t len)
{
	ssize_t n = send(tunnel->fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	return n;
}

/* Writes what waits, and lets the client go on when that is all. */
static int flush(struct tunnel *tunnel)
{
	ssize_t n;

	if (tunnel->out.len == 0)
		return 0;
	n = push(tunnel, tunnel->out.data, tunnel->out.len);
	if (n < 0)
		return (int)n;
	buf_consume(&tunnel->out, (size_t)n);
	if (tunnel->out.len > 0)
		return 0;
	buf_fini(&tunnel->out); /* a quiet tunnel keeps no memory */
	if (tunnel->client_has_ended)
		shutdown(tunnel->fd, SHUT_WR);
	websocket_pause(tunnel->websocket, false);
	return 0;
}

/* Reads a piece if there is none. 1, 0 if there is nothing at present or at all, -errno. */
static int fill(struct tunnel *tunnel)
{
	ssize_t n;

	if (tunnel->piece_len > 0)
		return 1;
	if (tunnel->has_ended)
		return 0;
	if (!tunnel->piece)
		tunnel->piece = mem_new(PIECE_MAX);
	n = recv(tunnel->fd, tunnel->piece, PIECE_MAX, MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	tunnel->has_ended = n == 0;
	tunnel->piece_len = (size_t)n;
	return n > 0;
}

/* Sends a message to the client; false if it was not taken. */
static bool offer(struct tunnel *tunnel, bool is_text, const void *data, size_t len)
{
	int r = websocket_send(tunnel->websocket, is_text, data, len);

	/* Of one that is over we hear soon; it takes nothing either. */
	tunnel->is_full = r < 0;
	return r == 0;
}

/* From the socket to the client, as much as it takes. */
static int relay(struct tunnel *tunnel)
{
	size_t round = 0;
	int r = 0;

	while (round < ROUND_MAX && !tunnel->is_full && (r = fill(tunnel)) > 0) {
		if (!offer(tunnel, false, tunnel->piece, tunnel->piece_len))
			return 0;
		round += tunnel->piece_len;
		tunnel->piece_len = 0;
	}
	if (tunnel->piece_len == 0)
		free(take_ptr(&tunnel->piece));
	if (r == 0 && tunnel->has_ended && !tunnel->has_told && !tunnel->is_full)
		tunnel->has_told = offer(tunnel, true, end_message, strlen(end_message));
	return r;
}

static void socket_ready(void *arg, uint32_t events);

/*
 * With nothing to wait for, it still tells of a connection that was reset; but not after we have ended our side,
 * when the end of the other side would be told again and again.
 */
static int arm(struct tunnel *tunnel)
{
	uint32_t reading = tunnel->has_ended || tunnel->is_full ? 0 : EPOLLIN;
	uint32_t writing = tunnel->out.len > 0 ? EPOLLOUT : 0;
	uint32_t events = reading | writing | EPOLLONESHOT;
	int r;

	if (!reading && !writing && tunnel->client_has_ended)
		return 0;
	if (tunnel->watch) {
		watch_set(tunnel->watch, events);
		return 0;
	}
	r = watch_open(tunnel->poller, tunnel->fd, events, socket_ready, unref, ref(tunnel),
		&tunnel->watch, NULL);
	if (r < 0)
		unref(tunnel);
	return r;
}

/* Does all that can be done, and waits for more. */
static void serve(struct tunnel *tunnel)
{
	int r = flush(tunnel);

	if (r == 0)
		r = relay(tunnel);
	if (r < 0)
		fail(tunnel);
	else if (tunnel->has_told && tunnel->client_has_ended && tunnel->out.len == 0)
		close_socket(tunnel);
	else if (arm(tunnel) < 0)
		fail(tunnel);
}

static void socket_ready(void *arg, uint32_t events)
{
	struct tunnel *tunnel = arg;

	if (tunnel->fd < 0)
		return;
	if (events & EPOLLERR && (tunnel->has_ended || tunnel->is_full))
		fail(tunnel); /* nobody reads, so nobody would be told */
	else
		serve(tunnel);
}

/* --- cutting --- */

static void obey_cut(struct tunnel *tunnel)
{
	if (tunnel->fd >= 0)
		reset_socket(tunnel);
	websocket_close(tunnel->websocket, WEBSOCKET_FAILED, "the other end is gone");
}

static void cut_due(void *arg)
{
	struct tunnel *tunnel = arg;

	if (tunnel->websocket) /* else it opens soon, and looks for itself */
		obey_cut(tunnel);
}

void tunnel_cut(void *arg)
{
	struct tunnel *tunnel = arg;

	atomic_store(&tunnel->is_cut, true);
	timer_set(tunnel->cutting, 0);
}

/* --- the client --- */

static void opened(void *arg, struct websocket *websocket)
{
	struct tunnel *tunnel = arg;

	tunnel->websocket = websocket_ref(websocket);
	if (atomic_load(&tunnel->is_cut))
		obey_cut(tunnel);
	else
		serve(tunnel);
}

static bool is_end(const uint8_t *data, size_t len)
{
	json_t *message = NULL;
	const char *type;
	struct err ignored;
	bool is_so;

	if (body_parse((const char *)data, len, &message, &ignored) < 0)
		return false;
	type = json_string_value(json_object_get(message, "type"));
	is_so = type && strcmp(type, "end") == 0;
	json_decref(message);
	return is_so;
}

static void take_end(struct tunnel *tunnel)
{
	tunnel->client_has_ended = true;
	if (tunnel->out.len == 0)
		shutdown(tunnel->fd, SHUT_WR);
}

static void take_bytes(struct tunnel *tunnel, const uint8_t *data, size_t len)
{
	ssize_t n = push(tunnel, data, len);

	if (n < 0) {
		fail(tunnel);
	} else if ((size_t)n < len) {
		/* One message at most: no other is delivered before this one is gone. */
		buf_append(&tunnel->out, data + n, len - (size_t)n);
		websocket_pause(tunnel->websocket, true);
	}
}

static void take_message(void *arg, bool is_text, const uint8_t *data, size_t len)
{
	struct tunnel *tunnel = arg;

	if (tunnel->fd < 0 && !tunnel->client_has_ended)
		return; /* it was reset, and the client is being told */
	if (tunnel->client_has_ended || (is_text && !is_end(data, len))) {
		websocket_close(tunnel->websocket, WEBSOCKET_REFUSED, "not a message of a tunnel");
		return;
	}
	if (is_text)
		take_end(tunnel);
	else
		take_bytes(tunnel, data, len);
	if (tunnel->fd >= 0)
		serve(tunnel);
}

static void room(void *arg)
{
	struct tunnel *tunnel = arg;

	tunnel->is_full = false;
	if (tunnel->fd >= 0)
		serve(tunnel);
}

static void gone(void *arg)
{
	struct tunnel *tunnel = arg;

	if (tunnel->fd >= 0)
		reset_socket(tunnel);
	tunnel->ended(tunnel->arg);
	timer_close(tunnel->cutting);
	unref(tunnel);
}

static const struct websocket_events websocket_events = {
	.open = opened, .message = take_message, .room = room, .gone = gone};

struct tunnel *tunnel_new(struct request *req, int fd, void (*ended)(void *arg), void *arg)
{
	struct tunnel *tunnel = mem_new(sizeof(*tunnel));

	tunnel->refs = 1;
	tunnel->poller = req->server->poller;
	tunnel->ended = ended;
	tunnel->arg = arg;
	tunnel->fd = fd;
	tunnel->cutting = timer_open(tunnel->poller, cut_due, unref, ref(tunnel));
	tunnel->out = BUF_INIT(WEBSOCKET_MESSAGE_MAX);
	return tunnel;
}

void tunnel_free(struct tunnel *tunnel)
{
	timer_close(tunnel->cutting);
	fd_close(take_fd(&tunnel->fd));
	unref(tunnel);
}

int request_answer_tunnel(
	struct request *req, const char *protocol, struct tunnel *tunnel, struct err *err)
{
	return request_answer_websocket(req, protocol, CAPACITY, &websocket_events, tunnel, err);
}
