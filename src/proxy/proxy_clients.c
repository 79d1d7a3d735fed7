/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/proxy_clients.h"

#include "base/clock.h"
#include "base/fd.h"
#include "http/address_key.h"
#include "http/listener.h"
#include "proxy/connection/proxy_conn.h"
#include "proxy/proxy_limits.h"
#include "proxy/proxy_loop.h"
#include "proxy/proxy_private.h"
#include "proxy/wake_queue.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#define ACCEPT_BATCH 16

static void add_client(struct proxy_loop *loop, struct arrival *arrival)
{
	char text[64];
	struct proxy_conn *conn;

	listener_format(&arrival->address, text, sizeof(text));
	if (!loop->config->listener->terminator)
		setsockopt(arrival->fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
	conn = proxy_conn_open(loop, loop->config, take_fd(&arrival->fd), text);
	conn->source = address_key_of((struct sockaddr *)&arrival->address);
	conn->is_local = arrival->is_local;
	conn->tls_peer = take_ptr(&arrival->tls_peer);
	listener_drop(arrival);
	if (!proxy_limits_count_source(loop->proxy, conn) ||
		proxy_loop_watch(loop, &conn->client) < 0) {
		proxy_limits_uncount_source(loop->proxy, conn);
		proxy_limits_leave(loop->proxy);
		proxy_conn_free(conn);
		return;
	}
	conn->next = loop->conns;
	if (loop->conns)
		loop->conns->prev = conn;
	loop->conns = conn;
}

/*
 * Clients for whom there is no place wait in the kernel's queue, and nobody looks there until the next
 * tick.
 */
static void turn_away(struct proxy_loop *loop)
{
	watch_close(take_ptr(&loop->listening));
}

static bool is_awaited(const struct proxy_loop *loop)
{
	struct pollfd waiting = {.fd = loop->config->listener->fd, .events = POLLIN};

	return poll(&waiting, 1, 0) > 0;
}

/* Of those that never led anywhere, else of the others, the one that has been without a request for longer. */
static bool is_less_use(const struct proxy_conn *one, const struct proxy_conn *other)
{
	if (!one->owner_share != !other->owner_share)
		return !one->owner_share;
	return one->moved_ms <= other->moved_ms;
}

/* Whoever is of the least use makes room; false if nobody is without a request. */
static bool give_way(struct proxy_loop *loop)
{
	struct proxy_conn *longest = NULL;

	for (struct proxy_conn *p = loop->conns; p; p = p->next) {
		if (proxy_conn_is_idle(p) && (!longest || is_less_use(p, longest)))
			longest = p;
	}
	if (longest)
		proxy_conn_cut(longest);
	return longest;
}

void proxy_clients_accept(void *arg, uint32_t events)
{
	struct proxy_loop *loop = arg;

	(void)events;
	for (int i = 0; i < ACCEPT_BATCH; i++) {
		bool has_place = proxy_limits_admit(loop->proxy);
		struct arrival arrival;
		int r;

		if (!has_place && !is_awaited(loop))
			return;
		if (!has_place && !(give_way(loop) && proxy_limits_admit(loop->proxy))) {
			turn_away(loop);
			return;
		}
		r = listener_accept(loop->config->listener, &arrival);
		if (r < 0) {
			proxy_limits_leave(loop->proxy);
			if (r == -EMFILE || r == -ENFILE || r == -ENOBUFS || r == -ENOMEM)
				turn_away(loop);
			return;
		}
		add_client(loop, &arrival);
	}
}

void proxy_clients_tick(void *arg)
{
	struct proxy_loop *loop = arg;
	uint64_t now = clock_steady_ms();

	loop->later = 0;
	for (struct proxy_conn *p = loop->conns, *next; p; p = next) {
		next = p->next;
		if (p->state == PROXY_CONN_LATER)
			loop->later++;
		proxy_conn_tick(p, now);
	}
	wake_queue_expire(loop->proxy->wake_queue, now);
	/* If that fails it is tried again. */
	if (!loop->listening)
		(void)!proxy_loop_listen(loop, NULL);
	timer_set(loop->ticks, loop->later ? PROXY_LOOP_LATER_MS : PROXY_LOOP_TICK_MS);
}
