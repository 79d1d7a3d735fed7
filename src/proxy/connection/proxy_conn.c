/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both connections are watched edge by edge: what may be read or written is remembered until the kernel says
 * otherwise. `move` does all that can be done with that, and is called after everything that happened. What that is
 * depends on the state: see the headers of its parts.
 */
#include "proxy/connection/proxy_conn.h"

#include "base/clock.h"
#include "proxy/connection/proxy_conn_answer.h"
#include "proxy/connection/proxy_conn_relay.h"
#include "proxy/connection/proxy_conn_request.h"
#include "proxy/connection/proxy_conn_state.h"
#include "proxy/connection/proxy_conn_tunnel.h"
#include "proxy/message/refusal.h"
#include "proxy/proxy_loop.h"

#include <stdio.h>

#define IDLE_MS	     75000 /* between two requests */
#define ROUNDS_MAX   16	   /* then others have their turn */
#define USED_EACH_MS 5000
#define READ_BYTES   (64u * 1024)
#define WAITING_MAX  (128u * 1024)

static const struct buffered_socket_limits limits = {
	.read_bytes = READ_BYTES,
	.waiting_max = WAITING_MAX,
	.out_max = WAITING_MAX + 2 * READ_BYTES + 2 * MESSAGE_HEAD_MAX,
};

/* --- what happens --- */

static void note_move(struct proxy_conn *conn)
{
	conn->moved_ms = clock_steady_ms();
	if (conn->moved_ms - conn->used_ms < USED_EACH_MS || !conn->way.key[0])
		return;
	conn->used_ms = conn->moved_ms;
	conn->config->used(conn->config->context, conn->way.key);
}

/* Does what can be done now. */
static void move(struct proxy_conn *conn)
{
	bool moved = true;

	for (int rounds = 0; moved && rounds < ROUNDS_MAX; rounds++) {
		switch (conn->state) {
		case PROXY_CONN_HEAD:
			moved = proxy_conn_request_move(conn);
			break;
		case PROXY_CONN_RELAY:
			moved = proxy_conn_relay_move(conn);
			break;
		case PROXY_CONN_TUNNEL:
			moved = proxy_conn_tunnel_move(conn);
			break;
		case PROXY_CONN_LAST:
			moved = proxy_conn_answer_move(conn);
			break;
		case PROXY_CONN_FINDING:
		case PROXY_CONN_LATER:
		case PROXY_CONN_OVER:
			moved = false;
			break;
		}
		/* While its way is being found, that belongs to a worker. */
		if (moved && conn->state != PROXY_CONN_FINDING)
			note_move(conn);
	}
	if (conn->state == PROXY_CONN_OVER) {
		proxy_loop_drop(conn->loop, conn);
		return;
	}
	buffered_socket_release(&conn->client);
	buffered_socket_release(&conn->app);
	if (moved)
		watch_call_again(conn->client.watch);
}

void proxy_conn_cut(struct proxy_conn *conn)
{
	proxy_conn_end(conn);
	proxy_loop_drop(conn->loop, conn);
}

void proxy_conn_ready(void *arg, uint32_t events)
{
	struct buffered_socket *side = arg;
	struct proxy_conn *conn = side->owner;

	buffered_socket_note(side, events);
	/* An app that hangs up or speaks between two requests leaves a connection that is of no use. */
	if (side == &conn->app && conn->state == PROXY_CONN_HEAD) {
		if (side->is_readable)
			buffered_socket_close(side);
		return;
	}
	if (conn->state != PROXY_CONN_FINDING)
		move(conn);
}

/* Its way was found (state FINDING). */
static void found(void *arg)
{
	struct proxy_conn *conn = arg;

	if (proxy_conn_request_found(conn))
		move(conn);
	else
		proxy_conn_cut(conn);
}

/* --- what does not happen --- */

/* How long nothing may move. */
static uint64_t timeout_ms(const struct proxy_conn *conn)
{
	const struct proxy_config *config = conn->config;
	bool is_stalled = conn->client.out.len > 0 || conn->app.out.len > 0;

	switch (conn->state) {
	case PROXY_CONN_HEAD:
		return conn->is_excess ? PROXY_CONN_HEAD_MS : IDLE_MS;
	case PROXY_CONN_RELAY:
	case PROXY_CONN_TUNNEL:
		return is_stalled		? config->stall_ms
		       : conn->has_answer_begun ? config->quiet_ms
						: config->answer_ms;
	case PROXY_CONN_LAST:
		return PROXY_CONN_HEAD_MS;
	default:
		return UINT64_MAX;
	}
}

/* Whether what opened the way does so still; asked only when that may have changed. */
static bool is_granted(struct proxy_conn *conn)
{
	const struct proxy_config *config = conn->config;
	uint64_t generation = atomic_load(config->generation);

	if (conn->way.generation != generation && !config->is_granted(config->context, &conn->way))
		return false;
	conn->way.generation = generation;
	return true;
}

/* What a client cannot put off by sending a byte now and then. */
static bool is_due(struct proxy_conn *conn, uint64_t now_ms)
{
	switch (conn->state) {
	case PROXY_CONN_HEAD:
		return conn->client.in.len > 0 && now_ms >= conn->due_ms;
	case PROXY_CONN_LAST:
		return conn->has_said_end && now_ms >= conn->due_ms;
	case PROXY_CONN_RELAY:
	case PROXY_CONN_TUNNEL:
		return now_ms >= conn->way.ends_ms || !is_granted(conn);
	default:
		return false;
	}
}

/* Whom it waits for in vain, if somebody can still be told. */
static const struct proxy_refusal *find_fault(const struct proxy_conn *conn)
{
	if (conn->state != PROXY_CONN_RELAY || conn->has_answer_begun || conn->client.out.len > 0)
		return NULL;
	return conn->request.is_complete || conn->app.out.len > 0 ? &refusal_answer_timeout
								  : &refusal_request_timeout;
}

void proxy_conn_tick(struct proxy_conn *conn, uint64_t now_ms)
{
	const struct proxy_refusal *fault = find_fault(conn);
	bool is_over;

	if (conn->state == PROXY_CONN_LATER && now_ms >= conn->due_ms) {
		proxy_conn_ask(conn);
		return;
	}
	is_over = is_due(conn, now_ms);
	if (now_ms - conn->moved_ms < timeout_ms(conn) && !is_over)
		return;
	if (fault && !is_over) {
		proxy_conn_answer_refuse(conn, fault);
		move(conn);
		return;
	}
	proxy_conn_cut(conn);
}

/* --- life --- */

bool proxy_conn_is_idle(const struct proxy_conn *conn)
{
	return conn->state == PROXY_CONN_HEAD;
}

struct proxy_conn *proxy_conn_open(
	struct proxy_loop *loop, const struct proxy_config *config, int fd, const char *address)
{
	struct proxy_conn *conn = mem_new(sizeof(*conn));

	conn->loop = loop;
	conn->config = config;
	buffered_socket_init(&conn->client, conn, fd, &limits);
	buffered_socket_init(&conn->app, conn, -1, &limits);
	conn->way.fd = -1;
	conn->found = (struct post){.run = found, .arg = conn};
	snprintf(conn->address, sizeof(conn->address), "%s", address);
	conn->ready = proxy_conn_ready;
	proxy_conn_request_init(conn);
	proxy_conn_begin(conn);
	return conn;
}
