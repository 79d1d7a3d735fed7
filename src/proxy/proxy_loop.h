/* SPDX-License-Identifier: Apache-2.0 */
/* One thread of the proxy: waits for the connections that are its own. */
#pragma once

#include "base/err.h"
#include "event/timer.h"
#include "proxy/connection/proxy_conn_state.h"

#define PROXY_LOOP_TICK_MS  1000
#define PROXY_LOOP_LATER_MS 50 /* while somebody waits for an app */

struct proxy_loop {
	struct proxy *proxy;
	const struct proxy_config *config;
	struct event_loop *events;
	struct watch *listening; /* NULL: there is no place, and no client is accepted */
	struct timer *ticks;
	struct proxy_conn *conns;
	unsigned later; /* how many ask again */
	void (*accept)(void *arg, uint32_t events);
};

/* Both are called on its thread, with the loop: clients wait to be accepted, and now and then. */
int proxy_loop_open(struct proxy *proxy, void (*accept)(void *loop, uint32_t events),
	void (*tick)(void *loop), struct proxy_loop **ret_loop, struct err *err) must_check;

/* Watches the listener; `listening` is set. */
int proxy_loop_listen(struct proxy_loop *loop, struct err *err) must_check;

/* Ends the thread; no proxy connection may be with a worker any more. */
void proxy_loop_stop(struct proxy_loop *loop);
void proxy_loop_free(struct proxy_loop *loop);

/* For connections, on the loop's thread. */
int proxy_loop_watch(struct proxy_loop *loop, struct buffered_socket *side) must_check;
void proxy_loop_drop(struct proxy_loop *loop, struct proxy_conn *conn); /* frees it */
void proxy_loop_hurry(struct proxy_loop *loop); /* one of them is to ask again soon */

/* From any thread: the way of a proxy connection was found. */
void proxy_loop_found(struct proxy_loop *loop, struct proxy_conn *conn);
