/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the route of a request. The table of routes is made into a tree of path segments once; a
 * fixed segment is preferred to a variable one, so "/sandboxes/ensure" wins over "/sandboxes/{id}".
 */
#pragma once

#include "base/err.h"
#include "http/server/route/route.h"
#include "http/server/route/target.h"

struct router;

enum method {
	METHOD_GET,
	METHOD_HEAD,
	METHOD_POST,
	METHOD_PUT,
	METHOD_PATCH,
	METHOD_DELETE,
	METHOD_COUNT,
};

/* The method of that name, or METHOD_COUNT for one that is not served. */
enum method method_parse(const char *name);

struct router_match {
	const struct route *route;
	unsigned param_count;
	struct target_param params[ROUTE_PARAMS];
	/* When the path exists but not with this method: "GET, HEAD, DELETE". */
	char allow[48];
};

/* A table that cannot be served (a bad pattern, a route given twice) is a bug and aborts. */
struct router *router_new(const struct route *routes, size_t count);
void router_free(struct router *router);

/* 0, or ERR_NOT_FOUND, or ERR_METHOD with only `allow` filled in. Names are put into the arena, values
 * are those of the target. METHOD_COUNT as the method finds nothing but tells what is allowed. */
int router_find(const struct router *router, enum method method, const struct target *target,
	struct arena *arena, struct router_match *ret_match, struct err *err) must_check;
