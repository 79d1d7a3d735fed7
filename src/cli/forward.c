/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/forward.h"

#include "base/buf.h"
#include "base/fd.h"
#include "cli/remote/websocket_client.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#define PROTOCOL    "tcp.v1"
#define PIECE_MAX   (32u * 1024)
#define QUEUED_HIGH (256u * 1024) /* waits for the daemon: nothing more is read */

/* What a WebSocket is closed with. */
#define DONE  1000
#define RESET 1011 /* the connection inside was */

/* What one step of the WebSocket can bring on top of what makes us hold it. */
#define OUT_HIGH (256u * 1024)
#define OUT_MAX	 (OUT_HIGH + 2 * WEBSOCKET_CLIENT_MESSAGE_MAX)

struct forward {
	struct websocket_client *websocket;
	int sock;
	struct buf out; /* for the local side */
	bool has_ended; /* the local side, and the daemon was told */
	bool far_has_ended;
	bool is_shut;	 /* and the local side was told of that */
	bool is_hung_up; /* the local side, as poll has it: both directions have ended there */
	bool is_closing; /* all is said */
};

static const char end_message[] = "{\"type\":\"end\"}";

static int broken_off(void)
{
	return -ECONNRESET;
}

/* Writes what the local side takes, and its end behind the last byte. */
static int flush(struct forward *forward)
{
	while (forward->out.len > 0) {
		ssize_t n = send(forward->sock, forward->out.data, forward->out.len,
			MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : broken_off();
		buf_consume(&forward->out, (size_t)n);
	}
	if (forward->far_has_ended && !forward->is_shut) {
		forward->is_shut = true;
		shutdown(forward->sock, SHUT_WR);
	}
	return 0;
}

static int take_message(void *arg, bool is_text, const uint8_t *data, size_t len, struct err *err)
{
	struct forward *forward = arg;

	if (!is_text && buf_append(&forward->out, data, len) < 0)
		return err_set(err, ERR_INTERNAL, "the daemon sent more than was asked for");
	if (is_text && (len != strlen(end_message) || memcmp(data, end_message, len) != 0))
		return err_set(err, ERR_INTERNAL, "the daemon sent a message in no known form");
	if (is_text)
		forward->far_has_ended = true;
	return flush(forward);
}

static int read_local(struct forward *forward, struct err *err)
{
	char piece[PIECE_MAX];
	ssize_t n = recv(forward->sock, piece, sizeof(piece), MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : broken_off();
	if (n > 0)
		return websocket_client_send(forward->websocket, false, piece, (size_t)n, err);
	forward->has_ended = true;
	return websocket_client_send(
		forward->websocket, true, end_message, strlen(end_message), err);
}

static bool may_read(const struct forward *forward)
{
	return !forward->has_ended && websocket_client_queued(forward->websocket) < QUEUED_HIGH;
}

/*
 * Whether there is something to be read: 1, 0, or -ECONNRESET, which is noticed also while nothing is wanted of the
 * local side, because the app inside does not read. A hangup would be reported for ever.
 */
static int wait_for_any(struct forward *forward)
{
	bool reads = may_read(forward);
	short events = (short)((reads ? POLLIN : 0) | (forward->out.len > 0 ? POLLOUT : 0));
	struct pollfd fds[] = {
		{.fd = events || !forward->is_hung_up ? forward->sock : -1, .events = events},
		{.fd = websocket_client_fd(forward->websocket),
			.events = websocket_client_events(forward->websocket)},
	};

	poll(fds, array_len(fds), websocket_client_wait_ms(forward->websocket));
	forward->is_hung_up |= (fds[0].revents & POLLHUP) != 0;
	if (fds[0].revents & POLLERR)
		return broken_off();
	return reads && (fds[0].revents & (POLLIN | POLLHUP));
}

/* All has been said: the answer to our close tells that it has arrived. */
static int conclude(struct forward *forward, struct err *err)
{
	if (forward->is_closing || !forward->has_ended || !forward->is_shut ||
		websocket_client_queued(forward->websocket) > 0)
		return 0;
	forward->is_closing = true;
	return websocket_client_close(forward->websocket, err);
}

/* How it is over, when a step of the WebSocket has failed. */
static int outcome(const struct forward *forward, int r)
{
	unsigned status = websocket_client_status(forward->websocket);

	if (forward->is_closing && status == DONE)
		return 0;
	return status == RESET ? broken_off() : r;
}

static int carry(struct forward *forward, struct err *err)
{
	for (;;) {
		int r = websocket_client_step(forward->websocket, err), readable;

		if (r == 0)
			r = conclude(forward, err);
		if (r < 0)
			return outcome(forward, r);
		websocket_client_hold(forward->websocket, forward->out.len >= OUT_HIGH);
		readable = wait_for_any(forward);
		r = readable < 0 ? readable : flush(forward);
		if (r == 0 && readable)
			r = read_local(forward, err);
		if (r < 0)
			return r;
	}
}

/* So that whoever connected does not take a failure for an end. */
static void reset(int sock)
{
	static const struct linger at_once = {.l_onoff = 1};

	setsockopt(sock, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}

int forward_run(
	struct client *client, const char *sandbox, unsigned port, int sock, struct err *err)
{
	auto_free char *path = mem_printf("/v1/sandboxes/%s/ports/%u/connect", sandbox, port);
	struct forward forward = {.sock = sock, .out = BUF_INIT(OUT_MAX)};
	int r = websocket_client_open(
		client, path, PROTOCOL, take_message, &forward, &forward.websocket, err);

	if (r == 0)
		r = carry(&forward, err);
	if (r < 0)
		reset(sock);
	websocket_client_free(forward.websocket);
	buf_fini(&forward.out);
	fd_close(sock);
	return r;
}
