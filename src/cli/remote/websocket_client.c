/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/remote/websocket_client.h"

#include "base/buf.h"
#include "base/clock.h"
#include "cli/remote/peer.h"
#include "cli/remote/upgrade.h"
#include "cli/terminal/interrupt.h"

#include <curl/curl.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <wslay/wslay.h>

#define OPEN_TIMEOUT_MS 60000 /* a stopped sandbox is started before the answer comes */
#define PING_MS		15000 /* after so much silence */
#define SILENCE_MAX_MS	40000
#define ANSWER_MAX	(64u * 1024)
#define STEP_BYTES	(256u * 1024) /* then the caller's other descriptors have their turn */

struct websocket_client {
	struct client *client;
	CURL *easy;
	int fd;
	struct wslay_event_context *frames;
	struct buf incoming; /* the answer to the upgrade, and what came right behind it */
	size_t taken;
	size_t budget; /* bytes that this step may still receive */
	bool is_held;
	bool is_closing; /* by us */
	uint64_t heard_ms;
	uint64_t pinged_ms;
	char detail[CURL_ERROR_SIZE];

	websocket_client_fn message;
	void *arg;
	int message_result;
	struct err *err;
	char reason[128]; /* of the close */
};

static int lost(const struct websocket_client *ws, struct err *err)
{
	return peer_failure(client_peer(ws->client), CURLE_RECV_ERROR, "", err);
}

void websocket_client_free(struct websocket_client *ws)
{
	if (!ws)
		return;
	wslay_event_context_free(ws->frames);
	curl_easy_cleanup(ws->easy);
	buf_fini(&ws->incoming);
	free(ws);
}

static void websocket_client_freep(struct websocket_client **wsp)
{
	websocket_client_free(*wsp);
}

/* libcurl asks about once a second while it connects. */
static int on_progress(void *arg, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	struct websocket_client *ws = arg;

	(void)a, (void)b, (void)c, (void)d;
	ws->message_result = interrupt_check(client_interrupt(ws->client), ws->err);
	return ws->message_result < 0;
}

