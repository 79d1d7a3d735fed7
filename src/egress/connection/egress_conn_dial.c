/* SPDX-License-Identifier: Apache-2.0 */
/* Dials for a connection: resolves the name, then judges and dials the addresses one by one. */
#include "base/fd.h"
#include "egress/connection/egress_conn_private.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

bool egress_conn_dial_may(const struct egress_conn *conn, struct address address)
{
	const struct policy *policy = conn->sandbox->policy;

	if (conn->secret_proxy)
		return secret_proxy_secret(conn->secret_proxy)->record.is_trusted ||
		       policy_allows_server(policy, address, conn->target.port);
	return conn->target.name[0] ? policy_allows_behind_name(policy, address, conn->target.port)
				    : policy_allows_address(policy, address, conn->target.port);
}

static int connect_to(struct egress_conn *conn, struct address address)
{
	struct egress_thread *thread = conn->sandbox->worker->thread;
	struct sockaddr_storage peer;
	socklen_t len = address_to_socket(address, conn->target.port, &peer);

	conn->upstream = (struct source){
		.fd = socket(peer.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0),
		.ready = egress_conn_step,
		.owner = conn};
	if (conn->upstream.fd < 0)
		return -errno;
	if (connect(conn->upstream.fd, (const struct sockaddr *)&peer, len) < 0 &&
		errno != EINPROGRESS) {
		int r = -errno;

		fd_close(take_fd(&conn->upstream.fd));
		return r;
	}
	conn->dialled = address;
	return egress_thread_add(thread, &conn->upstream);
}

/* Of a secret it is the name of its server, which the request does not have. */
static void give_up(struct egress_conn *conn, bool is_resolved)
{
	char target[EGRESS_NAME_MAX + 8], text[EGRESS_NAME_MAX + 64];

	authority_format(&conn->target, 0, target);
	if (is_resolved)
		snprintf(text, sizeof(text), "the server %s cannot be reached", target);
	else
		snprintf(text, sizeof(text), "the name %s cannot be resolved", conn->target.name);
	egress_conn_turn_away(conn, "502 Bad Gateway", text);
}

void egress_conn_dial_next(struct egress_conn *conn)
{
	struct authority refused = {.port = conn->target.port};
	char rule[EGRESS_NAME_MAX + 8] = "";

	while (conn->next_address < conn->addresses.count) {
		struct address address = conn->addresses.list[conn->next_address++];

		if (!egress_conn_dial_may(conn, address)) {
			refused.address = address;
			authority_format(&refused, 0, rule);
		} else if (connect_to(conn, address) == 0) {
			conn->state = EGRESS_CONN_DIALLING;
			egress_conn_set_deadline(conn, EGRESS_CONN_DIAL_TIMEOUT_MS);
			return;
		}
	}
	if (rule[0])
		egress_conn_deny(conn, rule, EGRESS_PRIVATE_ADDRESS);
	else
		give_up(conn, true);
}

static void on_addresses(void *arg, int result, const struct dns_addresses *addresses)
{
	struct egress_conn *conn = arg;

	conn->lookup = NULL;
	if (!conn->secret_proxy)
		sandbox_egress_note_lookup(conn->sandbox, conn->target.name, result);
	if (result < 0) {
		give_up(conn, false);
		return;
	}
	conn->addresses = *addresses;
	egress_conn_dial_next(conn);
}

void egress_conn_dial_start(struct egress_conn *conn)
{
	enum egress_denial_reason reason;
	char rule[EGRESS_NAME_MAX + 8];
	int r;

	if (!conn->secret_proxy && !sandbox_egress_judge(conn->sandbox, &conn->target, &reason)) {
		authority_format(&conn->target, 0, rule);
		egress_conn_deny(conn, rule, reason);
		return;
	}
	conn->state = EGRESS_CONN_RESOLVING;
	egress_conn_set_deadline(conn, 0);
	if (!conn->target.name[0]) {
		conn->is_screened =
			true; /* a rule allows the address itself, whatever name is asked for */
		conn->addresses =
			(struct dns_addresses){.list = {conn->target.address}, .count = 1};
		egress_conn_dial_next(conn);
		return;
	}
	r = resolver_ask(conn->sandbox->worker->resolver, conn->target.name, &conn->addresses,
		&conn->sandbox->asker, on_addresses, conn, &conn->lookup);
	if (r == 1)
		egress_conn_dial_next(conn);
	else if (r < 0)
		give_up(conn, false);
}
