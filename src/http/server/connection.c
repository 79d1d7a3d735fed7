/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server/connection.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/share_pool.h"
#include "http/address_key.h"
#include "http/listener.h"
#include "http/server/request/request_private.h"
#include "http/server/server_private.h"

#include <errno.h>
#include <linux/tcp.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

static void unref(void *arg)
{
	struct connection *connection = arg;

	if (atomic_fetch_sub(&connection->refs, 1) != 1)
		return;
	pthread_mutex_destroy(&connection->lock);
	tls_peer_unref(connection->tls_peer);
	free(connection);
}

struct connection *connection_ref(struct connection *connection)
{
	atomic_fetch_add(&connection->refs, 1);
	return connection;
}

void connection_unref(struct connection *connection)
{
	if (connection)
		unref(connection);
}

/*
 * The library has not closed it. The end of the stream was received, so that shutting this side takes
 * nothing away; but it raises the edge again that makes the library read up to it. That can come too
 * early as well, so it is repeated.
 */
static void nudge(void *arg)
{
	struct connection *connection = arg;

	pthread_mutex_lock(&connection->lock);
	if (connection->sock >= 0) {
		shutdown(connection->sock, SHUT_RD);
		connection->nudges++;
		timer_set(connection->nudge_timer, CONNECTION_NUDGE_MS * connection->nudges);
	}
	pthread_mutex_unlock(&connection->lock);
}

static void hang_up(void *arg, uint32_t events)
{
	struct connection *connection = arg;
	struct request *req = NULL;

	(void)events;
	pthread_mutex_lock(&connection->lock);
	connection->hung_up = true;
	if (connection->request)
		req = request_ref(connection->request);
	if (connection->sock >= 0) {
		connection->nudge_timer = timer_open(
			connection->server->poller, nudge, unref, connection_ref(connection));
		timer_set(connection->nudge_timer, CONNECTION_NUDGE_MS);
	}
	pthread_mutex_unlock(&connection->lock);
	if (req)
		request_hang_up(req);
	request_unref(req);
}

static void add_stranger(struct server *server, struct connection *connection);

struct connection *connection_open(
	struct server *server, struct loop *loop, int sock, struct arrival *arrival)
{
	struct connection *connection = mem_new(sizeof(*connection));

	atomic_init(&connection->refs, 1);
	pthread_mutex_init(&connection->lock, NULL);
	connection->server = server;
	connection->loop = loop;
	connection->sock = sock;
	listener_format(&arrival->address, connection->peer, sizeof(connection->peer));
	connection->source = address_key_of((struct sockaddr *)&arrival->address);
	connection->is_unix = listener_is_unix(&arrival->address);
	connection->tls_peer = take_ptr(&arrival->tls_peer);
	/* Not now: the thread of another loop may be slower. */
	connection->idle_since_us = arrival->since_us;
	pthread_mutex_lock(&server->clients_lock);
	connection->next = server->clients;
	if (connection->next)
		connection->next->prev = connection;
	server->clients = connection;
	connection->is_listed = true;
	add_stranger(server, connection);
	pthread_mutex_unlock(&server->clients_lock);
	/* Without it a hangup is noticed late: no reason to turn the client away. */
	if (watch_open(server->poller, sock, EPOLLRDHUP | EPOLLONESHOT, hang_up, unref,
		    connection_ref(connection), &connection->watch, NULL) < 0) {
		log_warning("a client's connection cannot be watched");
		unref(connection);
	}
	return connection;
}

void connection_close(struct connection *connection)
{
	struct server *server = connection->server;

	watch_close(take_ptr(&connection->watch));
	pthread_mutex_lock(&server->clients_lock);
	if (connection->prev)
		connection->prev->next = connection->next;
	else
		server->clients = connection->next;
	if (connection->next)
		connection->next->prev = connection->prev;
	connection->is_listed = false;
	pthread_mutex_lock(&connection->lock);
	share_give_back(take_ptr(&connection->share));
	connection->sock = -1;
	timer_close(take_ptr(&connection->nudge_timer));
	pthread_mutex_unlock(&connection->lock);
	pthread_mutex_unlock(&server->clients_lock);
	unref(connection);
}

void connection_begin(struct connection *connection, struct request *req)
{
	pthread_mutex_lock(&connection->lock);
	req->client_gone = connection->hung_up;
	connection->request = req;
	pthread_mutex_unlock(&connection->lock);
}

void connection_pass_head(struct connection *connection)
{
	pthread_mutex_lock(&connection->lock);
	connection->heads++;
	pthread_mutex_unlock(&connection->lock);
}

void connection_end(struct connection *connection)
{
	pthread_mutex_lock(&connection->lock);
	connection->request = NULL;
	connection->idle_since_us = clock_steady_us();
	pthread_mutex_unlock(&connection->lock);
}

static uint64_t bytes_received(const struct connection *connection)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);

	if (connection->tls_peer)
		return atomic_load(&connection->tls_peer->bytes);
	getsockopt(connection->sock, IPPROTO_TCP, TCP_INFO, &info, &len);
	return info.tcpi_bytes_received;
}

