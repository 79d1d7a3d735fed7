/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/connection/proxy_conn_tunnel.h"

void proxy_conn_tunnel_start(struct proxy_conn *conn)
{
	struct buffered_socket *client = &conn->client, *app = &conn->app;

	conn->state = PROXY_CONN_TUNNEL;
	/* What came early is already part of the conversation. */
	buf_append(&app->out, client->in.data, client->in.len);
	buf_append(&client->out, app->in.data, app->in.len);
	buf_fini(&client->in);
	buf_fini(&app->in);
	message_fini(&conn->request);
	message_fini(&conn->response);
}

/* A client may still have to read what the app said last. */
static void end_tunnel(struct buffered_socket *ended)
{
	struct proxy_conn *conn = ended->owner;

	if (ended == &conn->client) {
		proxy_conn_end(conn);
		return;
	}
	buffered_socket_close(&conn->app);
	conn->state = PROXY_CONN_LAST;
}

/* From one side to the other; whether something moved. */
static bool move_bytes(struct buffered_socket *from)
{
	struct buffered_socket *to = proxy_conn_other(from);
	bool moved = false;

	if (buffered_socket_has_room(to) && buffered_socket_receive(from)) {
		buf_append(&to->out, from->in.data, from->in.len);
		buf_fini(&from->in);
		moved = true;
	}
	moved |= buffered_socket_flush(to);
	if (from->has_ended && to->out.len == 0) {
		end_tunnel(from);
		return true;
	}
	return moved;
}

bool proxy_conn_tunnel_move(struct proxy_conn *conn)
{
	bool moved = move_bytes(&conn->client);

	if (conn->state == PROXY_CONN_TUNNEL)
		moved |= move_bytes(&conn->app);
	return moved;
}
