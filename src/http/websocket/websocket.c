/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A websocket is its two halves (websocket_input.h, websocket_queue.h) and what joins them: waiting, pausing,
 * closing. The input belongs to the poller's thread alone, so no lock is held when it finds a message and we
 * call `message`. The queue has our lock: frames go out from whichever thread while nothing waits, else the
 * poller's thread writes them. Of the library's answers to pings and closes each goes in as a whole.
 *
 * libmicrohttpd keeps 32 KiB for a connection until it is closed, and closing an upgraded one from
 * elsewhere calls us back under its own lock. So the socket is duplicated and the library's half closed
 * at once, within the upgrade (server/response.c); nothing of the library is needed afterwards.
 *
 * The end. After a close frame of ours nothing is sent any more. When the other side's is there too, or
 * what it sent is not to be understood, our sending side is shut, and what still comes is dropped until
 * the client leaves: closing on unread bytes would reset the connection, and take the close frame away
 * from a client that has not read it yet. All of that has a deadline.
 */
#include "http/websocket/websocket.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/share_pool.h"
#include "event/timer.h"
#include "http/principal.h"
#include "http/websocket/websocket_input.h"
#include "http/websocket/websocket_private.h"
#include "http/websocket/websocket_queue.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <wslay/wslay.h>

#define PINGS_MAX     2	    /* unanswered */
#define CLOSE_MS      2000  /* without progress, once it is being closed */
#define CLOSE_ALL_MS  30000 /* with progress */
#define PROTOCOL_FAIL 1002

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
	atomic_uint refs; /* the server's, of its watch and timer, and those of websocket_ref() */
	struct websocket_events events;
	void *arg;
	struct websocket_list *list;   /* from its opening until it is over */
	struct websocket *prev, *next; /* there, under its lock */
	struct principal principal;    /* who opened it; not changed later */
	struct share *share;	       /* its place among the connections */

	/* Of the poller's thread. */
	struct websocket_input input;
	bool was_told; /* of its opening */

	pthread_mutex_t lock;
	/* Under the lock from here on; `sock` is changed by the poller's thread only. */
	enum state state;
	int sock;
	bool is_served; /* the poller's thread is at it, and will look at all this when done */
	bool is_paused;
	bool is_choked; /* too many answers to pings wait */
	bool is_cut;	/* to be ended, whatever else */
	bool is_shut;	/* our sending side */
	struct websocket_queue queue;
	struct held *held, **held_end;
	unsigned pings; /* since the client was last heard of */
	uint64_t pinged_ms;
	uint64_t close_by_ms, close_until_ms;
	uint32_t armed; /* what the poller waits for, at least */
	struct watch *watch;
	struct timer *alarm; /* from its opening until it is over */
};

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

/* The list's lock is held. */
static void list_add(struct websocket *ws)
{
	ws->next = ws->list->first;
	if (ws->next)
		ws->next->prev = ws;
	ws->list->first = ws;
}

static void list_remove(struct websocket *ws)
{
	struct websocket_list *list = ws->list;

	pthread_mutex_lock(list->lock);
	if (ws->prev)
		ws->prev->next = ws->next;
	else
		list->first = ws->next;
	if (ws->next)
		ws->next->prev = ws->prev;
	if (!list->first)
		pthread_cond_broadcast(list->changed);
	pthread_mutex_unlock(list->lock);
}

/* Waiting. Whatever changes while the poller's thread is at it is looked at when that is done. */

static bool wants_read(const struct websocket *ws)
{
	return ws->state == CLOSING || (!ws->is_paused && !ws->is_choked && !ws->held);
}

static void release_ref(void *arg)
{
	websocket_unref(arg);
}

static void serve_socket(void *arg, uint32_t events);

/* Waits for these events, once. */
static int watch_socket(struct websocket *ws, uint32_t events)
{
	int r;

	events |= EPOLLONESHOT;
	if (ws->watch) {
		watch_set(ws->watch, events);
		return 0;
	}
	r = watch_open(ws->list->poller, ws->sock, events, serve_socket, release_ref,
		websocket_ref(ws), &ws->watch, NULL);
	if (r < 0)
		websocket_unref(ws);
	return r;
}

