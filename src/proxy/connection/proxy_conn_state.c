/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/connection/proxy_conn_state.h"

#include "base/clock.h"
#include "http/listener.h"
#include "proxy/proxy_private.h"

void proxy_conn_begin(struct proxy_conn *conn)
{
	message_begin(&conn->request, MESSAGE_REQUEST);
	message_begin(&conn->response, MESSAGE_RESPONSE);
	conn->state = PROXY_CONN_HEAD;
	conn->has_answer_begun = conn->is_upgrade = conn->wants_close = false;
	conn->hints = 0;
	conn->moved_ms = clock_steady_ms();
	conn->due_ms = conn->moved_ms + PROXY_CONN_HEAD_MS;
}

void proxy_conn_ask(struct proxy_conn *conn)
{
	conn->state = PROXY_CONN_FINDING;
	workers_submit_always(conn->config->proxy->workers, &conn->item);
}

struct buffered_socket *proxy_conn_other(struct buffered_socket *side)
{
	struct proxy_conn *conn = side->owner;

	return side == &conn->client ? &conn->app : &conn->client;
}

void proxy_conn_end(struct proxy_conn *conn)
{
	buffered_socket_close(&conn->client);
	buffered_socket_close(&conn->app);
	conn->state = PROXY_CONN_OVER;
}

bool proxy_conn_has_client_left(struct proxy_conn *conn)
{
	struct buffered_socket *client = &conn->client;

	if (!conn->request.is_complete || !client->hangs_up)
		return false;
	while (buffered_socket_receive(client))
		;
	return client->has_ended && client->in.len == 0;
}

void proxy_conn_free(struct proxy_conn *conn)
{
	buffered_socket_close(&conn->client);
	buffered_socket_close(&conn->app);
	proxy_way_fini(&conn->way);
	message_fini(&conn->request);
	message_fini(&conn->response);
	tls_peer_unref(conn->tls_peer);
	free(conn);
}
