/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/connection/proxy_conn_request.h"

#include "base/clock.h"
#include "base/fd.h"
#include "http/listener.h"
#include "proxy/connection/proxy_conn_answer.h"
#include "proxy/connection/proxy_conn_relay.h"
#include "proxy/message/refusal.h"
#include "proxy/message/rewrite.h"
#include "proxy/proxy_limits.h"
#include "proxy/proxy_loop.h"
#include "proxy/proxy_private.h"
#include "proxy/wake_queue.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LATER_MIN_MS 50
#define LATER_MAX_MS 1000

/* --- the head --- */

/* Whether the way of the request before is good for this one. */
static bool is_same_way(struct proxy_conn *conn, const char digest[REQUEST_CHECK_DIGEST_LEN])
{
	return conn->app.fd >= 0 && !conn->app.hangs_up && !conn->app.has_ended &&
	       clock_steady_ms() < conn->way.good_until_ms &&
	       conn->way.generation == atomic_load(conn->config->generation) &&
	       !strstr(conn->request.target.at, REWRITE_LINK) &&
	       slice_is(message_get(&conn->request, "Host"), conn->host) &&
	       memcmp(digest, conn->credentials, REQUEST_CHECK_DIGEST_LEN) == 0;
}

/* Whether its source has more, or wants more, than it may; then it is told so. */
static bool is_too_much(struct proxy_conn *conn)
{
	struct proxy_refusal hurries = refusal_source_hurries;

	hurries.wait_s = proxy_limits_pace(conn->config->proxy, conn);
	if (conn->is_excess)
		proxy_conn_answer_refuse(conn, &refusal_source_crowds);
	else if (hurries.wait_s)
		proxy_conn_answer_refuse(conn, &hurries);
	return conn->is_excess || hurries.wait_s;
}

/* The head is there. */
static void consider(struct proxy_conn *conn)
{
	const struct message *request = &conn->request;
	const struct proxy_refusal *fault = request_check_fault(request);
	char digest[REQUEST_CHECK_DIGEST_LEN];

	if (fault) {
		proxy_conn_answer_refuse(conn, fault);
		return;
	}
	conn->is_upgrade = request_check_is_upgrade(request);
	conn->wants_close = request_check_is_old(request) || !request->keeps_alive;
	conn->asked_ms = clock_steady_ms();
	if (is_too_much(conn))
		return;
	request_check_digest(request, digest);
	conn->is_reused = is_same_way(conn, digest);
	if (conn->is_reused) {
		proxy_conn_relay_start(conn);
		return;
	}
	buffered_socket_close(&conn->app);
	snprintf(conn->host, sizeof(conn->host), "%s", message_get(request, "Host").at);
	memcpy(conn->credentials, digest, sizeof(conn->credentials));
	proxy_conn_ask(conn);
}

bool proxy_conn_request_move(struct proxy_conn *conn)
{
	struct buffered_socket *client = &conn->client;
	ssize_t n = 0;

	if (client->in.len > 0) {
		n = message_feed(&conn->request, client->in.data, client->in.len);
		if (n < 0) {
			proxy_conn_answer_refuse(conn,
				n == -EMSGSIZE ? &refusal_head_too_long : &refusal_bad_request);
			return true;
		}
		buf_consume(&client->in, (size_t)n);
	}
	if (n > 0) {
		consider(conn);
		return true;
	}
	if (client->has_ended) {
		proxy_conn_end(conn);
		return false;
	}
	if (client->in.len == 0)
		conn->due_ms = clock_steady_ms() + PROXY_CONN_HEAD_MS;
	return buffered_socket_receive(client);
}

/* --- finding the way --- */

static struct proxy_visit describe(const struct proxy_conn *conn)
{
	struct proxy_visit visit = request_check_visit(&conn->request);

	visit.host = conn->host;
	visit.client = conn->address;
	visit.is_misdirected = !tls_peer_allows_host(conn->tls_peer, conn->host);
	visit.waited_ms = clock_steady_ms() - conn->asked_ms;
	return visit;
}

static void find_way(struct proxy_conn *conn)
{
	struct proxy_visit visit = describe(conn);
	int r = 0;

	proxy_way_fini(&conn->way);
	conn->config->find(conn->config->context, &visit, &conn->way);
	if (conn->way.kind != PROXY_ANSWER || conn->way.also_wakes)
		r = proxy_limits_claim(conn->config->proxy, conn);
	if (r < 0)
		proxy_conn_answer_prepare(
			conn, r == -EDQUOT ? &refusal_key_crowded : &refusal_overloaded);
}

/* On a worker's thread, which has the connection to itself. */
static void find(struct work_item *item)
{
	struct proxy_conn *conn =
		(struct proxy_conn *)((char *)item - offsetof(struct proxy_conn, item));
	struct wake_queue *wake_queue = conn->config->proxy->wake_queue;
	const struct proxy_way *way = &conn->way;

	find_way(conn);
	if (way->kind == PROXY_WAKE) {
		wake_queue_join(wake_queue, way, conn);
		return;
	}
	if (way->also_wakes)
		wake_queue_join(wake_queue, way, NULL);
	proxy_loop_found(conn->loop, conn);
}

void proxy_conn_request_init(struct proxy_conn *conn)
{
	conn->item.run = find;
}

static void connect_app(struct proxy_conn *conn)
{
	struct buffered_socket *app = &conn->app;

	app->fd = take_fd(&conn->way.fd);
	app->is_writable = true;
	if (proxy_loop_watch(conn->loop, app) < 0) {
		proxy_conn_answer_refuse(conn, &refusal_overloaded);
		return;
	}
	proxy_conn_relay_start(conn);
}

/* When to ask again: the longer it waits, the more seldom, so that many who wait cost little. */
static uint64_t later(const struct proxy_conn *conn)
{
	uint64_t now = clock_steady_ms(), pause = (now - conn->asked_ms) / 4;

	return now + (pause < LATER_MIN_MS	    ? LATER_MIN_MS
			     : pause > LATER_MAX_MS ? LATER_MAX_MS
						    : pause);
}

bool proxy_conn_request_found(struct proxy_conn *conn)
{
	conn->state = PROXY_CONN_HEAD;
	if (proxy_conn_has_client_left(conn))
		return false;
	switch (conn->way.kind) {
	case PROXY_GO:
		connect_app(conn);
		break;
	case PROXY_ANSWER:
		proxy_conn_answer_found(conn);
		break;
	case PROXY_WAKE:
	case PROXY_LATER:
		conn->state = PROXY_CONN_LATER;
		conn->due_ms = later(conn);
		proxy_loop_hurry(conn->loop);
		break;
	}
	return true;
}
