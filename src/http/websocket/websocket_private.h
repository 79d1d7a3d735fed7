/* SPDX-License-Identifier: Apache-2.0 */
/* The server's side of WebSockets: how one comes to its socket, and what is done to it, or to all, from outside. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct event_loop;
struct principal;
struct share;
struct websocket;
struct websocket_events;

#define WEBSOCKET_PING_MS 15000

/* The open WebSockets of a server. */
struct websocket_list {
	struct event_loop *poller; /* serves them */
	pthread_mutex_t *lock;	   /* the server's; it comes before that of a WebSocket */
	pthread_cond_t *changed;   /* the last one has left */
	const atomic_bool *is_closing;
	void (*left)(void *arg); /* one has ended: there is room for another connection */
	void *arg;
	struct websocket *first; /* under the lock */
};

/* One that waits for its handshake to be sent. */
struct websocket *websocket_new(size_t capacity, const struct websocket_events *events, void *arg);

/*
 * The handshake was sent over `sock`, which is duplicated; `early` is what the client sent behind it. It stays
 * for as long as who made the request may. Takes over the reference, and its place among the connections.
 */
void websocket_open(struct websocket *websocket, struct websocket_list *list,
	const struct principal *principal, struct share *share, int sock, const void *early,
	size_t len);

/* It never will be. Takes over the reference. */
void websocket_abandon(struct websocket *websocket);

/* Pings those that are due at now_ms, ends those that did not answer, closes those whose token expired. */
void websocket_sweep(struct websocket_list *list, uint64_t now_ms);

/* Closes those that were opened with a token (1008). */
void websocket_evict(struct websocket_list *list, const char *id);

/* Closes all (1001). One that opens later closes by itself. */
void websocket_close_all(struct websocket_list *list);

/* Cuts all, and waits until that is done. None may open any more. */
void websocket_cut_all(struct websocket_list *list);
