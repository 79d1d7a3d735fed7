/* SPDX-License-Identifier: Apache-2.0 */
/* What a server is opened with. */
#pragma once

#include "base/err.h"
#include "http/server/route/route.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct listener;
struct principal;
struct request;

/* Strings are copied or not needed later; routes and context must outlive the server. */
struct server_config {
	const char *bind; /* "127.0.0.1:9090", "[::1]:9090"; port 0 picks one */
	const struct listener
		*listener;	      /* or one that was opened before; the server takes it over */
	const struct listener *local; /* a second one, of a path, taken over too; NULL: none */
	const struct route *routes;
	size_t route_count;
	const struct route *pages; /* answers every GET of a path that no route has; NULL: 404 */
	void *context;		   /* passed to every handler and to admit */

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

	/*
	 * Told of every request of a route whose answer begins to go out, with how long that took; on the connection's
	 * thread, so it must not block. If there is one, each request is in a trace: its sender's, or its own.
	 */
	void (*traced)(void *context, const struct request *req, uint64_t took_us);

	/* Whether a route has a query parameter of that name; any other is refused. NULL: all do. */
	bool (*takes_query)(const struct route *route, const char *name);

	/* Host values that are served besides the bound address, localhost and 127.0.0.1 with its
	 * port; NULL-terminated, may be NULL. */
	const char *const *hosts;

	uint64_t max_memory;  /* that lies there for clients (http/owner_memory.h); 0: 512 MiB */
	unsigned max_workers; /* 0: 64 */
	/* A quarter is for strangers: connections without an authorized request so far. No owner has more than
	 * another quarter. 0: 4096 */
	unsigned max_connections;
};
