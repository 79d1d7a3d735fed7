/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection from a sandbox to the outside. Its states:
 *
 * head ----> resolving ----> dialling ----> relaying, and from each of them closing (a proxy client
 * reads why) or a reset.
 *
 * It starts with `head` if the client speaks to a proxy, else with the target that the address it
 * connected to stands for. If requests to the target get a secret, it is a secret proxy
 * (secret_proxy.h): it goes to the secret's server and relays requests one by one
 * (egress_conn_relay.c). The policy judges the target before its name is resolved, each address
 * before it is dialled (egress_conn_dial.c), and the name in the TLS ClientHello before that is
 * passed on.
 */
#include "base/clock.h"
#include "base/fd.h"
#include "base/format.h"
#include "base/share_pool.h"
#include "egress/connection/client_hello.h"
#include "egress/connection/egress_conn_private.h"
#include "egress/connection/proxy_head.h"
#include "wire/egress.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEAD_TIMEOUT_MS	 30000
#define CLOSE_TIMEOUT_MS 2000
#define NOT_FOR_A_PROXY	 "this is a proxy: CONNECT host:port, or a request with a whole http URL"

/* --- beginning and end --- */

void egress_conn_update_wait(struct egress_conn *conn)
{
	bool waits = conn->deadline_ms > 0 || conn->is_throttled;

	if (waits != conn->waits_for_time)
		egress_thread_wait_for_time(conn->sandbox->worker->thread, waits);
	conn->waits_for_time = waits;
}

void egress_conn_set_deadline(struct egress_conn *conn, uint64_t ms)
{
	conn->deadline_ms = ms > 0 ? clock_steady_ms() + ms : 0;
	egress_conn_update_wait(conn);
}

void egress_conn_end(struct egress_conn *conn)
{
	struct egress_worker *worker = conn->sandbox->worker;

	*conn->at = conn->next;
	if (conn->next)
		conn->next->at = conn->at;
	conn->is_throttled = false;
	egress_conn_set_deadline(conn, 0);
	lookup_cancel(conn->lookup);
	secret_proxy_free(conn->secret_proxy);
	egress_thread_remove(worker->thread, &conn->client);
	egress_thread_remove(worker->thread, &conn->upstream);
	splice_pipe_fini(&conn->out);
	splice_pipe_fini(&conn->in);
	buf_fini(&conn->first);
	conn->sandbox->counters.open_connections--;
	share_give_back(conn->share);
	if (--worker->connections == 0)
		pipes_fini(&worker->pipes);
	egress_thread_discard(worker->thread, conn);
}

/* Closing then sends a reset, so that the peer does not take a part for the whole. */
static void reset_on_close(int fd)
{
	struct linger linger = {.l_onoff = 1};

	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
}

void egress_conn_cut(struct egress_conn *conn)
{
	reset_on_close(conn->client.fd);
	reset_on_close(conn->upstream.fd);
	egress_conn_end(conn);
}

/*
 * Reads and drops what still comes: closing with unread bytes would reset the connection and lose
 * the reply.
 */
static void drain_client(struct egress_conn *conn)
{
	char bytes[4096];
	ssize_t n = recv(conn->client.fd, bytes, sizeof(bytes), 0);

	if (n > 0)
		egress_thread_requeue(conn->sandbox->worker->thread, &conn->client);
	else if (n == 0 || errno != EAGAIN)
		egress_conn_end(conn);
}

void egress_conn_begin_close(struct egress_conn *conn)
{
	shutdown(conn->client.fd, SHUT_WR);
	egress_thread_remove(conn->sandbox->worker->thread, &conn->upstream);
	conn->state = EGRESS_CONN_CLOSING;
	egress_conn_set_deadline(conn, CLOSE_TIMEOUT_MS);
	drain_client(conn);
}

void egress_conn_turn_away(struct egress_conn *conn, const char *status, const char *text)
{
	char reply[1024];
	size_t len;

	if (!conn->is_proxied) {
		egress_conn_cut(conn);
		return;
	}
	len = format_append(reply, sizeof(reply), 0,
		"HTTP/1.1 %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n"
		"Connection: close\r\n\r\nsandlot: %s\n",
		status, strlen(text) + 10, text);
	(void)!send(conn->client.fd, reply, len, MSG_NOSIGNAL);
	egress_conn_begin_close(conn);
}

