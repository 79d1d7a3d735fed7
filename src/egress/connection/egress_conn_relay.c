/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Relays an established connection: bytes, once the ClientHello was checked; or requests, if it is
 * a secret proxy.
 */
#include "egress/connection/client_hello.h"
#include "egress/connection/egress_conn_private.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#define HALF_OPEN_MS 120000 /* without a byte, after one side has ended */
#define TURN_BYTES   (1 << 20)

/* Reads the first bytes until the name in them is known. SPLICE_PIPE_MORE: they may go out. */
static enum splice_pipe_result screen(struct egress_conn *conn)
{
	char name[EGRESS_NAME_MAX] = "";
	int r = client_hello_read(conn->first.data, conn->first.len, name);

	while (r == -EAGAIN) {
		uint8_t bytes[4096];
		ssize_t n = recv(conn->client.fd, bytes, sizeof(bytes), 0);

		if (n < 0 && errno == EAGAIN)
			return SPLICE_PIPE_WAITS;
		if (n <= 0)
			break; /* the end or an error: send what there is, then that */
		r = buf_append(&conn->first, bytes, (size_t)n);
		if (r == 0)
			r = client_hello_read(conn->first.data, conn->first.len, name);
	}
	if ((r < 0 && r != -EAGAIN) || (r == 1 && strcmp(name, conn->target.name) != 0)) {
		egress_conn_note_denial(conn, name, EGRESS_OTHER_NAME);
		return SPLICE_PIPE_BROKEN;
	}
	conn->is_screened = true;
	return SPLICE_PIPE_MORE;
}

/* Sends what was read ahead; SPLICE_PIPE_MORE: it is all gone. */
static enum splice_pipe_result send_first(struct egress_conn *conn)
{
	while (conn->first.len > 0) {
		ssize_t n =
			send(conn->upstream.fd, conn->first.data, conn->first.len, MSG_NOSIGNAL);

		if (n < 0)
			return errno == EAGAIN ? SPLICE_PIPE_WAITS : SPLICE_PIPE_BROKEN;
		buf_consume(&conn->first, (size_t)n);
		conn->sandbox->counters.tx_bytes += (uint64_t)n;
		sandbox_egress_spend(conn->sandbox, (size_t)n);
	}
	return SPLICE_PIPE_MORE;
}

/* Moves what one side has for the other, within the sandbox's bandwidth. */
static enum splice_pipe_result move(struct egress_conn *conn, struct splice_pipe *splice_pipe,
	int from, int to, uint64_t *counter)
{
	size_t budget = sandbox_egress_budget(conn->sandbox, TURN_BYTES), left = budget;
	struct egress_worker *worker = conn->sandbox->worker;
	const struct splice_pipe_supply supply = {.pipes = &worker->pipes,
		.places = worker->egress->pipes,
		.owner = conn->sandbox->owner_key,
		.is_operators = conn->sandbox->is_operators};
	enum splice_pipe_result result;

	if (budget == 0 && splice_pipe->held == 0 && !splice_pipe->is_ended)
		return SPLICE_PIPE_MORE;
	result = splice_pipe_move(splice_pipe, &supply, from, to, &left);
	*counter += budget - left;
	sandbox_egress_spend(conn->sandbox, budget - left);
	return result;
}

void egress_conn_relay_bytes(struct egress_conn *conn)
{
	struct sandbox_egress *sandbox = conn->sandbox;
	enum splice_pipe_result out = conn->is_screened ? SPLICE_PIPE_MORE : screen(conn), in;

	if (out == SPLICE_PIPE_MORE)
		out = send_first(conn);
	if (out == SPLICE_PIPE_MORE)
		out = move(conn, &conn->out, conn->client.fd, conn->upstream.fd,
			&sandbox->counters.tx_bytes);
	in = move(conn, &conn->in, conn->upstream.fd, conn->client.fd, &sandbox->counters.rx_bytes);
	if (out == SPLICE_PIPE_BROKEN || in == SPLICE_PIPE_BROKEN) {
		egress_conn_cut(conn);
	} else if (conn->out.is_done && conn->in.is_done) {
		egress_conn_end(conn);
	} else {
		bool has_more = out == SPLICE_PIPE_MORE || in == SPLICE_PIPE_MORE;

		conn->is_throttled =
			(has_more && sandbox_egress_budget(sandbox, TURN_BYTES) == 0) ||
			out == SPLICE_PIPE_STARVES || in == SPLICE_PIPE_STARVES;
		if (has_more && !conn->is_throttled)
			egress_thread_requeue(sandbox->worker->thread, &conn->client);
		egress_conn_set_deadline(
			conn, conn->out.is_done || conn->in.is_done ? HALF_OPEN_MS : 0);
	}
}

/* Requests one by one, within the sandbox's bandwidth. */
void egress_conn_relay_requests(struct egress_conn *conn)
{
	struct sandbox_egress *sandbox = conn->sandbox;
	struct secret_proxy_turn turn = {.budget = sandbox_egress_budget(sandbox, TURN_BYTES)};
	enum secret_proxy_result result = secret_proxy_move(conn->secret_proxy, &turn);
	const char *status, *text;

	sandbox->counters.tx_bytes += turn.sent;
	sandbox->counters.rx_bytes += turn.received;
	sandbox_egress_spend(sandbox, turn.sent + turn.received);
	switch (result) {
	case SECRET_PROXY_WAITS:
	case SECRET_PROXY_MORE:
		conn->is_throttled = result == SECRET_PROXY_MORE &&
				     sandbox_egress_budget(sandbox, TURN_BYTES) == 0;
		if (result == SECRET_PROXY_MORE && !conn->is_throttled)
			egress_thread_requeue(sandbox->worker->thread, &conn->client);
		if (secret_proxy_in_handshake(conn->secret_proxy))
			egress_conn_update_wait(conn);
		else
			egress_conn_set_deadline(conn,
				secret_proxy_is_half_open(conn->secret_proxy) ? HALF_OPEN_MS : 0);
		break;
	case SECRET_PROXY_OVER:
		egress_conn_begin_close(conn);
		break;
	case SECRET_PROXY_BROKEN:
		egress_conn_cut(conn);
		break;
	case SECRET_PROXY_REFUSED:
		secret_proxy_refusal(conn->secret_proxy, &status, &text);
		egress_conn_turn_away(conn, status, text);
		break;
	}
}
