/* SPDX-License-Identifier: Apache-2.0 */
/* The server's side of a WebSocket: how it comes to its socket, and what is done to it from outside. */
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

/* Pings it if that is due at now_ms, and cuts it if it did not answer. */
void websocket_ping(struct websocket *websocket, uint64_t now_ms);

/* Ends it without a close frame; `gone` follows. */
void websocket_cut(struct websocket *websocket);