void egress_conn_note_denial(
	struct egress_conn *conn, const char *rule, enum egress_denial_reason reason)
{
	char target[EGRESS_NAME_MAX + 8];

	authority_format(&conn->target, 0, target);
	sandbox_egress_deny(conn->sandbox, target, rule, reason);
}

void egress_conn_deny(struct egress_conn *conn, const char *rule, enum egress_denial_reason reason)
{
	char target[EGRESS_NAME_MAX + 8], text[2 * EGRESS_NAME_MAX + 128];

	egress_conn_note_denial(conn, rule, reason);
	authority_format(&conn->target, 0, target);
	snprintf(text, sizeof(text), "%s is not allowed (%s)%s%s", target,
		egress_denial_reason_name(reason), rule[0] ? "; this rule would allow it: " : "",
		rule);
	egress_conn_turn_away(conn, "403 Forbidden", text);
}

/*
 * Makes the connection a secret proxy if its target has a secret; whether it did. The requests then
 * go to the secret's server, and the client, which speaks HTTP, can be told what goes wrong. sent:
 * bytes that the client has sent already.
 */
static bool use_secret(struct egress_conn *conn, const void *sent, size_t len)
{
	const struct secret_cache_secret *secret =
		sandbox_egress_find_secret(conn->sandbox, &conn->target);

	if (!secret)
		return false;
	conn->secret_proxy = secret_proxy_new(conn->sandbox, &conn->target, secret, sent, len);
	conn->is_proxied = conn->is_screened = true;
	conn->target = secret->server.at;
	if (conn->sandbox->secret_proxy_count > SECRET_PROXIES_MAX)
		egress_conn_deny(conn, "", EGRESS_TOO_MANY);
	else
		egress_conn_dial_start(conn);
	return true;
}

/* --- a proxy's client --- */

/* The head is complete. What follows it stays in `first`, behind the head for the server. */
static void follow_head(struct egress_conn *conn, const struct message *request, size_t len)
{
	struct proxy_head head;

	if (proxy_head_read(request, &head) < 0) {
		egress_conn_turn_away(conn, "400 Bad Request", NOT_FOR_A_PROXY);
		return;
	}
	conn->target = head.at;
	conn->is_tunnel = head.is_connect;
	if (head.is_connect)
		buf_consume(&conn->first, len);
	if (use_secret(conn, conn->first.data, conn->first.len))
		return;
	if (!head.is_connect) {
		struct buf rewritten = BUF_INIT(conn->first.max);

		proxy_head_write(request, &head, &rewritten);
		buf_append(&rewritten, conn->first.data + len, conn->first.len - len);
		buf_fini(&conn->first);
		conn->first = rewritten;
		conn->is_screened = true;
	}
	egress_conn_dial_start(conn);
}

static void read_head(struct egress_conn *conn)
{
	struct message request = {0};
	ssize_t taken = 0;

	while (taken == 0) {
		char bytes[4096];
		ssize_t n = recv(conn->client.fd, bytes, sizeof(bytes), 0);

		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0 || buf_append(&conn->first, bytes, (size_t)n) < 0) {
			egress_conn_cut(conn);
			return;
		}
		message_begin(&request, MESSAGE_REQUEST);
		request.checked = conn->head_checked;
		taken = message_feed(&request, conn->first.data, conn->first.len);
		conn->head_checked = request.checked;
	}
	if (taken < 0)
		egress_conn_turn_away(conn, "400 Bad Request", NOT_FOR_A_PROXY);
	else
		follow_head(conn, &request, (size_t)taken);
	message_fini(&request);
}

/* --- its way is found --- */

/* As the rules of an allowlist with which it would be reached again. */
static void note_contact(struct egress_conn *conn)
{
	struct authority address = {.address = conn->dialled, .port = conn->target.port};

	sandbox_egress_note_contact(conn->sandbox, &conn->target);
	if (conn->target.name[0] && !policy_is_open(conn->dialled))
		sandbox_egress_note_contact(conn->sandbox, &address);
}

