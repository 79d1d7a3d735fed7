/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/connection/proxy_conn_answer.h"

#include "base/clock.h"
#include "proxy/message/rewrite.h"

#include <sys/socket.h>

#define LINGER_MS 5000 /* for a client to read our end */

void proxy_conn_answer_found(struct proxy_conn *conn)
{
	struct buf *out = &conn->client.out;
	bool is_head = conn->request.has_head && message_asks(&conn->request, "HEAD");
	struct proxy_way *way = &conn->way;

	buf_printf(out,
		"HTTP/1.1 %u %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
		"Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: "
		"close\r\n",
		way->status, message_reason(way->status), way->type, way->body.len);
	buf_append(out, way->fields.data, way->fields.len);
	if (!way->is_for_all)
		rewrite_put_frame_policy(out, way->frame_ancestor[0] ? way->frame_ancestor : NULL);
	buf_append_str(out, "\r\n");
	if (!is_head)
		buf_append(out, way->body.data, way->body.len);
	proxy_way_fini(way);
	buffered_socket_close(&conn->app);
	conn->state = PROXY_CONN_LAST;
	conn->moved_ms = clock_steady_ms();
}

void proxy_conn_answer_prepare(struct proxy_conn *conn, const struct proxy_refusal *refusal)
{
	const struct message *request = &conn->request;

	proxy_way_fini(&conn->way);
	conn->config->refuse(
		refusal, request->has_head && request_check_is_page(request), &conn->way);
}

void proxy_conn_answer_refuse(struct proxy_conn *conn, const struct proxy_refusal *refusal)
{
	if (conn->has_answer_begun) {
		proxy_conn_end(
			conn); /* it cannot be taken back: the client sees a cut connection */
		return;
	}
	proxy_conn_answer_prepare(conn, refusal);
	proxy_conn_answer_found(conn);
}

bool proxy_conn_answer_move(struct proxy_conn *conn)
{
	struct buffered_socket *client = &conn->client;
	bool moved = buffered_socket_flush(client);

	if (client->out.len > 0 && !client->has_ended)
		return moved;
	if (client->out.len == 0 && !conn->has_said_end && !client->has_ended) {
		shutdown(client->fd, SHUT_WR);
		conn->has_said_end = true;
		conn->due_ms = clock_steady_ms() + LINGER_MS;
	}
	/* Closing with unread bytes would reset the connection under the answer. */
	moved |= buffered_socket_receive(client);
	client->in.len = 0;
	if (client->has_ended)
		proxy_conn_end(conn);
	return moved;
}
