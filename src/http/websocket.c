/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wslay takes apart what the client sends: it checks frames and UTF-8, and answers pings and closes. It
 * belongs to the poller's thread alone, so no lock is held when it finds a message and we call
 * `message`. What is sent does not go through it, but for its own control frames: our frames are not
 * masked, and a header before the bytes is all there is to them. They go to the socket at once, from
 * whichever thread, while nothing waits; else into the queue, which always holds whole frames but for
 * the first, and which the poller's thread writes.
 *
 * libmicrohttpd keeps 32 KiB for a connection until it is closed, and closing an upgraded one from
 * elsewhere calls us back under its own lock. So the socket is duplicated and the library's half closed
 * at once, within the upgrade (answer.c); nothing of the library is needed afterwards.
 *
 * The end. After a close frame of ours nothing is sent any more. When the other side's is there too, or
 * what it sent is not to be understood, our sending side is shut, and what still comes is dropped until
 * the client leaves: closing on unread bytes would reset the connection, and take the close frame away
 * from a client that has not read it yet. All of that has a deadline.
 */
#include "http/websocket.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "http/connection.h"
#include "http/poller.h"
#include "http/request_private.h"
#include "http/ring.h"
#include "http/server_private.h"
#include "http/websocket_private.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <wslay/wslay.h>

#define ROUND_MAX     (256u * 1024) /* read before others have their turn */
#define CONTROLS_MAX  64	    /* answers to pings that may wait before reading stops */
#define PINGS_MAX     2		    /* unanswered */
#define CLOSE_MS      2000	    /* without progress, once it is being closed */
#define CLOSE_ALL_MS  30000	    /* with progress */
#define REASON_MAX    123
#define HEADER_MAX    10
#define PROTOCOL_FAIL 1002
#define EARLY_MAX     (64u * 1024) /* more than the HTTP library has of a connection */

/*
 * What may lie unsent in the kernel; more waits in our queue, so that a slow client is not megabytes
 * behind what happens. Measured on loopback: as fast as without up to 16 KiB a message (over 2 GB/s), with
 * 64 KiB 1.5 instead of 1.9 GB/s.
 */
#define UNSENT_MAX (128 * 1024)

enum state {
	WAITING, /* for its handshake */
	OPEN,
	CLOSING, /* our close frame is queued or sent */
	OVER,
};

/* A message that came out of the last read after the reading was paused. */
struct held {
	struct held *next;
	bool is_text;
	size_t len;
	uint8_t data[]; /* and a NUL */
};

struct websocket {
	atomic_uint refs; /* the server's, callbacks of the poller, and those of websocket_ref() */
	struct websocket_events events;
	void *arg;
	size_t capacity;
	struct server *server;	    /* from its opening until it is over */
	struct principal principal; /* who opened it; not changed later */
	uint64_t source;
	struct websocket *prev, *next; /* in server->websockets, under the server's lock */

	/* Of the poller's thread. */
	wslay_event_context_ptr parser;
	struct buf early;   /* came with the handshake */
	struct buf message; /* as far as it is there */
	bool was_told;	    /* of its opening */
	bool in_control;    /* the frame being read is a control frame */
	bool is_deaf;	    /* the parser takes nothing more */
	bool has_ended;	    /* the client's side of the connection */
	bool is_drained;    /* the last read took all there was */
	size_t round;	    /* bytes read in this one */

	pthread_mutex_t lock;
	/* Under the lock from here on; `sock` is changed by the poller's thread only. */
	enum state state;
	int sock;
	bool is_served; /* the poller's thread is at it, and will look at all this when done */
	bool is_paused;
	bool is_choked; /* too many answers to pings wait */
	bool is_cut;	/* to be ended, whatever else */
	bool is_shut;	/* our sending side */
	struct ring queue;
	size_t refused; /* the largest send that did not fit since the last call of room; 0: none */
	struct held *held, **held_end;
	unsigned pings; /* since the client was last heard of */
	uint64_t pinged_ms;
	uint64_t close_by_ms, close_until_ms;
	uint32_t armed; /* what the poller waits for, at least */
	struct poller_watch watch;
	struct poller_alarm alarm;
};