static void check_dialled(struct egress_conn *conn)
{
	static const char established[] = "HTTP/1.1 200 Connection established\r\n\r\n";
	struct sockaddr_storage peer;
	socklen_t peer_len = sizeof(peer), len = sizeof(int);
	int error = 0;

	if (getsockopt(conn->upstream.fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0 || error != 0) {
		egress_thread_remove(conn->sandbox->worker->thread, &conn->upstream);
		egress_conn_dial_next(conn);
		return;
	}
	if (getpeername(conn->upstream.fd, (struct sockaddr *)&peer, &peer_len) < 0)
		return;
	if (conn->is_tunnel)
		(void)!send(conn->client.fd, established, sizeof(established) - 1, MSG_NOSIGNAL);
	conn->sandbox->counters.connections++;
	setsockopt(conn->upstream.fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
	setsockopt(conn->upstream.fd, SOL_SOCKET, SO_KEEPALIVE, &(int){1}, sizeof(int));
	conn->state = EGRESS_CONN_RELAYING;
	if (conn->secret_proxy) {
		egress_conn_set_deadline(conn, EGRESS_CONN_DIAL_TIMEOUT_MS);
		if (secret_proxy_connect(conn->secret_proxy, conn->client.fd, conn->upstream.fd) <
			0) {
			egress_conn_turn_away(
				conn, "502 Bad Gateway", "TLS cannot be spoken to the server");
			return;
		}
	} else {
		conn->is_proxied = false; /* from here on it hears the server only */
		note_contact(conn);
		egress_conn_set_deadline(conn, 0);
	}
	egress_conn_step(conn);
}

void egress_conn_step(void *arg)
{
	struct egress_conn *conn = arg;

	switch (conn->state) {
	case EGRESS_CONN_HEAD:
		read_head(conn);
		break;
	case EGRESS_CONN_RESOLVING:
		break;
	case EGRESS_CONN_DIALLING:
		check_dialled(conn);
		break;
	case EGRESS_CONN_RELAYING:
		if (conn->secret_proxy)
			egress_conn_relay_requests(conn);
		else
			egress_conn_relay_bytes(conn);
		break;
	case EGRESS_CONN_CLOSING:
		drain_client(conn);
		break;
	}
}

/* --- all of them --- */

/* An address of the sandbox itself: a client that connects there means the proxy. */
static bool is_own(struct address address)
{
	static const struct address own_v6 = {.bytes.s6_addr = EGRESS_OWN_V6};
	uint32_t v4 = ntohl(address_to_v4(address).s_addr);

	if (address_is_v4(address))
		return v4 >> 24 == 127 || v4 == EGRESS_OWN_ADDRESS;
	return IN6_IS_ADDR_LOOPBACK(&address.bytes) || address_equals(address, own_v6);
}

static struct egress_conn *add(struct sandbox_egress *sandbox, int fd)
{
	struct egress_conn *conn = mem_new(sizeof(*conn));

	*conn = (struct egress_conn){.sandbox = sandbox,
		.client = {.fd = fd, .ready = egress_conn_step, .owner = conn},
		.upstream = {.fd = -1},
		.first = BUF_INIT(MESSAGE_HEAD_MAX + CLIENT_HELLO_MAX),
		.next = sandbox->conns,
		.at = &sandbox->conns};
	if (conn->next)
		conn->next->at = &conn->next;
	sandbox->conns = conn;
	sandbox->counters.open_connections++;
	sandbox->worker->connections++;
	return conn;
}

static void set_out(struct egress_conn *conn, struct address goal, uint16_t port)
{
	struct sandbox_egress *sandbox = conn->sandbox;
	const char *name = fake_address_name(&sandbox->fake_addresses, goal);

	conn->target = (struct authority){.address = goal, .port = port};
	if (is_own(goal)) {
		conn->is_proxied = true;
		conn->state = EGRESS_CONN_HEAD;
		egress_conn_set_deadline(conn, HEAD_TIMEOUT_MS);
		read_head(conn);
	} else if (name) {
		snprintf(conn->target.name, sizeof(conn->target.name), "%s", name);
		if (!use_secret(conn, NULL, 0))
			egress_conn_dial_start(conn);
	} else if (fake_address_is_one(goal)) {
		egress_conn_deny(conn, "", EGRESS_FORGOTTEN_NAME);
	} else if (!use_secret(conn, NULL, 0)) {
		egress_conn_dial_start(conn);
	}
}

/* Takes a place for the connection in the limits of its sandbox and its owner. */
static bool take_place(struct egress_conn *conn)
{
	const struct sandbox_egress *sandbox = conn->sandbox;
	struct egress *egress = sandbox->worker->egress;
	unsigned open = sandbox->counters.open_connections;

	return open <= sandbox->limits.connections && open <= egress->max_per_sandbox &&
	       share_pool_take(egress->connections, sandbox->owner_key, sandbox->is_operators,
		       &conn->share) == 0;
}

void egress_conn_accept(struct sandbox_egress *sandbox, int fd)
{
	struct sockaddr_storage own;
	socklen_t len = sizeof(own);
	struct address goal;
	struct egress_conn *conn;
	uint16_t port;

	if (getsockname(fd, (struct sockaddr *)&own, &len) < 0) {
		close(fd);
		return;
	}
	goal = address_of_socket(&own, &port);
	if (port == EGRESS_DNS_PORT) {
		dns_service_serve(sandbox, fd);
		return;
	}
	conn = add(sandbox, fd);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
	if (egress_thread_add(sandbox->worker->thread, &conn->client) < 0) {
		egress_conn_end(conn);
	} else if (!take_place(conn)) {
		conn->target = (struct authority){.address = goal, .port = port};
		egress_conn_deny(conn, "", EGRESS_TOO_MANY);
	} else {
		set_out(conn, goal, port);
	}
}

void egress_conn_tick_all(struct sandbox_egress *sandbox, uint64_t now_ms)
{
	struct egress_conn *next;

	for (struct egress_conn *conn = sandbox->conns; conn; conn = next) {
		next = conn->next;
		if (conn->deadline_ms > 0 && now_ms >= conn->deadline_ms) {
			if (conn->state == EGRESS_CONN_DIALLING) {
				egress_thread_remove(sandbox->worker->thread, &conn->upstream);
				egress_conn_dial_next(conn);
			} else if (conn->state == EGRESS_CONN_CLOSING) {
				egress_conn_end(conn);
			} else {
				egress_conn_cut(conn);
			}
		} else if (conn->is_throttled) {
			egress_conn_step(conn);
		}
	}
}

/* Whether the present policy still allows the connection; if not, why. */
static bool is_allowed_still(const struct egress_conn *conn, enum egress_denial_reason *ret_reason)
{
	const struct sandbox_egress *sandbox = conn->sandbox;

	if (conn->secret_proxy) {
		*ret_reason = EGRESS_NOT_ALLOWED;
		if (!policy_uses_secret(
			    sandbox->policy, secret_proxy_secret(conn->secret_proxy)->record.name))
			return false;
	} else if (!sandbox_egress_judge(sandbox, &conn->target, ret_reason)) {
		return false;
	}
	*ret_reason = EGRESS_PRIVATE_ADDRESS;
	return conn->state == EGRESS_CONN_RESOLVING || egress_conn_dial_may(conn, conn->dialled);
}

void egress_conn_review_all(struct sandbox_egress *sandbox)
{
	struct egress_conn *next;

	for (struct egress_conn *conn = sandbox->conns; conn; conn = next) {
		enum egress_denial_reason reason;
		char target[EGRESS_NAME_MAX + 8];

		next = conn->next;
		if (conn->state == EGRESS_CONN_HEAD || conn->state == EGRESS_CONN_CLOSING)
			continue;
		if (is_allowed_still(conn, &reason))
			continue;
		authority_format(&conn->target, 0, target);
		sandbox_egress_deny(sandbox, target, target, reason);
		egress_conn_cut(conn);
	}
}

void egress_conn_cut_all(struct sandbox_egress *sandbox)
{
	while (sandbox->conns)
		egress_conn_cut(sandbox->conns);
}
