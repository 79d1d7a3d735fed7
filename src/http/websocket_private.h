/* SPDX-License-Identifier: Apache-2.0 */
/* The server's side of a WebSocket: how it comes to its socket, and how it ends with the server. */
#pragma once

#include "http/websocket.h"

struct request;
struct server;

#define WEBSOCKET_PING_MS 15000

/* One that waits for its handshake to be sent. */
struct websocket *websocket_new(size_t capacity, const struct websocket_events *events, void *arg);

/*
 * The handshake of `req` was sent over `sock`, which is duplicated; `early` is what the client sent behind
 * it. It stays for as long as who made the request may. Takes over the reference.
 */
void websocket_open(struct websocket *websocket, const struct request *req, int sock,
	const void *early, size_t len);

/* It never will be. Takes over the reference. */
void websocket_abandon(struct websocket *websocket);

/* Pings those that are due at now_ms, ends those that did not answer, closes those whose token expired. */
void websocket_sweep(struct server *server, uint64_t now_ms);

/* Closes those that were opened with a token (1008). */
void websocket_evict(struct server *server, const char *token_id);

/* Closes all (1001). One that opens later closes by itself. */
void websocket_close_all(struct server *server);

/* Cuts all, and waits until that is done. None may open any more. */
void websocket_cut_all(struct server *server);