/* The library sees it as a hangup. Its place is free at once. Both locks are held. */
static void cut(struct connection *connection)
{
	connection->is_cut = true;
	share_give_back(take_ptr(&connection->share));
	if (connection->sock >= 0)
		shutdown(connection->sock, SHUT_RDWR);
}

/* Bytes have come since the last headers were whole: those of the next. */
static void check_head(struct connection *connection, uint64_t now)
{
	uint64_t bytes = bytes_received(connection);

	if (connection->heads != connection->heads_seen) {
		connection->heads_seen = connection->heads;
		connection->head_since_ms = 0;
		connection->bytes_seen = bytes;
	} else if (connection->head_since_ms == 0) {
		connection->head_since_ms = bytes > connection->bytes_seen ? now : 0;
		connection->bytes_seen = bytes;
	} else if (now - connection->head_since_ms > CONNECTION_HEAD_MS) {
		cut(connection);
	}
}

/* Whether a request of it has all its headers, so that whatever comes now is a body or waits. */
static bool is_past_head(struct connection *connection, struct principal *ret_principal)
{
	bool past = false;

	if (connection->request) {
		pthread_mutex_lock(&connection->request->lock);
		past = connection->request->phase != PHASE_HEAD;
		*ret_principal = connection->request->principal;
		pthread_mutex_unlock(&connection->request->lock);
	}
	return past;
}

enum stage {
	STAGE_IDLE, /* headers are there in part or not at all */
	STAGE_BODY, /* the client has to send */
	STAGE_LEAVE, /* it was answered before it has sent all, and is waited for no longer than that takes to read */
	STAGE_BUSY, /* we have to do something, or the client to receive */
};

static enum stage stage_of(struct connection *connection)
{
	enum stage stage = STAGE_BUSY;
	struct request *req = connection->request;

	if (!req)
		return STAGE_IDLE;
	pthread_mutex_lock(&req->lock);
	switch (req->phase) {
	case PHASE_HEAD:
		stage = STAGE_IDLE;
		break;
	case PHASE_GATHER:
	case PHASE_PUMP:
	case PHASE_FILL:
	case PHASE_DROP:
		/* While it is suspended nobody reads: the sandbox is slow, and not the client. */
		stage = req->suspended ? STAGE_BUSY : STAGE_BODY;
		break;
	case PHASE_LINGER:
		stage = connection_is_known(connection) ? STAGE_BODY : STAGE_LEAVE;
		break;
	case PHASE_WORK:
	case PHASE_ANSWER:
	case PHASE_SENDING:
	case PHASE_OVER:
		break;
	}
	pthread_mutex_unlock(&req->lock);
	return stage;
}

static void check_body(struct connection *connection, uint64_t now)
{
	uint64_t bytes = bytes_received(connection);

	if (connection->body_since_ms == 0 ||
		bytes - connection->bytes_seen >= CONNECTION_BODY_MIN) {
		connection->body_since_ms = now;
		connection->bytes_seen = bytes;
	} else if (now - connection->body_since_ms > CONNECTION_BODY_MS) {
		cut(connection);
	}
}

static void check_leaving(struct connection *connection, uint64_t now)
{
	if (connection->body_since_ms == 0)
		connection->body_since_ms = now;
	else if (now - connection->body_since_ms > CONNECTION_LEAVE_MS)
		cut(connection);
}

static void look_at(struct connection *connection, uint64_t now)
{
	enum stage stage = stage_of(connection);

	if (stage != STAGE_BODY && stage != STAGE_LEAVE)
		connection->body_since_ms = 0;
	if (stage != STAGE_IDLE)
		connection->heads_seen = connection->heads - 1; /* the next look starts afresh */
	/* The kernel does not count the bytes of a unix socket; those who reach ours have better ways to do harm. */
	if (connection->sock < 0 || connection->is_unix)
		return;
	if (stage == STAGE_IDLE)
		check_head(connection, now);
	else if (stage == STAGE_BODY)
		check_body(connection, now);
	else if (stage == STAGE_LEAVE)
		check_leaving(connection, now);
}

void connection_evict(struct server *server, const char *id, const struct request *spared)
{
	pthread_mutex_lock(&server->clients_lock);
	for (struct connection *c = server->clients; c; c = c->next) {
		struct principal principal;

		pthread_mutex_lock(&c->lock);
		if (c->request != spared && is_past_head(c, &principal) &&
			principal_depends_on(&principal, id))
			cut(c);
		pthread_mutex_unlock(&c->lock);
	}
	pthread_mutex_unlock(&server->clients_lock);
}

void connection_sweep(struct server *server)
{
	uint64_t now = clock_steady_ms();
	int64_t wall_ms = clock_wall_ms();

	pthread_mutex_lock(&server->clients_lock);
	for (struct connection *c = server->clients; c; c = c->next) {
		struct principal principal;

		pthread_mutex_lock(&c->lock);
		if (is_past_head(c, &principal) && principal_is_over(&principal, wall_ms))
			cut(c);
		look_at(c, now);
		pthread_mutex_unlock(&c->lock);
	}
	pthread_mutex_unlock(&server->clients_lock);
}

