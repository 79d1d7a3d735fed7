/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection from a sandbox to the outside, from its first byte to its last:
 *
 *   head ----> resolving ----> dialling ----> relaying
 *     |            |               |
 *     +------------+---------------+--------> farewell (a proxy's client is told why) or reset
 *
 * It starts with `head` if the client speaks to us as to a proxy, else where the address that it
 * connected to says. One whose requests are given a secret is an errand (errand.h): it goes to the
 * secret's server, and what is relayed are its requests, one by one (flow_relay.c). Judged are: the target, before its
 * name is resolved; each address, before it is dialled (flow_dial.c); and the name in the first message
 * of TLS, before it is passed on.
 */
#include "base/clock.h"
#include "base/fd.h"
#include "egress/client_hello.h"
#include "egress/flow_private.h"
#include "egress/proxy_head.h"
#include "wire/egress.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEAD_TIMEOUT_MS	    30000
#define FAREWELL_TIMEOUT_MS 2000
#define NOT_FOR_A_PROXY	    "this is a proxy: CONNECT host:port, or a request with a whole http URL"

/* --- beginning and end --- */

void flow_update_wait(struct flow *flow)
{
	bool waits = flow->deadline_ms > 0 || flow->is_throttled;

	if (waits != flow->waits_for_time)
		dispatcher_wait_for_time(flow->sluice->station->dispatcher, waits);
	flow->waits_for_time = waits;
}

void flow_set_deadline(struct flow *flow, uint64_t ms)
{
	flow->deadline_ms = ms > 0 ? clock_steady_ms() + ms : 0;
	flow_update_wait(flow);
}

void flow_end(struct flow *flow)
{
	struct station *station = flow->sluice->station;

	*flow->at = flow->next;
	if (flow->next)
		flow->next->at = flow->at;
	flow->is_throttled = false;
	flow_set_deadline(flow, 0);
	lookup_cancel(flow->lookup);
	errand_free(flow->errand);
	dispatcher_remove(station->dispatcher, &flow->client);
	dispatcher_remove(station->dispatcher, &flow->upstream);
	lane_fini(&flow->out);
	lane_fini(&flow->in);
	buf_fini(&flow->first);
	flow->sluice->counters.open_connections--;
	atomic_fetch_sub(&station->egress->connections, 1);
	if (--station->connections == 0)
		pipes_fini(&station->pipes);
	dispatcher_discard(station->dispatcher, flow);
}

/* So that nobody takes what came for the whole. */
static void reset_on_close(int fd)
{
	struct linger linger = {.l_onoff = 1};

	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
}

void flow_cut(struct flow *flow)
{
	reset_on_close(flow->client.fd);
	reset_on_close(flow->upstream.fd);
	flow_end(flow);
}

/* Reads what still comes, unheard: closing before would take the reply back. */
static void say_farewell(struct flow *flow)
{
	char bytes[4096];
	ssize_t n = recv(flow->client.fd, bytes, sizeof(bytes), 0);

	if (n > 0)
		dispatcher_requeue(flow->sluice->station->dispatcher, &flow->client);
	else if (n == 0 || errno != EAGAIN)
		flow_end(flow);
}

void flow_begin_farewell(struct flow *flow)
{
	shutdown(flow->client.fd, SHUT_WR);
	dispatcher_remove(flow->sluice->station->dispatcher, &flow->upstream);
	flow->state = FLOW_FAREWELL;
	flow_set_deadline(flow, FAREWELL_TIMEOUT_MS);
	say_farewell(flow);
}

void flow_turn_away(struct flow *flow, const char *status, const char *text)
{
	char reply[1024];
	int len;

	if (!flow->is_proxied) {
		flow_cut(flow);
		return;
	}
	len = snprintf(reply, sizeof(reply),
		"HTTP/1.1 %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n"
		"Connection: close\r\n\r\nsandlot: %s\n",
		status, strlen(text) + 10, text);
	(void)!send(flow->client.fd, reply, (size_t)len, MSG_NOSIGNAL);
	flow_begin_farewell(flow);
}

void flow_note_denial(struct flow *flow, const char *rule, enum egress_denial_reason reason)
{
	char target[EGRESS_NAME_MAX + 8];

	authority_format(&flow->target, 0, target);
	sluice_deny(flow->sluice, target, rule, reason);
}

void flow_deny(struct flow *flow, const char *rule, enum egress_denial_reason reason)
{
	char target[EGRESS_NAME_MAX + 8], text[2 * EGRESS_NAME_MAX + 128];

	flow_note_denial(flow, rule, reason);
	authority_format(&flow->target, 0, target);
	snprintf(text, sizeof(text), "%s is not allowed (%s)%s%s", target,
		egress_denial_reason_name(reason), rule[0] ? "; this rule would allow it: " : "",
		rule);
	flow_turn_away(flow, "403 Forbidden", text);
}

/*
 * Whether requests to the target are given a secret. Then they go to the secret's server, and the client,
 * which speaks HTTP, can be told whatever goes wrong. sent: what it has said already.
 */
static bool becomes_errand(struct flow *flow, const void *sent, size_t len)
{
	const struct vault_secret *secret = sluice_find_secret(flow->sluice, &flow->target);

	if (!secret)
		return false;
	flow->errand = errand_new(flow->sluice, &flow->target, secret, sent, len);
	flow->is_proxied = flow->is_screened = true;
	flow->target = secret->server.at;
	if (flow->sluice->errand_count > ERRANDS_MAX)
		flow_deny(flow, "", EGRESS_TOO_MANY);
	else
		flow_dial_start(flow);
	return true;
}

/* --- a proxy's client --- */

/* The head is whole: what follows it stays in `first`, behind the head that a server gets. */
static void follow_head(struct flow *flow, const struct message *request, size_t len)
{
	struct proxy_head head;

	if (proxy_head_read(request, &head) < 0) {
		flow_turn_away(flow, "400 Bad Request", NOT_FOR_A_PROXY);
		return;
	}
	flow->target = head.at;
	flow->is_tunnel = head.is_connect;
	if (head.is_connect)
		buf_consume(&flow->first, len);
	if (becomes_errand(flow, flow->first.data, flow->first.len))
		return;
	if (!head.is_connect) {
		struct buf rewritten = BUF_INIT(flow->first.max);

		proxy_head_write(request, &head, &rewritten);
		buf_append(&rewritten, flow->first.data + len, flow->first.len - len);
		buf_fini(&flow->first);
		flow->first = rewritten;
		flow->is_screened = true;
	}
	flow_dial_start(flow);
}

static void read_head(struct flow *flow)
{
	struct message request = {0};
	ssize_t taken = 0;

	while (taken == 0) {
		char bytes[4096];
		ssize_t n = recv(flow->client.fd, bytes, sizeof(bytes), 0);

		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0 || buf_append(&flow->first, bytes, (size_t)n) < 0) {
			flow_cut(flow);
			return;
		}
		message_begin(&request, HTTP_REQUEST);
		request.checked = flow->head_checked;
		taken = message_feed(&request, flow->first.data, flow->first.len);
		flow->head_checked = request.checked;
	}
	if (taken < 0)
		flow_turn_away(flow, "400 Bad Request", NOT_FOR_A_PROXY);
	else
		follow_head(flow, &request, (size_t)taken);
	message_fini(&request);
}

