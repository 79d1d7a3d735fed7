/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP server: libmicrohttpd on a thread for each core in front, worker threads behind.
 *
 * libmicrohttpd parses and writes HTTP. This file decides what a connection does next: reject it
 * (Host, Origin, token, size, type: before any body is read), gather a JSON body, run the handler on a
 * worker, pump a stream. Worker threads are made on demand up to a maximum and leave after a quiet
 * while; when all are busy requests wait in a bounded queue, and past that get 503 with Retry-After.
 *
 * No owner has more than three quarters of them: half of that for routes that wait for an object
 * (ROUTE_WAITS), of which no object has more than a third, and half for all others, so that one whose
 * objects do not answer can still end them. Past that requests wait, and when too many do get 429.
 */
#pragma once

#include "base/err.h"
#include "http/request.h"

#include <stdbool.h>
#include <stdint.h>

struct listener;
struct server;

/*
 * Wrong tokens that may come from one address, at once and for good; then 429. A good one is served all the same, since
 * whoever is behind the same address (a proxy) is not to blame, and 256 bits are not guessed.
 */
#define SERVER_FAILURES		   500
#define SERVER_FAILURES_PER_SECOND 10

#define ROUTE_OPEN	1u  /* no token needed */
#define ROUTE_RAW_BODY	2u  /* the body is not JSON; the handler takes it */
#define ROUTE_BODY	4u  /* has a JSON body (on other routes any body is 400) */
#define ROUTE_WEBSOCKET 8u  /* a GET that may be turned into a WebSocket (http/websocket.h) */
#define ROUTE_TICKET	16u /* ?ticket= does in the place of a token */
#define ROUTE_WAITS	32u /* the handler waits for what the path names first, perhaps for long */

typedef int (*route_handler)(struct request *req, void *context, struct err *err);

/* What the server needs to know of a route; src/api/routes.c has the table. A fixed segment wins over
 * a variable one. */
struct route {
	const char *method; /* GET also serves HEAD unless a HEAD route exists */
	const char *path;   /* "/v1/sandboxes/{id}/exec" */
	route_handler handle;
	unsigned flags;
	unsigned scope;	    /* what `admit` asks of the principal; opaque here */
	const void *doc;    /* what api/openapi.c says about it; opaque here */
	const char *action; /* what it does, by a name that stays; NULL if it only reads */
};

/* What a request shows of itself: one of both. */
struct credential {
	const char *token;
	const char *ticket;
	const char *path; /* as it was sent, without the query: what a ticket is bound to */
};

/* Strings are copied or not needed later; routes and context must outlive the server. */
struct server_config {
	const char *bind; /* "127.0.0.1:9090", "[::1]:9090"; port 0 picks one */
	const struct listener
		*listener; /* or one that was opened before; the server takes it over */
	const struct route *routes;
	size_t route_count;
	void *context; /* passed to every handler and to admit */

	/* The one gate before every handler of a route that is not open: who asks, and whether they may
	 * use the route. ERR_UNAUTHENTICATED, which is counted against their address, or ERR_DENIED, with
	 * which *ret tells who it was all the same. */
	int (*admit)(void *context, const struct credential *credential, const struct route *route,
		struct principal *ret, struct err *err);

	/*
	 * Keeps account: told of every request that may have changed something (its route has an
	 * action, its sender was made out) when its answer is complete, however that came about, and
	 * before it goes out. And of every request whose sender could not be made out. On any thread;
	 * must not block. Either may be NULL.
	 */
	void (*account)(void *context, const struct request *req);
	void (*refused)(void *context, const struct request *req);

	/* Whether a route has a query parameter of that name; any other is refused. NULL: all do. */
	bool (*takes_query)(const struct route *route, const char *name);

	/* Host values that are served besides the bound address, localhost and 127.0.0.1 with its
	 * port; NULL-terminated, may be NULL. */
	const char *const *hosts;

	unsigned max_workers;	  /* 0: 64 */
	unsigned max_connections; /* 0: 4096 */
	unsigned max_per_source;  /* of one address; 0: three quarters of all */
};

int server_open(const struct server_config *config, struct server **ret_server, struct err *err)
	must_check;

/* The port it listens on. */
uint16_t server_port(const struct server *server);

/*
 * Takes no new connection, ends event streams, closes WebSockets (1001), lets them and running requests
 * finish for up to grace_ms, then cuts the connections and frees all. Handlers that run even then are
 * waited for. A held request may be released later still.
 */
void server_close(struct server *server, unsigned grace_ms);