static void hold(void *owner)
{
	websocket_ref(owner);
}

static void drop(void *owner)
{
	websocket_unref(owner);
}

static void serve_socket(void *owner, uint32_t events);
static void serve_alarm(void *owner, uint32_t events);

static const struct poller_ops watch_ops = {hold, drop, serve_socket};
static const struct poller_ops alarm_ops = {hold, drop, serve_alarm};

struct websocket *websocket_new(size_t capacity, const struct websocket_events *events, void *arg)
{
	struct websocket *ws = mem_new(sizeof(*ws));

	assert(capacity > 0);
	atomic_init(&ws->refs, 1);
	pthread_mutex_init(&ws->lock, NULL);
	ws->events = *events;
	ws->arg = arg;
	ws->capacity = capacity;
	ws->sock = -1;
	ws->early = BUF_INIT(EARLY_MAX);
	ws->message = BUF_INIT(WEBSOCKET_MESSAGE_MAX + 1);
	ws->held_end = &ws->held;
	ws->watch = (struct poller_watch){.ops = &watch_ops, .owner = ws};
	ws->alarm = (struct poller_alarm){.ops = &alarm_ops, .owner = ws};
	return ws;
}

struct websocket *websocket_ref(struct websocket *ws)
{
	atomic_fetch_add(&ws->refs, 1);
	return ws;
}

void websocket_unref(struct websocket *ws)
{
	if (!ws || atomic_fetch_sub(&ws->refs, 1) != 1)
		return;
	pthread_mutex_destroy(&ws->lock);
	free(ws);
}

/* Waiting. Whatever changes while the poller's thread is at it is looked at when that is done. */

static bool wants_read(const struct websocket *ws)
{
	return ws->state == CLOSING || (!ws->is_paused && !ws->is_choked && !ws->held);
}

static void arm(struct websocket *ws)
{
	uint32_t events = (wants_read(ws) ? EPOLLIN : 0) | (ws->queue.len > 0 ? EPOLLOUT : 0);

	/* With neither, it still tells of a connection that was reset. */
	if (ws->is_served || ws->state == OVER || (ws->watch.slot && events == ws->armed))
		return;
	if (poller_arm(ws->server->poller, &ws->watch, ws->sock, events) == 0) {
		ws->armed = events;
	} else {
		log_warning("a WebSocket cannot be watched");
		ws->is_cut = true;
		poller_set_alarm(ws->server->poller, &ws->alarm, 1);
	}
}

static void call_poller(struct websocket *ws)
{
	if (!ws->is_served && ws->state != OVER)
		poller_set_alarm(ws->server->poller, &ws->alarm, 1);
}

/* Sending: all with the lock held. */

static void cut(struct websocket *ws)
{
	ws->is_cut = true;
	call_poller(ws);
}

/* How many bytes the socket takes now, of those in the pieces. */
static size_t push(struct websocket *ws, struct iovec *pieces, int count)
{
	struct msghdr message = {.msg_iov = pieces, .msg_iovlen = (size_t)count};
	ssize_t n = ws->is_cut ? 0 : sendmsg(ws->sock, &message, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n < 0 && errno != EAGAIN && errno != EINTR)
		cut(ws);
	return n < 0 ? 0 : (size_t)n;
}

static size_t make_header(uint8_t header[HEADER_MAX], uint8_t opcode, size_t len)
{
	unsigned bytes = len < 126 ? 0 : len <= UINT16_MAX ? 2 : 8;

	header[0] = 0x80 | opcode; /* the only frame of its message */
	header[1] = bytes == 0 ? (uint8_t)len : bytes == 2 ? 126 : 127;
	for (unsigned i = 0; i < bytes; i++)
		header[2 + i] = (uint8_t)((uint64_t)len >> 8 * (bytes - 1 - i));
	return 2 + bytes;
}

