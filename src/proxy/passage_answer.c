/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/passage_answer.h"

#include "base/clock.h"

#include <sys/socket.h>

#define LINGER_MS 5000 /* for a client to read our end */

void passage_answer_found(struct passage *passage)
{
	struct buf *out = &passage->client.out;
	bool is_head = passage->request.has_head && passage->request.parser.method == HTTP_HEAD;
	struct proxy_way *way = &passage->way;

	buf_printf(out,
		"HTTP/1.1 %u %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
		"Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: "
		"close\r\n",
		way->status, http_status_str((enum http_status)way->status), way->type,
		way->body.len);
	buf_append(out, way->fields.data, way->fields.len);
	buf_append_str(out, "\r\n");
	if (!is_head)
		buf_append(out, way->body.data, way->body.len);
	proxy_way_fini(way);
	side_close(&passage->app);
	passage->state = PASSAGE_LAST;
	passage->moved_ms = clock_steady_ms();
}

void passage_answer_prepare(struct passage *passage, const struct proxy_refusal *refusal)
{
	const struct message *request = &passage->request;

	proxy_way_fini(&passage->way);
	passage->config->refuse(
		refusal, request->has_head && demand_is_page(request), &passage->way);
}

void passage_answer_refuse(struct passage *passage, const struct proxy_refusal *refusal)
{
	if (passage->has_answer_begun) {
		passage_end(
			passage); /* it cannot be taken back: the client sees a cut connection */
		return;
	}
	passage_answer_prepare(passage, refusal);
	passage_answer_found(passage);
}

bool passage_answer_move(struct passage *passage)
{
	struct side *client = &passage->client;
	bool moved = side_flush(client);

	if (client->out.len > 0 && !client->has_ended)
		return moved;
	if (client->out.len == 0 && !passage->has_said_end && !client->has_ended) {
		shutdown(client->fd, SHUT_WR);
		passage->has_said_end = true;
		passage->due_ms = clock_steady_ms() + LINGER_MS;
	}
	/* Closing with unread bytes would reset the connection under the answer. */
	moved |= side_receive(client);
	client->in.len = 0;
	if (client->has_ended)
		passage_end(passage);
	return moved;
}