static void arm(struct websocket *ws)
{
	uint32_t events =
		(wants_read(ws) ? EPOLLIN : 0) | (ws->queue.waiting.len > 0 ? EPOLLOUT : 0);

	/* With neither, it still tells of a connection that was reset. */
	if (ws->is_served || ws->state == OVER || (ws->watch && events == ws->armed))
		return;
	if (watch_socket(ws, events) == 0) {
		ws->armed = events;
	} else {
		log_warning("a WebSocket cannot be watched");
		ws->is_cut = true;
		timer_set(ws->alarm, 0);
	}
}

static void call_poller(struct websocket *ws)
{
	if (!ws->is_served && ws->state != OVER)
		timer_set(ws->alarm, 0);
}

static void set_closing_alarm(struct websocket *ws)
{
	uint64_t now = clock_steady_ms();

	timer_set(ws->alarm, ws->close_by_ms > now ? ws->close_by_ms - now : 0);
}

/* Sending: all with the lock held. */

static void cut(struct websocket *ws)
{
	ws->is_cut = true;
	call_poller(ws);
}

/* After a frame was put: what the socket did not take waits, and behind half of one nothing can follow. */
static int watch_queue(struct websocket *ws, int r)
{
	if (r < 0) {
		cut(ws);
		return -EPIPE;
	}
	if (ws->queue.waiting.len > 0)
		arm(ws);
	return 0;
}

/* Only while no close frame was put. */
static int put_frame(struct websocket *ws, uint8_t opcode, const void *data, size_t len)
{
	if (ws->is_cut)
		return -EPIPE;
	return watch_queue(ws, websocket_queue_put(&ws->queue, ws->sock, opcode, data, len));
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
	set_closing_alarm(ws);
	arm(ws);
}

static void put_close(struct websocket *ws, unsigned status, const char *reason)
{
	if (!ws->is_cut && watch_queue(ws, websocket_queue_put_close(
						   &ws->queue, ws->sock, status, reason)) == 0)
		start_closing(ws);
}

/* Writes what waits, as far as it goes. */
static void flush(struct websocket *ws)
{
	int r = ws->is_cut ? 0 : websocket_queue_flush(&ws->queue, ws->sock);

	if (r < 0)
		cut(ws);
	if (r <= 0)
		return;
	ws->pings = 0;
	if (ws->state == CLOSING) {
		uint64_t by = clock_steady_ms() + CLOSE_MS;

		ws->close_by_ms = by < ws->close_until_ms ? by : ws->close_until_ms;
	}
}