static int queue_rest(struct websocket *ws, const struct iovec *piece, size_t *done)
{
	size_t skip = *done < piece->iov_len ? *done : piece->iov_len;

	*done -= skip;
	return ring_put(&ws->queue, ws->capacity, (const char *)piece->iov_base + skip,
		piece->iov_len - skip);
}

/* Only while no close frame was put. What the socket does not take waits. */
static int put_frame(struct websocket *ws, uint8_t opcode, const void *data, size_t len)
{
	uint8_t header[HEADER_MAX];
	struct iovec pieces[] = {{header, make_header(header, opcode, len)}, {(void *)data, len}};
	size_t done = 0;
	int r = 0;

	if (ws->queue.len == 0) {
		done = push(ws, pieces, len > 0 ? 2 : 1);
		if (ws->is_cut)
			return -EPIPE;
	}
	for (size_t i = 0; i < array_len(pieces) && r == 0; i++)
		r = queue_rest(ws, &pieces[i], &done);
	if (r < 0) {
		/* Half a frame is there: nothing can follow it. */
		cut(ws);
		return -EPIPE;
	}
	if (ws->queue.len > 0)
		arm(ws);
	return 0;
}

/* From now on it is only a matter of time. */
static void start_closing(struct websocket *ws)
{
	uint64_t now = clock_steady_ms();

	ws->state = CLOSING;
	ws->close_by_ms = now + CLOSE_MS;
	ws->close_until_ms = now + CLOSE_ALL_MS;
	if (ws->is_served)
		return;
	poller_set_alarm(ws->server->poller, &ws->alarm, ws->close_by_ms);
	arm(ws);
}

static void put_close(struct websocket *ws, unsigned status, const char *reason)
{
	uint8_t payload[2 + REASON_MAX] = {(uint8_t)(status >> 8), (uint8_t)status};
	size_t len = reason ? strlen(reason) : 0;

	if (len > REASON_MAX)
		for (len = REASON_MAX; len > 0 && ((uint8_t)reason[len] & 0xc0) == 0x80; len--)
			continue;
	if (len > 0)
		memcpy(payload + 2, reason, len);
	if (put_frame(ws, WSLAY_CONNECTION_CLOSE, payload, 2 + len) == 0)
		start_closing(ws);
}

/* Writes what waits, as far as it goes. */
static void flush(struct websocket *ws)
{
	size_t before = ws->queue.len;
	struct iovec pieces[2];
	size_t want, n;

	do {
		want = ws->queue.len;
		n = want > 0 ? push(ws, pieces, ring_pieces(&ws->queue, pieces)) : 0;
		ring_drop(&ws->queue, n);
	} while (n > 0 && n < want);
	if (ws->queue.len == before)
		return;
	ws->pings = 0;
	if (ws->state == CLOSING) {
		uint64_t by = clock_steady_ms() + CLOSE_MS;

		ws->close_by_ms = by < ws->close_until_ms ? by : ws->close_until_ms;
	}
}

/* Half of the queue must be free before a sender is called: not for every few bytes. */
static bool has_room(const struct websocket *ws)
{
	size_t want = ws->refused > ws->capacity / 2 ? ws->refused : ws->capacity / 2;

	if (ws->refused == 0 || ws->state != OPEN)
		return false;
	return ws->queue.len == 0 || (want <= ws->capacity && ws->queue.len <= ws->capacity - want);
}

int websocket_send(struct websocket *ws, bool is_text, const void *data, size_t len)
{
	int r;

	pthread_mutex_lock(&ws->lock);
	if (ws->state != OPEN || ws->is_cut) {
		r = -EPIPE;
	} else if (ws->queue.len > 0 &&
		   (len > ws->capacity || ws->queue.len > ws->capacity - len)) {
		if (len >= ws->refused)
			ws->refused = len > 0 ? len : 1;
		r = -EAGAIN;
	} else {
		r = put_frame(ws, is_text ? WSLAY_TEXT_FRAME : WSLAY_BINARY_FRAME, data, len);
	}
	pthread_mutex_unlock(&ws->lock);
	return r;
}