/* --- its way is found --- */

static void check_dialled(struct flow *flow)
{
	static const char established[] = "HTTP/1.1 200 Connection established\r\n\r\n";
	struct sockaddr_storage peer;
	socklen_t peer_len = sizeof(peer), len = sizeof(int);
	int error = 0;

	if (getsockopt(flow->upstream.fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0 || error != 0) {
		dispatcher_remove(flow->sluice->station->dispatcher, &flow->upstream);
		flow_dial_next(flow);
		return;
	}
	if (getpeername(flow->upstream.fd, (struct sockaddr *)&peer, &peer_len) < 0)
		return;
	if (flow->is_tunnel)
		(void)!send(flow->client.fd, established, sizeof(established) - 1, MSG_NOSIGNAL);
	flow->sluice->counters.connections++;
	setsockopt(flow->upstream.fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
	setsockopt(flow->upstream.fd, SOL_SOCKET, SO_KEEPALIVE, &(int){1}, sizeof(int));
	flow->state = FLOW_RELAYING;
	if (flow->errand) {
		flow_set_deadline(flow, FLOW_DIAL_TIMEOUT_MS);
		if (errand_connect(flow->errand, flow->client.fd, flow->upstream.fd) < 0) {
			flow_turn_away(
				flow, "502 Bad Gateway", "TLS cannot be spoken to the server");
			return;
		}
	} else {
		flow->is_proxied = false; /* from here on it hears the server only */
		sluice_note_contact(flow->sluice, &flow->target);
		flow_set_deadline(flow, 0);
	}
	flow_step(flow);
}

void flow_step(void *arg)
{
	struct flow *flow = arg;

	switch (flow->state) {
	case FLOW_HEAD:
		read_head(flow);
		break;
	case FLOW_RESOLVING:
		break;
	case FLOW_DIALLING:
		check_dialled(flow);
		break;
	case FLOW_RELAYING:
		if (flow->errand)
			flow_relay_requests(flow);
		else
			flow_relay_bytes(flow);
		break;
	case FLOW_FAREWELL:
		say_farewell(flow);
		break;
	}
}

/* --- all of them --- */

/* Of the sandbox itself: whoever connects there means the proxy. */
static bool is_own(struct address address)
{
	static const struct address own_v6 = {.bytes.s6_addr = EGRESS_OWN_V6};
	uint32_t v4 = ntohl(address_to_v4(address).s_addr);

	if (address_is_v4(address))
		return v4 >> 24 == 127 || v4 == EGRESS_OWN_ADDRESS;
	return IN6_IS_ADDR_LOOPBACK(&address.bytes) || address_equals(address, own_v6);
}

static struct flow *add(struct sluice *sluice, int fd)
{
	struct flow *flow = mem_new(sizeof(*flow));

	*flow = (struct flow){.sluice = sluice,
		.client = {.fd = fd, .ready = flow_step, .owner = flow},
		.upstream = {.fd = -1},
		.first = BUF_INIT(MESSAGE_HEAD_MAX + CLIENT_HELLO_MAX),
		.next = sluice->flows,
		.at = &sluice->flows};
	if (flow->next)
		flow->next->at = &flow->next;
	sluice->flows = flow;
	sluice->counters.open_connections++;
	sluice->station->connections++;
	atomic_fetch_add(&sluice->station->egress->connections, 1);
	return flow;
}

static void set_out(struct flow *flow, struct address goal, uint16_t port)
{
	struct sluice *sluice = flow->sluice;
	const char *name = stand_in_name(&sluice->stand_ins, goal);

	flow->target = (struct authority){.address = goal, .port = port};
	if (is_own(goal)) {
		flow->is_proxied = true;
		flow->state = FLOW_HEAD;
		flow_set_deadline(flow, HEAD_TIMEOUT_MS);
		read_head(flow);
	} else if (name) {
		snprintf(flow->target.name, sizeof(flow->target.name), "%s", name);
		if (!becomes_errand(flow, NULL, 0))
			flow_dial_start(flow);
	} else if (stand_in_is_one(goal)) {
		flow_deny(flow, "", EGRESS_FORGOTTEN_NAME);
	} else if (!becomes_errand(flow, NULL, 0)) {
		flow_dial_start(flow);
	}
}

void flow_accept(struct sluice *sluice, int fd)
{
	struct egress *egress = sluice->station->egress;
	struct sockaddr_storage own;
	socklen_t len = sizeof(own);
	struct address goal;
	struct flow *flow;
	uint16_t port;

	if (getsockname(fd, (struct sockaddr *)&own, &len) < 0) {
		close(fd);
		return;
	}
	goal = address_of_socket(&own, &port);
	if (port == EGRESS_DNS_PORT) {
		dns_service_serve(sluice, fd);
		return;
	}
	flow = add(sluice, fd);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
	if (dispatcher_add(sluice->station->dispatcher, &flow->client) < 0) {
		flow_end(flow);
	} else if (sluice->counters.open_connections > sluice->limits.connections ||
		   atomic_load(&egress->connections) > egress->max_connections) {
		flow->target = (struct authority){.address = goal, .port = port};
		flow_deny(flow, "", EGRESS_TOO_MANY);
	} else {
		set_out(flow, goal, port);
	}
}

void flow_tick_all(struct sluice *sluice, uint64_t now_ms)
{
	struct flow *next;

	for (struct flow *flow = sluice->flows; flow; flow = next) {
		next = flow->next;
		if (flow->deadline_ms > 0 && now_ms >= flow->deadline_ms) {
			if (flow->state == FLOW_DIALLING) {
				dispatcher_remove(sluice->station->dispatcher, &flow->upstream);
				flow_dial_next(flow);
			} else if (flow->state == FLOW_FAREWELL) {
				flow_end(flow);
			} else {
				flow_cut(flow);
			}
		} else if (flow->is_throttled) {
			flow_step(flow);
		}
	}
}

/* Whether it may go on under the policy that there is now; why not. */
static bool is_allowed_still(const struct flow *flow, enum egress_denial_reason *ret_reason)
{
	const struct sluice *sluice = flow->sluice;

	if (flow->errand) {
		*ret_reason = EGRESS_NOT_ALLOWED;
		if (!policy_uses_secret(sluice->policy, errand_secret(flow->errand)->record.name))
			return false;
	} else if (!sluice_judge(sluice, &flow->target, ret_reason)) {
		return false;
	}
	*ret_reason = EGRESS_PRIVATE_ADDRESS;
	return flow->state == FLOW_RESOLVING || flow_dial_may(flow, flow->dialled);
}

void flow_review_all(struct sluice *sluice)
{
	struct flow *next;

	for (struct flow *flow = sluice->flows; flow; flow = next) {
		enum egress_denial_reason reason;
		char target[EGRESS_NAME_MAX + 8];

		next = flow->next;
		if (flow->state == FLOW_HEAD || flow->state == FLOW_FAREWELL)
			continue;
		if (is_allowed_still(flow, &reason))
			continue;
		authority_format(&flow->target, 0, target);
		sluice_deny(sluice, target, target, reason);
		flow_cut(flow);
	}
}

void flow_cut_all(struct sluice *sluice)
{
	while (sluice->flows)
		flow_cut(sluice->flows);
}
