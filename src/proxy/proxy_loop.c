/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/proxy_loop.h"

#include "event/timer.h"
#include "http/listener.h"
#include "proxy/proxy_limits.h"
#include "proxy/proxy_private.h"

#include <sys/epoll.h>

/* --- connections --- */

int proxy_loop_watch(struct proxy_loop *loop, struct buffered_socket *side)
{
	const struct proxy_conn *conn = side->owner;

	return watch_open(loop->events, side->fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
		conn->ready, NULL, side, &side->watch, NULL);
}

void proxy_loop_drop(struct proxy_loop *loop, struct proxy_conn *conn)
{
	if (conn->prev)
		conn->prev->next = conn->next;
	else
		loop->conns = conn->next;
	if (conn->next)
		conn->next->prev = conn->prev;
	proxy_limits_uncount_source(loop->proxy, conn);
	proxy_limits_leave(loop->proxy);
	proxy_conn_free(conn);
}

void proxy_loop_hurry(struct proxy_loop *loop)
{
	if (loop->later++ == 0)
		timer_set(loop->ticks, PROXY_LOOP_LATER_MS);
}

void proxy_loop_found(struct proxy_loop *loop, struct proxy_conn *conn)
{
	event_loop_post(loop->events, &conn->found);
}

int proxy_loop_listen(struct proxy_loop *loop, struct err *err)
{
	return watch_open(loop->events, loop->config->listener->fd, EPOLLIN | EPOLLEXCLUSIVE,
		loop->accept, NULL, loop, &loop->listening, err);
}

/* --- its life --- */

int proxy_loop_open(struct proxy *proxy, void (*accept)(void *loop, uint32_t events),
	void (*tick)(void *loop), struct proxy_loop **ret_loop, struct err *err)
{
	struct proxy_loop *loop = mem_new(sizeof(*loop));
	int r;

	loop->proxy = proxy;
	loop->config = &proxy->config;
	loop->accept = accept;
	r = event_loop_open("preview-loop", NULL, &loop->events, err);
	if (r == 0) {
		loop->ticks = timer_open(loop->events, tick, NULL, loop);
		r = proxy_loop_listen(loop, err);
	}
	if (r < 0) {
		proxy_loop_free(loop);
		return r;
	}
	/* Last: a tick looks whether it listens, on the loop's thread. */
	timer_set(loop->ticks, PROXY_LOOP_TICK_MS);
	*ret_loop = loop;
	return 0;
}

void proxy_loop_stop(struct proxy_loop *loop)
{
	event_loop_stop(loop->events);
	event_loop_join(loop->events);
}

void proxy_loop_free(struct proxy_loop *loop)
{
	while (loop->conns)
		proxy_loop_drop(loop, loop->conns);
	watch_close(loop->listening);
	timer_close(loop->ticks);
	event_loop_close(loop->events);
	free(loop);
}