void websocket_pause(struct websocket *ws, bool is_paused)
{
	pthread_mutex_lock(&ws->lock);
	if (ws->state == OPEN && ws->is_paused != is_paused) {
		ws->is_paused = is_paused;
		ws->pings = 0;
		/* On the way back there may be something that was held. */
		if (is_paused)
			arm(ws);
		else
			call_poller(ws);
	}
	pthread_mutex_unlock(&ws->lock);
}

void websocket_close(struct websocket *ws, enum websocket_status status, const char *reason)
{
	pthread_mutex_lock(&ws->lock);
	if (ws->state == OPEN)
		put_close(ws, status, reason);
	pthread_mutex_unlock(&ws->lock);
}

/* What wslay calls while it reads: no lock is held. */

static bool may_read_on(struct websocket *ws)
{
	bool may;

	if (ws->is_drained || ws->round >= ROUND_MAX ||
		wslay_event_get_queued_msg_count(ws->parser) > CONTROLS_MAX)
		return false;
	pthread_mutex_lock(&ws->lock);
	may = wants_read(ws) && !ws->is_cut;
	pthread_mutex_unlock(&ws->lock);
	return may;
}

static ssize_t read_bytes(struct websocket *ws, uint8_t *data, size_t len)
{
	ssize_t n;

	if (ws->early.len > 0) {
		n = (ssize_t)(len < ws->early.len ? len : ws->early.len);
		memcpy(data, ws->early.data, (size_t)n);
		buf_consume(&ws->early, (size_t)n);
		if (ws->early.len == 0)
			buf_fini(&ws->early);
	} else {
		n = recv(ws->sock, data, len, MSG_DONTWAIT);
		ws->is_drained = n < (ssize_t)len;
		ws->has_ended = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
	}
	ws->round += n > 0 ? (size_t)n : 0;
	return n;
}

static ssize_t on_read(
	wslay_event_context_ptr parser, uint8_t *data, size_t len, int flags, void *arg)
{
	struct websocket *ws = arg;
	ssize_t n = may_read_on(ws) ? read_bytes(ws, data, len) : -1;

	(void)flags;
	if (n > 0)
		return n;
	wslay_event_set_error(
		parser, ws->has_ended ? WSLAY_ERR_CALLBACK_FAILURE : WSLAY_ERR_WOULDBLOCK);
	return -1;
}

static void on_frame(wslay_event_context_ptr parser,
	const struct wslay_event_on_frame_recv_start_arg *frame, void *arg)
{
	struct websocket *ws = arg;

	ws->in_control = wslay_is_ctrl_frame(frame->opcode);
	if (ws->in_control)
		return;
	/* wslay has looked at the size of the frame; it does not know that of the message. */
	if (ws->message.len + frame->payload_length > WEBSOCKET_MESSAGE_MAX ||
		buf_reserve(&ws->message, (size_t)frame->payload_length + 1) < 0) {
		wslay_event_shutdown_read(parser);
		wslay_event_queue_close(parser, WSLAY_CODE_MESSAGE_TOO_BIG, NULL, 0);
	}
}

static void on_piece(wslay_event_context_ptr parser,
	const struct wslay_event_on_frame_recv_chunk_arg *piece, void *arg)
{
	struct websocket *ws = arg;

	if (!ws->in_control && wslay_event_get_read_enabled(parser))
		buf_append(&ws->message, piece->data, piece->data_length);
}

static void hold_message(struct websocket *ws, bool is_text)
{
	struct held *held = mem_new(sizeof(*held) + ws->message.len + 1);

	held->is_text = is_text;
	held->len = ws->message.len;
	memcpy(held->data, ws->message.data, held->len);
	*ws->held_end = held;
	ws->held_end = &held->next;
}