struct request *connection_unread_head(struct server *server, const struct loop *loop)
{
	struct request *found = NULL;

	pthread_mutex_lock(&server->clients_lock);
	for (struct connection *c = server->clients; c && !found; c = c->next) {
		if (c->loop != loop)
			continue;
		pthread_mutex_lock(&c->lock);
		/* The library tells the size of headers as soon as they are whole. */
		if (c->request && stage_of(c) == STAGE_IDLE &&
			MHD_get_connection_info(
				c->request->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE))
			found = c->request;
		pthread_mutex_unlock(&c->lock);
	}
	pthread_mutex_unlock(&server->clients_lock);
	return found;
}

/* --- places --- */

/* How long it has been of little use; 0 if it cannot be cut for another. */
static uint64_t useless_us(struct connection *connection, uint64_t now_us)
{
	enum stage stage = stage_of(connection);
	uint64_t body_us = clock_passed(connection->body_since_ms * 1000, now_us);

	if (!connection->share || connection->sock < 0)
		return 0;
	if (!connection->is_known || stage == STAGE_IDLE)
		return clock_passed(connection->idle_since_us, now_us) + 1;
	if (stage == STAGE_BODY && connection->body_since_ms > 0 &&
		body_us > CONNECTION_SLOW_MS * 1000ull)
		return body_us;
	return 0;
}

/*
 * Cuts one of the strangers, or of those who are known: of an owner or (NULL) of whoever has most. False if none can be.
 * The lock of the clients is held, here and below.
 */
static bool make_room(struct server *server, bool is_known, const uint64_t *owner)
{
	uint64_t now_us = clock_steady_us(), longest_us = 0;
	struct connection *longest = NULL;
	unsigned most = 0;

	for (struct connection *c = server->clients; c; c = c->next) {
		uint64_t us = 0;
		unsigned used = 0;

		pthread_mutex_lock(&c->lock);
		if (c->is_known == is_known && c->share &&
			(!owner || share_owner(c->share) == *owner)) {
			used = share_used(c->share);
			us = useless_us(c, now_us);
		}
		pthread_mutex_unlock(&c->lock);
		if (us > 0 && (used > most || (used == most && us > longest_us))) {
			longest = c;
			longest_us = us;
			most = used;
		}
	}
	if (longest) {
		pthread_mutex_lock(&longest->lock);
		cut(longest);
		pthread_mutex_unlock(&longest->lock);
	}
	return longest;
}

static void add_stranger(struct server *server, struct connection *connection)
{
	struct share *share = NULL;
	int r = share_pool_take(server->strangers, connection->source, false, &share);

	if (r < 0 && make_room(server, false, NULL))
		r = share_pool_take(server->strangers, connection->source, false, &share);
	pthread_mutex_lock(&connection->lock);
	connection->share = share;
	if (r < 0)
		cut(connection);
	pthread_mutex_unlock(&connection->lock);
}

static bool is_of(struct connection *connection, uint64_t owner)
{
	bool is;

	pthread_mutex_lock(&connection->lock);
	is = connection->is_known && connection->share && share_owner(connection->share) == owner;
	pthread_mutex_unlock(&connection->lock);
	return is;
}

static int take_owned(
	struct server *server, uint64_t owner, bool is_operator, struct share **ret_share)
{
	int r = share_pool_take(server->owners, owner, is_operator, ret_share);

	if (r < 0 && make_room(server, true, r == -EDQUOT ? &owner : NULL))
		r = share_pool_take(server->owners, owner, is_operator, ret_share);
	return r;
}

int connection_claim(
	struct server *server, struct connection *connection, uint64_t owner, bool is_operator)
{
	struct share *share = NULL;
	int r = 0;

	if (is_of(connection, owner))
		return 0;
	pthread_mutex_lock(&server->clients_lock);
	if (connection->is_listed && !connection->is_cut)
		r = take_owned(server, owner, is_operator, &share);
	if (share) {
		pthread_mutex_lock(&connection->lock);
		share_give_back(connection->share);
		connection->share = share;
		connection->is_known = true;
		pthread_mutex_unlock(&connection->lock);
	}
	pthread_mutex_unlock(&server->clients_lock);
	return r;
}

bool connection_is_known(const struct connection *connection)
{
	return atomic_load(&connection->is_known);
}

struct share *connection_take_share(struct server *server, struct connection *connection)
{
	struct share *share;

	pthread_mutex_lock(&server->clients_lock);
	pthread_mutex_lock(&connection->lock);
	share = take_ptr(&connection->share);
	pthread_mutex_unlock(&connection->lock);
	pthread_mutex_unlock(&server->clients_lock);
	return share;
}

void connection_give_way(struct server *server)
{
	pthread_mutex_lock(&server->clients_lock);
	if (!make_room(server, false, NULL))
		make_room(server, true, NULL);
	pthread_mutex_unlock(&server->clients_lock);
}
