/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/connection/proxy_conn_relay.h"

#include "base/clock.h"
#include "http/listener.h"
#include "proxy/connection/proxy_conn_answer.h"
#include "proxy/connection/proxy_conn_tunnel.h"
#include "proxy/message/refusal.h"
#include "proxy/message/rewrite.h"

#define HINTS_MAX 16

/* How the heads of this exchange are rewritten, while the request's is there. */
static struct rewrite rewrite_of(const struct proxy_conn *conn)
{
	const struct proxy_way *way = &conn->way;

	return (struct rewrite){.scheme = listener_scheme(conn->config->listener),
		.host = conn->host,
		.client = conn->address,
		.port = way->port,
		.prefix = {conn->request.target.at, way->prefix_len},
		.put_prefix = way->put_prefix,
		.put_fields = {(const char *)way->put_fields.data, way->put_fields.len},
		.is_confined = way->is_confined,
		.is_for_all = way->is_for_all,
		.frame_ancestor = way->frame_ancestor[0] ? way->frame_ancestor : NULL,
		.hides_authorization = way->hides_authorization,
		.hides_api_key = way->hides_api_key};
}

void proxy_conn_relay_start(struct proxy_conn *conn)
{
	struct rewrite rewrite = rewrite_of(conn);
	struct message *request = &conn->request;

	request->out = &conn->app.out;
	request->in_chunks = request->is_chunked;
	rewrite_request(request, &rewrite, conn->is_upgrade, &conn->app.out);
	conn->state = PROXY_CONN_RELAY;
	conn->moved_ms = clock_steady_ms();
}

/* Feeds what came from a side to its message; whether something moved. */
static bool feed(struct buffered_socket *side, struct message *message)
{
	struct proxy_conn *conn = side->owner;
	ssize_t n;

	if (message->is_complete || side->in.len == 0 ||
		!buffered_socket_has_room(proxy_conn_other(side)))
		return false;
	n = message_feed(message, side->in.data, side->in.len);
	if (n < 0) {
		proxy_conn_answer_refuse(
			conn, side == &conn->client ? &refusal_bad_body : &refusal_bad_answer);
		return true;
	}
	buf_consume(&side->in, (size_t)n);
	return n > 0;
}

/* --- the request --- */

static bool move_request(struct proxy_conn *conn)
{
	struct buffered_socket *client = &conn->client, *app = &conn->app;
	bool moved = buffered_socket_flush(app);

	if (conn->request.is_complete)
		return moved;
	if (client->in.len == 0 && buffered_socket_has_room(app))
		moved |= buffered_socket_receive(client);
	if (feed(client, &conn->request))
		return true;
	if (client->has_ended && client->in.len == 0) {
		proxy_conn_end(conn); /* half a request: the app must not take it for a whole one */
		return true;
	}
	return moved;
}

/* --- the answer --- */

/* The head of an answer is there: passed on, unless it is only a hint. */
static void pass_answer(struct proxy_conn *conn)
{
	struct rewrite rewrite = rewrite_of(conn);
	struct message *response = &conn->response;
	unsigned status = response->status;

	if (status < 100) {
		proxy_conn_answer_refuse(conn, &refusal_bad_status);
		return;
	}
	if (status >= 100 && status < 200 && status != 101) {
		if (++conn->hints > HINTS_MAX) {
			proxy_conn_answer_refuse(conn, &refusal_hints_only);
			return;
		}
		if (status == 100 && !request_check_is_old(&conn->request))
			buf_append_str(&conn->client.out, "HTTP/1.1 100 Continue\r\n\r\n");
		message_begin(response, MESSAGE_RESPONSE);
		response->has_no_body = message_asks(&conn->request, "HEAD");
		return;
	}
	if (status == 101 && !conn->is_upgrade) {
		proxy_conn_answer_refuse(conn, &refusal_changed_protocol);
		return;
	}
	response->in_chunks = !response->is_complete && !response->has_length &&
			      !request_check_is_old(&conn->request);
	response->out = &conn->client.out;
	conn->has_answer_begun = true;
	rewrite_response(
		response, &rewrite, response->in_chunks, conn->wants_close, &conn->client.out);
	if (status == 101)
		proxy_conn_tunnel_start(conn);
}

static void end_exchange(struct proxy_conn *conn)
{
	bool keeps_app =
		conn->response.keeps_alive && conn->request.is_complete && conn->app.in.len == 0;

	if (!keeps_app)
		buffered_socket_close(&conn->app);
	/* A request whose body the app did not want to read cannot be followed by another. */
	if (conn->wants_close || !conn->request.is_complete || conn->client.has_ended) {
		buffered_socket_close(&conn->app);
		conn->state = PROXY_CONN_LAST;
		return;
	}
	proxy_conn_begin(conn);
}

/*
 * The app closed a connection that was kept, maybe before it saw the request: once more, on a new one, if asking
 * twice does no harm.
 */
static bool try_again(struct proxy_conn *conn)
{
	const struct message *request = &conn->request;

	if (!conn->is_reused || conn->response.has_head || conn->app.in.len > 0 ||
		!(message_asks(request, "GET") || message_asks(request, "HEAD") ||
			message_asks(request, "OPTIONS")) ||
		request->has_length || request->is_chunked)
		return false;
	buffered_socket_close(&conn->app);
	conn->is_reused = false;
	proxy_conn_ask(conn);
	return true;
}

/* The app ended: an answer without a length ends with it, unless it was torn. */
static void end_answer(struct proxy_conn *conn)
{
	struct message *response = &conn->response;

	if (try_again(conn))
		return;
	if (response->has_head && !conn->app.is_broken && message_end(response))
		return;
	proxy_conn_answer_refuse(conn, &refusal_no_answer);
}

static bool move_answer(struct proxy_conn *conn)
{
	struct buffered_socket *client = &conn->client, *app = &conn->app;
	struct message *response = &conn->response;
	bool had_head = response->has_head;
	bool moved = buffered_socket_flush(client);

	if (response->is_complete) {
		if (client->out.len > 0)
			return moved;
		end_exchange(conn);
		return true;
	}
	if (buffered_socket_has_room(client))
		moved |= buffered_socket_receive(app);
	if (!had_head)
		response->has_no_body = message_asks(&conn->request, "HEAD");
	if (feed(app, response)) {
		if (!had_head && response->has_head && conn->state == PROXY_CONN_RELAY)
			pass_answer(conn);
		return true;
	}
	if (app->has_ended && buffered_socket_has_room(client)) {
		end_answer(conn);
		return true;
	}
	return moved;
}

bool proxy_conn_relay_move(struct proxy_conn *conn)
{
	bool moved = move_request(conn);

	if (conn->state == PROXY_CONN_RELAY)
		moved |= move_answer(conn);
	if (conn->state == PROXY_CONN_RELAY && proxy_conn_has_client_left(conn))
		proxy_conn_end(conn);
	return moved;
}