static void on_message(wslay_event_context_ptr parser,
	const struct wslay_event_on_msg_recv_arg *message, void *arg)
{
	struct websocket *ws = arg;
	bool is_text = message->opcode == WSLAY_TEXT_FRAME;
	bool is_wanted;

	if (ws->in_control || !wslay_event_get_read_enabled(parser))
		return;
	ws->message.data[ws->message.len] = '\0'; /* on_frame() left room for it */
	pthread_mutex_lock(&ws->lock);
	is_wanted = ws->state == OPEN;
	if (is_wanted && (ws->is_paused || ws->held)) {
		hold_message(ws, is_text);
		is_wanted = false;
	}
	pthread_mutex_unlock(&ws->lock);
	if (is_wanted)
		ws->events.message(ws->arg, is_text, ws->message.data, ws->message.len);
	ws->message.len = 0;
}

/* The lock is held: other frames must not come between the pieces of this one. */
static ssize_t on_write(
	wslay_event_context_ptr parser, const uint8_t *data, size_t len, int flags, void *arg)
{
	struct websocket *ws = arg;

	(void)flags;
	/* Behind a close frame nothing goes out. */
	if (ws->state == CLOSING || ring_put(&ws->queue, ws->capacity, data, len) == 0)
		return (ssize_t)len;
	wslay_event_set_error(parser, WSLAY_ERR_CALLBACK_FAILURE);
	return -1;
}

static const struct wslay_event_callbacks callbacks = {
	.recv_callback = on_read,
	.send_callback = on_write,
	.on_frame_recv_start_callback = on_frame,
	.on_frame_recv_chunk_callback = on_piece,
	.on_msg_recv_callback = on_message,
};

/* What the poller's thread does. */

static void deliver_held(struct websocket *ws)
{
	struct held *held;

	do {
		pthread_mutex_lock(&ws->lock);
		held = ws->state == OPEN && !ws->is_paused ? ws->held : NULL;
		if (held) {
			ws->held = held->next;
			if (!ws->held)
				ws->held_end = &ws->held;
		}
		pthread_mutex_unlock(&ws->lock);
		if (held)
			ws->events.message(ws->arg, held->is_text, held->data, held->len);
		free(held);
	} while (held);
}

static void drop_input(struct websocket *ws)
{
	uint8_t data[16384];

	buf_fini(&ws->early);
	while (!ws->is_drained && !ws->has_ended && ws->round < ROUND_MAX)
		read_bytes(ws, data, sizeof(data));
}

static void read_input(struct websocket *ws)
{
	int r;

	ws->round = 0;
	ws->is_drained = ws->has_ended = false;
	if (ws->is_deaf) {
		drop_input(ws);
		return;
	}
	r = wslay_event_recv(ws->parser);
	ws->is_deaf = !wslay_event_get_read_enabled(ws->parser);
	if (ws->message.len == 0)
		buf_fini(&ws->message);
	/* Of what is wrong with a header, wslay's close frame would not tell. */
	if (r == WSLAY_ERR_CALLBACK_FAILURE && !ws->has_ended) {
		pthread_mutex_lock(&ws->lock);
		if (ws->state == OPEN)
			put_close(ws, PROTOCOL_FAIL, NULL);
		pthread_mutex_unlock(&ws->lock);
	}
}

/*
 * Sends wslay's answers, unless there is too much in front of them. A close is taken note of when all
 * that came before it was delivered. The lock is held.
 */
static void put_controls(struct websocket *ws)
{
	bool is_last = ws->is_deaf && !ws->held;

	if (wslay_event_want_write(ws->parser) &&
		(is_last || ws->state == CLOSING ||
			(!ws->is_deaf && ws->queue.len <= ws->capacity))) {
		if (wslay_event_send(ws->parser) != 0)
			ws->is_cut = true;
		flush(ws);
	}
	ws->is_choked =
		ws->state == OPEN && wslay_event_get_queued_msg_count(ws->parser) > CONTROLS_MAX;
	if (is_last && ws->state == OPEN)
		start_closing(ws);
}

static void leave(struct websocket *ws)
{
	struct server *server = ws->server;

	pthread_mutex_lock(&server->lock);
	if (ws->prev)
		ws->prev->next = ws->next;
	else
		server->websockets = ws->next;
	if (ws->next)
		ws->next->prev = ws->prev;
	if (!server->websockets)
		pthread_cond_broadcast(&server->changed);
	pthread_mutex_unlock(&server->lock);
	server_connection_left(server, ws->source);
}

