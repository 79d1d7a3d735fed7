/* SPDX-License-Identifier: Apache-2.0 */
#include "http/connection.h"

#include "base/clock.h"
#include "base/log.h"
#include "http/listener.h"
#include "http/loop.h"
#include "http/request_private.h"
#include "http/server_private.h"
#include "http/sources.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

static void unref(void *owner)
{
	struct connection *connection = owner;

	if (atomic_fetch_sub(&connection->refs, 1) != 1)
		return;
	pthread_mutex_destroy(&connection->lock);
	dossier_unref(connection->dossier);
	free(connection);
}

static void ref(void *owner)
{
	atomic_fetch_add(&((struct connection *)owner)->refs, 1);
}

static void hang_up(void *owner, uint32_t events)
{
	struct connection *connection = owner;
	struct request *req = NULL;

	(void)events;
	pthread_mutex_lock(&connection->lock);
	connection->hung_up = true;
	if (connection->request)
		req = request_ref(connection->request);
	if (connection->sock >= 0)
		poller_set_alarm(loop_server(connection->loop)->poller, &connection->nudge_alarm,
			clock_steady_ms() + CONNECTION_NUDGE_MS);
	pthread_mutex_unlock(&connection->lock);
	if (req)
		request_hang_up(req);
	request_unref(req);
}

/*
 * The library has not closed it. The end of the stream was received, so that shutting this side takes
 * nothing away; but it raises the edge again that makes the library read up to it. That can come too
 * early as well, so it is repeated.
 */
static void nudge(void *owner, uint32_t events)
{
	struct connection *connection = owner;

	(void)events;
	pthread_mutex_lock(&connection->lock);
	if (connection->sock >= 0) {
		shutdown(connection->sock, SHUT_RD);
		connection->nudges++;
		poller_set_alarm(loop_server(connection->loop)->poller, &connection->nudge_alarm,
			clock_steady_ms() + CONNECTION_NUDGE_MS * connection->nudges);
	}
	pthread_mutex_unlock(&connection->lock);
}

static const struct poller_ops watch_ops = {ref, unref, hang_up};
static const struct poller_ops nudge_ops = {ref, unref, nudge};

struct connection *connection_open(struct loop *loop, int sock, struct arrival *arrival)
{
	struct connection *connection = mem_new(sizeof(*connection));
	struct server *server = loop_server(loop);

	atomic_init(&connection->refs, 1);
	pthread_mutex_init(&connection->lock, NULL);
	connection->loop = loop;
	connection->sock = sock;
	listener_format(&arrival->address, connection->peer, sizeof(connection->peer));
	connection->source = sources_key((struct sockaddr *)&arrival->address);
	connection->dossier = take_ptr(&arrival->dossier);
	connection->idle_since_ms = clock_steady_ms();
	connection->watch = (struct poller_watch){.ops = &watch_ops, .owner = connection};
	connection->nudge_alarm = (struct poller_alarm){.ops = &nudge_ops, .owner = connection};
	pthread_mutex_lock(&server->clients_lock);
	connection->next = server->clients;
	if (connection->next)
		connection->next->prev = connection;
	server->clients = connection;
	pthread_mutex_unlock(&server->clients_lock);
	/* Without it a hangup is noticed late: no reason to turn the client away. */
	if (poller_arm(server->poller, &connection->watch, sock, EPOLLRDHUP) < 0)
		log_warning("a client's connection cannot be watched");
	return connection;
}

void connection_close(struct connection *connection)
{
	struct server *server = loop_server(connection->loop);

	poller_forget(server->poller, &connection->watch);
	pthread_mutex_lock(&server->clients_lock);
	if (connection->prev)
		connection->prev->next = connection->next;
	else
		server->clients = connection->next;
	if (connection->next)
		connection->next->prev = connection->prev;
	pthread_mutex_unlock(&server->clients_lock);
	pthread_mutex_lock(&connection->lock);
	connection->sock = -1;
	poller_set_alarm(server->poller, &connection->nudge_alarm, 0);
	pthread_mutex_unlock(&connection->lock);
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
	connection->idle_since_ms = clock_steady_ms();
	pthread_mutex_unlock(&connection->lock);
}

static uint64_t bytes_received(const struct connection *connection)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);

	if (connection->dossier)
		return atomic_load(&connection->dossier->bytes);
	getsockopt(connection->sock, IPPROTO_TCP, TCP_INFO, &info, &len);
	return info.tcpi_bytes_received;
}

/* The library sees it as a hangup. */
static void cut(struct connection *connection)
{
	connection->is_cut = true;
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
	case PHASE_LINGER:
		/* While it is suspended nobody reads: the sandbox is slow, and not the client. */
		stage = req->suspended ? STAGE_BUSY : STAGE_BODY;
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

static void look_at(struct connection *connection, uint64_t now)
{
	enum stage stage = stage_of(connection);

	if (stage != STAGE_BODY)
		connection->body_since_ms = 0;
	if (stage != STAGE_IDLE)
		connection->heads_seen = connection->heads - 1; /* the next look starts afresh */
	if (connection->sock < 0)
		return;
	if (stage == STAGE_IDLE)
		check_head(connection, now);
	else if (stage == STAGE_BODY)
		check_body(connection, now);
}

void connection_evict(struct server *server, const char *token_id, const struct request *spared)
{
	pthread_mutex_lock(&server->clients_lock);
	for (struct connection *c = server->clients; c; c = c->next) {
		struct principal principal;

		pthread_mutex_lock(&c->lock);
		if (c->request != spared && is_past_head(c, &principal) &&
			strcmp(principal.token_id, token_id) == 0)
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

/* How long it has been without a request; 0 if it cannot be cut for another. */
static uint64_t idle_ms(struct connection *connection, uint64_t now)
{
	uint64_t idle = 0;

	pthread_mutex_lock(&connection->lock);
	if (connection->sock >= 0 && !connection->is_cut && stage_of(connection) == STAGE_IDLE)
		idle = now - connection->idle_since_ms + 1;
	pthread_mutex_unlock(&connection->lock);
	return idle;
}

bool connection_give_way(struct server *server, const uint64_t *source)
{
	uint64_t now = clock_steady_ms(), longest_ms = 0;
	struct connection *longest = NULL;

	pthread_mutex_lock(&server->clients_lock);
	for (struct connection *c = server->clients; c; c = c->next) {
		uint64_t idle = source && c->source != *source ? 0 : idle_ms(c, now);

		if (idle > longest_ms) {
			longest_ms = idle;
			longest = c;
		}
	}
	if (longest) {
		pthread_mutex_lock(&longest->lock);
		cut(longest);
		pthread_mutex_unlock(&longest->lock);
	}
	pthread_mutex_unlock(&server->clients_lock);
	return longest;
}