int websocket_send(struct websocket *ws, bool is_text, const void *data, size_t len)
{
	int r;

	pthread_mutex_lock(&ws->lock);
	if (ws->state != OPEN || ws->is_cut) {
		r = -EPIPE;
	} else if (!websocket_queue_admit(&ws->queue, len)) {
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

/* What its input asks and tells. */

static bool may_read(void *owner)
{
	struct websocket *ws = owner;
	bool may;

	pthread_mutex_lock(&ws->lock);
	may = wants_read(ws) && !ws->is_cut;
	pthread_mutex_unlock(&ws->lock);
	return may;
}

static void hold_message(struct websocket *ws, bool is_text, const uint8_t *data, size_t len)
{
	struct held *held = mem_new(sizeof(*held) + len + 1);

	held->is_text = is_text;
	held->len = len;
	memcpy(held->data, data, len);
	*ws->held_end = held;
	ws->held_end = &held->next;
}

static void take_message(void *owner, bool is_text, const uint8_t *data, size_t len)
{
	struct websocket *ws = owner;
	bool is_wanted;

	pthread_mutex_lock(&ws->lock);
	is_wanted = ws->state == OPEN;
	if (is_wanted && (ws->is_paused || ws->held)) {
		hold_message(ws, is_text, data, len);
		is_wanted = false;
	}
	pthread_mutex_unlock(&ws->lock);
	if (is_wanted)
		ws->events.message(ws->arg, is_text, data, len);
}

/* The lock is held: other frames must not come between the pieces of this one. */
static int take_answer(void *owner, const uint8_t *data, size_t len)
{
	struct websocket *ws = owner;

	/* Behind a close frame nothing goes out. */
	return ws->state == CLOSING ? 0
				    : ring_put(&ws->queue.waiting, ws->queue.capacity, data, len);
}

static const struct websocket_input_ops input_ops = {may_read, take_message, take_answer};

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

/*
 * Sends the answers of the input, unless there is too much in front of them. A close is taken note of when all
 * that came before it was delivered. The lock is held.
 */
static void put_controls(struct websocket *ws)
{
	bool is_last = ws->input.drops_input && !ws->held;

	if (websocket_input_has_answers(&ws->input) &&
		(is_last || ws->state == CLOSING ||
			(!ws->input.drops_input && ws->queue.waiting.len <= ws->queue.capacity))) {
		if (websocket_input_answer(&ws->input) < 0)
			ws->is_cut = true;
		flush(ws);
	}
	ws->is_choked = ws->state == OPEN && websocket_input_is_choked(&ws->input);
	if (is_last && ws->state == OPEN)
		start_closing(ws);
}

static void end(struct websocket *ws)
{
	struct websocket_list *list = ws->list;

	pthread_mutex_lock(&ws->lock);
	ws->state = OVER;
	watch_close(take_ptr(&ws->watch));
	timer_close(take_ptr(&ws->alarm));
	fd_close(take_fd(&ws->sock));
	websocket_queue_fini(&ws->queue);
	while (ws->held) {
		struct held *held = ws->held;

		ws->held = held->next;
		free(held);
	}
	pthread_mutex_unlock(&ws->lock);
	websocket_input_fini(&ws->input);
	ws->events.gone(ws->arg);
	list_remove(ws);
	share_give_back(take_ptr(&ws->share));
	list->left(list->arg);
	websocket_unref(ws);
}

/* Goes back to waiting; false if there is nothing to wait for. The lock is held. */
static bool settle(struct websocket *ws)
{
	if (ws->is_cut || ws->input.has_ended)
		return false;
	if (ws->state == CLOSING) {
		if (clock_steady_ms() >= ws->close_by_ms)
			return false;
		if (ws->input.drops_input && ws->queue.waiting.len == 0 && !ws->is_shut) {
			ws->is_shut = true;
			shutdown(ws->sock, SHUT_WR);
		}
		set_closing_alarm(ws);
	}
	if (ws->queue.waiting.len == 0)
		websocket_queue_fini(&ws->queue);
	ws->is_served = false;
	/* What the socket does not tell of. */
	if ((ws->held && !ws->is_paused) || (ws->input.early.len > 0 && wants_read(ws)))
		call_poller(ws);
	arm(ws);
	return !ws->is_cut;
}

static void serve(struct websocket *ws)
{
	bool can_read, room, goes_on;
	int r = 0;

	if (!ws->was_told) {
		ws->was_told = true;
		ws->events.open(ws->arg, ws);
	}
	deliver_held(ws);
	pthread_mutex_lock(&ws->lock);
	flush(ws);
	can_read = wants_read(ws) && !ws->is_cut;
	pthread_mutex_unlock(&ws->lock);
	if (can_read)
		r = websocket_input_read(&ws->input);
	pthread_mutex_lock(&ws->lock);
	if (can_read && ws->input.round > 0)
		ws->pings = 0;
	if (r < 0 && ws->state == OPEN)
		put_close(ws, PROTOCOL_FAIL, NULL);
	put_controls(ws);
	room = ws->state == OPEN && websocket_queue_has_room(&ws->queue);
	if (room)
		ws->queue.refused = 0;
	pthread_mutex_unlock(&ws->lock);
	if (room)
		ws->events.room(ws->arg);
	pthread_mutex_lock(&ws->lock);
	goes_on = settle(ws);
	pthread_mutex_unlock(&ws->lock);
	if (!goes_on)
		end(ws);
}

static void serve_socket(void *arg, uint32_t events)
{
	struct websocket *ws = arg;
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

static void serve_timer(void *arg)
{
	struct websocket *ws = arg;
	bool is_over;

	pthread_mutex_lock(&ws->lock);
	is_over = ws->state == OVER;
	ws->is_served = !is_over;
	pthread_mutex_unlock(&ws->lock);
	if (!is_over)
		serve(ws);
}

/* Its life, as the server sees it. */

struct websocket *websocket_new(size_t capacity, const struct websocket_events *events, void *arg)
{
	struct websocket *ws = mem_new(sizeof(*ws));

	assert(capacity > 0);
	atomic_init(&ws->refs, 1);
	pthread_mutex_init(&ws->lock, NULL);
	ws->events = *events;
	ws->arg = arg;
	ws->queue.capacity = capacity;
	ws->sock = -1;
	websocket_input_init(&ws->input, WEBSOCKET_MESSAGE_MAX, &input_ops, ws);
	ws->held_end = &ws->held;
	return ws;
}

static int take_socket(struct websocket *ws, int sock, const void *early, size_t len)
{
	static const int on = 1, unsent = UNSENT_MAX;

	ws->sock = fcntl(sock, F_DUPFD_CLOEXEC, 0);
	if (ws->sock < 0)
		return -errno;
	/* Both are for speed alone. */
	setsockopt(ws->sock, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(ws->sock, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof(unsent));
	return websocket_input_open(&ws->input, ws->sock, early, len);
}

void websocket_open(struct websocket *ws, struct websocket_list *list,
	const struct principal *principal, struct share *share, int sock, const void *early,
	size_t len)
{
	int r = take_socket(ws, sock, early, len);

	if (r < 0) {
		log_warning("cannot open a WebSocket: %s", strerror(-r));
		share_give_back(share);
		list->left(list->arg);
		websocket_abandon(ws);
		return;
	}
	ws->list = list;
	ws->alarm = timer_open(list->poller, serve_timer, release_ref, websocket_ref(ws));
	ws->principal = *principal;
	ws->pinged_ms = clock_steady_ms();
	ws->share = share;
	pthread_mutex_lock(list->lock);
	list_add(ws);
	pthread_mutex_lock(&ws->lock);
	ws->state = OPEN;
	/* Either server_close() sees it in the list, or we see that it is closing. */
	if (atomic_load(list->is_closing))
		put_close(ws, WEBSOCKET_GOING_AWAY, NULL);
	call_poller(ws);
	pthread_mutex_unlock(&ws->lock);
	pthread_mutex_unlock(list->lock);
}

void websocket_abandon(struct websocket *ws)
{
	websocket_input_fini(&ws->input);
	fd_close(take_fd(&ws->sock));
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
	if (ws->queue.waiting.len == 0)
		put_frame(ws, WSLAY_PING, NULL, 0);
}

/* What is done to all of them, or to those of one token. */

static void dismiss(struct websocket *ws)
{
	websocket_close(ws, WEBSOCKET_REFUSED, "the token is no longer valid");
}

void websocket_sweep(struct websocket_list *list, uint64_t now_ms)
{
	int64_t wall_ms = clock_wall_ms();

	pthread_mutex_lock(list->lock);
	for (struct websocket *ws = list->first; ws; ws = ws->next) {
		if (principal_is_over(&ws->principal, wall_ms))
			dismiss(ws);
		pthread_mutex_lock(&ws->lock);
		ping(ws, now_ms);
		pthread_mutex_unlock(&ws->lock);
	}
	pthread_mutex_unlock(list->lock);
}

void websocket_evict(struct websocket_list *list, const char *id)
{
	pthread_mutex_lock(list->lock);
	for (struct websocket *ws = list->first; ws; ws = ws->next)
		if (principal_depends_on(&ws->principal, id))
			dismiss(ws);
	pthread_mutex_unlock(list->lock);
}

void websocket_close_all(struct websocket_list *list)
{
	pthread_mutex_lock(list->lock);
	for (struct websocket *ws = list->first; ws; ws = ws->next)
		websocket_close(ws, WEBSOCKET_GOING_AWAY, NULL);
	pthread_mutex_unlock(list->lock);
}

void websocket_cut_all(struct websocket_list *list)
{
	pthread_mutex_lock(list->lock);
	for (struct websocket *ws = list->first; ws; ws = ws->next) {
		pthread_mutex_lock(&ws->lock);
		cut(ws);
		pthread_mutex_unlock(&ws->lock);
	}
	while (list->first)
		pthread_cond_wait(list->changed, list->lock);
	pthread_mutex_unlock(list->lock);
}