static void end(struct websocket *ws)
{
	pthread_mutex_lock(&ws->lock);
	ws->state = OVER;
	poller_forget(ws->server->poller, &ws->watch);
	poller_set_alarm(ws->server->poller, &ws->alarm, 0);
	fd_close(take_fd(&ws->sock));
	ring_fini(&ws->queue);
	while (ws->held) {
		struct held *held = ws->held;

		ws->held = held->next;
		free(held);
	}
	pthread_mutex_unlock(&ws->lock);
	wslay_event_context_free(take_ptr(&ws->parser));
	buf_fini(&ws->early);
	buf_fini(&ws->message);
	ws->events.gone(ws->arg);
	leave(ws);
	websocket_unref(ws);
}

/* Goes back to waiting; false if there is nothing to wait for. The lock is held. */
static bool settle(struct websocket *ws)
{
	if (ws->is_cut || ws->has_ended)
		return false;
	if (ws->state == CLOSING) {
		if (clock_steady_ms() >= ws->close_by_ms)
			return false;
		if (ws->is_deaf && ws->queue.len == 0 && !ws->is_shut) {
			ws->is_shut = true;
			shutdown(ws->sock, SHUT_WR);
		}
		poller_set_alarm(ws->server->poller, &ws->alarm, ws->close_by_ms);
	}
	if (ws->queue.len == 0)
		ring_fini(&ws->queue);
	ws->is_served = false;
	/* What the socket does not tell of. */
	if ((ws->held && !ws->is_paused) || (ws->early.len > 0 && wants_read(ws)))
		call_poller(ws);
	arm(ws);
	return !ws->is_cut;
}

static void serve(struct websocket *ws)
{
	bool may_read, room, goes_on;

	if (!ws->was_told) {
		ws->was_told = true;
		ws->events.open(ws->arg, ws);
	}
	deliver_held(ws);
	pthread_mutex_lock(&ws->lock);
	flush(ws);
	may_read = wants_read(ws) && !ws->is_cut;
	pthread_mutex_unlock(&ws->lock);
	if (may_read)
		read_input(ws);
	pthread_mutex_lock(&ws->lock);
	if (may_read && ws->round > 0)
		ws->pings = 0;
	put_controls(ws);
	room = has_room(ws);
	if (room)
		ws->refused = 0;
	pthread_mutex_unlock(&ws->lock);
	if (room)
		ws->events.room(ws->arg);
	pthread_mutex_lock(&ws->lock);
	goes_on = settle(ws);
	pthread_mutex_unlock(&ws->lock);
	if (!goes_on)
		end(ws);
}

static void serve_socket(void *owner, uint32_t events)
{
	struct websocket *ws = owner;
	bool is_over;

	pthread_mutex_lock(&ws->lock);
	is_over = ws->state == OVER;
	ws->is_served = !is_over;
	ws->armed = 0;
	/* One that is read tells by itself. */
	if ((events & (EPOLLERR | EPOLLHUP)) && !wants_read(ws))
		ws->is_cut = true;
	pthread_mutex_unlock(&ws->lock);
	if (!is_over)
		serve(ws);
}

static void serve_alarm(void *owner, uint32_t events)
{
	struct websocket *ws = owner;
	bool is_over;

	(void)events;
	pthread_mutex_lock(&ws->lock);
	is_over = ws->state == OVER;
	ws->is_served = !is_over;
	pthread_mutex_unlock(&ws->lock);
	if (!is_over)
		serve(ws);
}

/* Its life, as the server sees it. */