static int dial(struct websocket_client *ws, struct err *err)
{
	curl_socket_t fd = CURL_SOCKET_BAD;
	CURLcode code;
	int r = peer_check(client_peer(ws->client), err);

	if (r < 0)
		return r;
	ws->err = err;
	ws->easy = peer_handle(client_peer(ws->client));
	curl_easy_setopt(ws->easy, CURLOPT_CONNECT_ONLY, 1L);
	/* A proxy that reads requests would not let an upgrade through. */
	curl_easy_setopt(ws->easy, CURLOPT_HTTPPROXYTUNNEL, 1L);
	curl_easy_setopt(ws->easy, CURLOPT_ERRORBUFFER, ws->detail);
	curl_easy_setopt(ws->easy, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(ws->easy, CURLOPT_XFERINFOFUNCTION, on_progress);
	curl_easy_setopt(ws->easy, CURLOPT_XFERINFODATA, ws);
	code = curl_easy_perform(ws->easy);
	if (ws->message_result < 0)
		return ws->message_result;
	if (code != CURLE_OK)
		return peer_failure(client_peer(ws->client), code, ws->detail, err);
	if (curl_easy_getinfo(ws->easy, CURLINFO_ACTIVESOCKET, &fd) != CURLE_OK || fd < 0)
		return lost(ws, err);
	ws->fd = fd;
	return 0;
}

/* Waits during the opening. */
static int wait_for(
	struct websocket_client *ws, short events, uint64_t deadline_ms, struct err *err)
{
	uint64_t now_ms = clock_steady_ms();
	int r = now_ms < deadline_ms ? interrupt_wait(client_interrupt(ws->client), ws->fd, events,
					       (int)(deadline_ms - now_ms), err)
				     : 0;

	if (r == 0)
		return peer_failure(client_peer(ws->client), CURLE_OPERATION_TIMEDOUT, "", err);
	return r < 0 ? r : 0;
}

static int send_all(
	struct websocket_client *ws, const struct buf *bytes, uint64_t deadline_ms, struct err *err)
{
	size_t sent = 0;

	while (sent < bytes->len) {
		size_t n = 0;
		CURLcode code = curl_easy_send(ws->easy, bytes->data + sent, bytes->len - sent, &n);
		int r;

		sent += n;
		if (code != CURLE_OK && code != CURLE_AGAIN)
			return lost(ws, err);
		r = code == CURLE_AGAIN ? wait_for(ws, POLLOUT, deadline_ms, err) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

/* Bytes into incoming: 1, 0 at the end of the connection, or -errno. */
static int receive_some(struct websocket_client *ws, uint64_t deadline_ms, struct err *err)
{
	char chunk[4096];

	for (;;) {
		size_t n = 0;
		CURLcode code = curl_easy_recv(ws->easy, chunk, sizeof(chunk), &n);
		int r;

		if (code == CURLE_OK && n == 0)
			return 0;
		if (code == CURLE_OK && buf_append(&ws->incoming, chunk, n) < 0)
			return err_set(err, ERR_INTERNAL,
				"the answer to the upgrade is larger than %u bytes", ANSWER_MAX);
		if (code == CURLE_OK)
			return 1;
		if (code != CURLE_AGAIN)
			return lost(ws, err);
		r = wait_for(ws, POLLIN, deadline_ms, err);
		if (r < 0)
			return r;
	}
}

/* The rest of an error answer, as far as it can be had; its status alone says enough. */
static int refuse(struct websocket_client *ws, const struct upgrade_answer *answer,
	uint64_t deadline_ms, struct err *err)
{
	struct err ignored;

	while (ws->incoming.len - answer->head_len < answer->body_len) {
		if (receive_some(ws, deadline_ms, &ignored) <= 0)
			break;
	}
	return peer_refusal(client_peer(ws->client), answer->status,
		(const char *)ws->incoming.data + answer->head_len,
		ws->incoming.len - answer->head_len, err);
}

static int handshake(
	struct websocket_client *ws, const char *path, const char *protocol, struct err *err)
{
	uint64_t deadline_ms = clock_steady_ms() + OPEN_TIMEOUT_MS;
	auto_(buf_fini) struct buf request = BUF_INIT(UPGRADE_REQUEST_MAX);
	struct upgrade_answer answer = {0};
	char key[UPGRADE_KEY_LEN + 1];
	int r = upgrade_request(ws->client, path, protocol, key, &request, err);

	if (r == 0)
		r = send_all(ws, &request, deadline_ms, err);
	if (r < 0)
		return r;
	for (;;) {
		r = receive_some(ws, deadline_ms, err);
		if (r == 0)
			return lost(ws, err);
		if (r < 0)
			return r;
		r = upgrade_parse(
			(const char *)ws->incoming.data, ws->incoming.len, key, protocol, &answer);
		if (r < 0)
			return err_explain(err, ERR_INTERNAL, NULL,
				"is another program listening there?",
				"%s did not answer as a WebSocket does", client_url(ws->client));
		if (r == UPGRADE_REFUSED)
			return refuse(ws, &answer, deadline_ms, err);
		if (r == UPGRADE_DONE) {
			ws->taken = answer.head_len;
			return 0;
		}
	}
}

static ssize_t on_receive(
	struct wslay_event_context *frames, uint8_t *data, size_t len, int flags, void *arg)
{
	struct websocket_client *ws = arg;
	size_t n = ws->incoming.len - ws->taken;
	CURLcode code = CURLE_OK;

	(void)flags;
	len = len < ws->budget ? len : ws->budget;
	if (len == 0) {
		code = CURLE_AGAIN;
	} else if (n > 0) {
		n = n < len ? n : len;
		memcpy(data, ws->incoming.data + ws->taken, n);
		ws->taken += n;
	} else {
		code = curl_easy_recv(ws->easy, data, len, &n);
	}
	if (code == CURLE_OK && n > 0) {
		ws->heard_ms = clock_steady_ms();
		ws->budget -= n;
		return (ssize_t)n;
	}
	wslay_event_set_error(
		frames, code == CURLE_AGAIN ? WSLAY_ERR_WOULDBLOCK : WSLAY_ERR_CALLBACK_FAILURE);
	return -1;
}

static ssize_t on_send(
	struct wslay_event_context *frames, const uint8_t *data, size_t len, int flags, void *arg)
{
	struct websocket_client *ws = arg;
	size_t n = 0;
	CURLcode code = curl_easy_send(ws->easy, data, len, &n);

	(void)flags;
	if (code == CURLE_OK && n > 0)
		return (ssize_t)n;
	wslay_event_set_error(frames, code == CURLE_OK || code == CURLE_AGAIN
					      ? WSLAY_ERR_WOULDBLOCK
					      : WSLAY_ERR_CALLBACK_FAILURE);
	return -1;
}

static int on_mask(struct wslay_event_context *frames, uint8_t *data, size_t len, void *arg)
{
	(void)frames, (void)arg;
	return getrandom(data, len, 0) == (ssize_t)len ? 0 : -1;
}

static void on_message(struct wslay_event_context *frames,
	const struct wslay_event_on_msg_recv_arg *message, void *arg)
{
	struct websocket_client *ws = arg;
	bool is_text = message->opcode == WSLAY_TEXT_FRAME;

	if (message->opcode == WSLAY_CONNECTION_CLOSE && message->msg_length > 2) {
		size_t len = message->msg_length - 2;

		len = len < sizeof(ws->reason) ? len : sizeof(ws->reason) - 1;
		memcpy(ws->reason, message->msg + 2, len);
		ws->reason[len] = '\0';
	}
	if (wslay_is_ctrl_frame(message->opcode) || ws->message_result < 0)
		return;
	ws->message_result =
		ws->message(ws->arg, is_text, message->msg, message->msg_length, ws->err);
	if (ws->message_result < 0)
		wslay_event_shutdown_read(frames);
}

static int start_frames(struct websocket_client *ws, struct err *err)
{
	static const struct wslay_event_callbacks callbacks = {
		.recv_callback = on_receive,
		.send_callback = on_send,
		.genmask_callback = on_mask,
		.on_msg_recv_callback = on_message,
	};

	if (wslay_event_context_client_init(&ws->frames, &callbacks, ws) != 0)
		return err_set(err, ERR_INTERNAL, "no memory for a WebSocket");
	wslay_event_config_set_max_recv_msg_length(ws->frames, WEBSOCKET_CLIENT_MESSAGE_MAX);
	ws->heard_ms = ws->pinged_ms = clock_steady_ms();
	return 0;
}

int websocket_client_open(struct client *client, const char *path, const char *protocol,
	websocket_client_fn message, void *arg, struct websocket_client **ret, struct err *err)
{
	auto_(websocket_client_freep) struct websocket_client *ws = mem_new(sizeof(*ws));
	int r;

	ws->client = client;
	ws->fd = -1;
	ws->incoming = BUF_INIT(ANSWER_MAX);
	ws->message = message;
	ws->arg = arg;
	r = dial(ws, err);
	if (r == 0)
		r = handshake(ws, path, protocol, err);
	if (r == 0)
		r = start_frames(ws, err);
	if (r < 0)
		return r;
	*ret = take_ptr(&ws);
	return 0;
}

int websocket_client_fd(const struct websocket_client *ws)
{
	return ws->fd;
}

short websocket_client_events(const struct websocket_client *ws)
{
	return (short)((ws->is_held ? 0 : POLLIN) |
		       (wslay_event_want_write(ws->frames) ? POLLOUT : 0));
}

int websocket_client_wait_ms(const struct websocket_client *ws)
{
	uint64_t now_ms = clock_steady_ms();
	uint64_t last_ms = ws->heard_ms > ws->pinged_ms ? ws->heard_ms : ws->pinged_ms;

	/* There may be more, where poll does not see it: libcurl has a buffer, and so has TLS. */
	if (ws->budget == 0 && !ws->is_held)
		return 0;
	if (ws->is_closing)
		return PING_MS;
	return now_ms - last_ms < PING_MS ? (int)(PING_MS - (now_ms - last_ms)) : 0;
}

static int queue(
	struct websocket_client *ws, uint8_t opcode, const void *data, size_t len, struct err *err)
{
	struct wslay_event_msg message = {.opcode = opcode, .msg = data, .msg_length = len};

	if (wslay_event_queue_msg(ws->frames, &message) != 0)
		return lost(ws, err);
	return 0;
}

int websocket_client_send(
	struct websocket_client *ws, bool is_text, const void *data, size_t len, struct err *err)
{
	return queue(ws, is_text ? WSLAY_TEXT_FRAME : WSLAY_BINARY_FRAME, data, len, err);
}

size_t websocket_client_queued(const struct websocket_client *ws)
{
	return wslay_event_get_queued_msg_length(ws->frames);
}

int websocket_client_close(struct websocket_client *ws, struct err *err)
{
	ws->is_closing = true;
	if (wslay_event_queue_close(ws->frames, WSLAY_CODE_NORMAL_CLOSURE, NULL, 0) != 0)
		return lost(ws, err);
	return 0;
}

void websocket_client_hold(struct websocket_client *ws, bool is_held)
{
	ws->is_held = is_held;
}

unsigned websocket_client_status(const struct websocket_client *ws)
{
	return wslay_event_get_close_received(ws->frames)
		       ? wslay_event_get_status_code_received(ws->frames)
		       : 0;
}

static int closed(const struct websocket_client *ws, struct err *err)
{
	unsigned status = websocket_client_status(ws);

	/* That it ended or must be begun anew is no refusal; all else would only happen again. */
	if (status == WSLAY_CODE_NORMAL_CLOSURE || status == WSLAY_CODE_GOING_AWAY ||
		status == WSLAY_CODE_INTERNAL_SERVER_ERROR ||
		status == WSLAY_CODE_ABNORMAL_CLOSURE || status == WSLAY_CODE_NO_STATUS_RCVD)
		return lost(ws, err);
	return err_set(err, ERR_INTERNAL, "the daemon at %s closed the connection (%u%s%s)",
		client_url(ws->client), status, ws->reason[0] ? ": " : "", ws->reason);
}

static int keep_alive(struct websocket_client *ws, struct err *err)
{
	uint64_t now_ms = clock_steady_ms();

	if (ws->is_held)
		ws->heard_ms = now_ms;
	if (ws->is_held && now_ms - ws->pinged_ms >= PING_MS) {
		/* A ping would be answered, and the answers would wait for us by the dozen. */
		ws->pinged_ms = now_ms;
		return queue(ws, WSLAY_PONG, NULL, 0, err);
	}
	if (now_ms - ws->heard_ms >= SILENCE_MAX_MS)
		return lost(ws, err);
	if (ws->is_closing || now_ms - ws->heard_ms < PING_MS || now_ms - ws->pinged_ms < PING_MS)
		return 0;
	ws->pinged_ms = now_ms;
	return queue(ws, WSLAY_PING, NULL, 0, err);
}

int websocket_client_step(struct websocket_client *ws, struct err *err)
{
	int r;

	ws->err = err;
	ws->message_result = 0;
	ws->budget = ws->is_held ? 0 : STEP_BYTES;
	r = wslay_event_recv(ws->frames);
	if (ws->message_result < 0)
		return ws->message_result;
	if (wslay_event_get_close_received(ws->frames)) {
		/* The answer to their close; whether it arrives is their concern. */
		if (wslay_event_send(ws->frames) != 0)
			return lost(ws, err);
		return closed(ws, err);
	}
	if (r != 0 || !wslay_event_get_read_enabled(ws->frames))
		return lost(ws, err);
	r = keep_alive(ws, err);
	if (r < 0)
		return r;
	return wslay_event_send(ws->frames) == 0 ? 0 : lost(ws, err);
}
