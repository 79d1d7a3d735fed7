/* SPDX-License-Identifier: Apache-2.0 */
/* The open WebSockets of a server: what is done to all of them, or to those of one token. */
#pragma once

#include "http/request.h"

#include <stdint.h>

struct server;
struct websocket;

struct websocket_member {
	struct websocket_member *prev, *next; /* under the server's lock */
	struct websocket *websocket;
	struct principal principal; /* who opened it; not changed later */
};

/* The caller holds the server's lock. */
void websocket_list_add(struct server *server, struct websocket_member *member);

void websocket_list_remove(struct server *server, struct websocket_member *member);

/* Pings those that are due at now_ms, ends those that did not answer, closes those whose token expired. */
void websocket_list_sweep(struct server *server, uint64_t now_ms);

/* Closes those that were opened with a token (1008). */
void websocket_list_evict(struct server *server, const char *token_id);

/* Closes all (1001). One that opens later closes by itself. */
void websocket_list_close(struct server *server);

/* Cuts all, and waits until that is done. None may open any more. */
void websocket_list_cut(struct server *server);