static int take_socket(struct websocket *ws, int sock)
{
	static const int on = 1, unsent = UNSENT_MAX;

	if (wslay_event_context_server_init(&ws->parser, &callbacks, ws) != 0)
		return -ENOMEM;
	wslay_event_config_set_no_buffering(ws->parser, 1);
	wslay_event_config_set_max_recv_msg_length(ws->parser, WEBSOCKET_MESSAGE_MAX);
	ws->sock = fcntl(sock, F_DUPFD_CLOEXEC, 0);
	if (ws->sock < 0)
		return -errno;
	/* Both are for speed alone. */
	setsockopt(ws->sock, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(ws->sock, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof(unsent));
	return 0;
}

void websocket_open(
	struct websocket *ws, const struct request *req, int sock, const void *early, size_t len)
{
	struct server *server = req->server;
	int r = take_socket(ws, sock);

	if (r == 0)
		r = buf_append(&ws->early, early, len);
	if (r < 0) {
		log_warning("cannot open a WebSocket: %s", strerror(-r));
		websocket_abandon(ws);
		return;
	}
	ws->server = server;
	ws->principal = req->principal;
	ws->pinged_ms = clock_steady_ms();
	/* Its place among the connections: the library gives up the one it had. */
	ws->source = req->client->source;
	(void)!server_connection_came(server, ws->source);
	pthread_mutex_lock(&server->lock);
	ws->next = server->websockets;
	if (ws->next)
		ws->next->prev = ws;
	server->websockets = ws;
	pthread_mutex_lock(&ws->lock);
	ws->state = OPEN;
	/* Either server_close() sees it in the list, or we see that it is closing. */
	if (atomic_load(&server->closing))
		put_close(ws, WEBSOCKET_GOING_AWAY, NULL);
	call_poller(ws);
	pthread_mutex_unlock(&ws->lock);
	pthread_mutex_unlock(&server->lock);
}

void websocket_abandon(struct websocket *ws)
{
	wslay_event_context_free(take_ptr(&ws->parser));
	fd_close(take_fd(&ws->sock));
	buf_fini(&ws->early);
	ws->events.gone(ws->arg);
	websocket_unref(ws);
}

static void ping(struct websocket *ws, uint64_t now_ms)
{
	if (ws->state != OPEN || now_ms - ws->pinged_ms < WEBSOCKET_PING_MS)
		return;
	ws->pinged_ms = now_ms;
	if (ws->pings == PINGS_MAX) {
		cut(ws);
		return;
	}
	/* While we do not read, an answer would not be seen. */
	if (!ws->is_paused)
		ws->pings++;
	/* Behind what it does not take, a ping tells nothing more. */
	if (ws->queue.len == 0)
		put_frame(ws, WSLAY_PING, NULL, 0);
}

static void dismiss(struct websocket *ws)
{
	websocket_close(ws, WEBSOCKET_REFUSED, "the token is no longer valid");
}

void websocket_evict(struct server *server, const char *token_id)
{
	pthread_mutex_lock(&server->lock);
	for (struct websocket *ws = server->websockets; ws; ws = ws->next) {
		if (strcmp(ws->principal.token_id, token_id) == 0)
			dismiss(ws);
	}
	pthread_mutex_unlock(&server->lock);
}

void websocket_sweep(struct server *server, uint64_t now_ms)
{
	int64_t wall_ms = clock_wall_ms();

	pthread_mutex_lock(&server->lock);
	for (struct websocket *ws = server->websockets; ws; ws = ws->next) {
		if (principal_is_over(&ws->principal, wall_ms))
			dismiss(ws);
		pthread_mutex_lock(&ws->lock);
		ping(ws, now_ms);
		pthread_mutex_unlock(&ws->lock);
	}
	pthread_mutex_unlock(&server->lock);
}

void websocket_close_all(struct server *server)
{
	pthread_mutex_lock(&server->lock);
	for (struct websocket *ws = server->websockets; ws; ws = ws->next)
		websocket_close(ws, WEBSOCKET_GOING_AWAY, NULL);
	pthread_mutex_unlock(&server->lock);
}

void websocket_cut_all(struct server *server)
{
	pthread_mutex_lock(&server->lock);
	for (struct websocket *ws = server->websockets; ws; ws = ws->next) {
		pthread_mutex_lock(&ws->lock);
		cut(ws);
		pthread_mutex_unlock(&ws->lock);
	}
	while (server->websockets)
		pthread_cond_wait(&server->changed, &server->lock);
	pthread_mutex_unlock(&server->lock);
}
