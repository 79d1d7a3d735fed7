/* SPDX-License-Identifier: Apache-2.0 */
/* What the server is told of a route, and what of a request decides about it. */
#pragma once

#include "base/err.h"

struct request;

#define ROUTE_PARAMS	 4		/* variable parts of a path */
#define REQUEST_BODY_MAX (1024u * 1024) /* of a JSON body */

#define ROUTE_OPEN     1u /* no token needed */
#define ROUTE_RAW_BODY 2u /* the body is not JSON; the handler takes it */
#define ROUTE_BODY     4u /* has a JSON body (on other routes any body but {} is 400) */
#define ROUTE_WEBSOCKET                                                                            \
	8u /* a GET that may be turned into a WebSocket (http/websocket/websocket.h) */
#define ROUTE_TICKET	 16u /* ?ticket= does in the place of a token */
#define ROUTE_WAITS	 32u /* the handler waits for what the path names first, perhaps for long */
#define ROUTE_FREE_QUERY 64u /* the query is none of ours: any parameter is let through */
#define ROUTE_ANY_BODY	 128u /* with ROUTE_BODY: the body is bytes of any type */
#define ROUTE_MEMBER	 256u /* ?member= names a member of what the path names */
#define ROUTE_E2B                                                                                  \
	512u /* for clients of E2B: the key alone counts, errors are {"code": <status>, "message"} */
#define ROUTE_REPEATED_QUERY 1024u /* a parameter may be given more than once */

typedef int (*route_handler)(struct request *req, void *context, struct err *err);

/* What the server needs to know of a route; src/api/routes.c has the table. A fixed segment wins over
 * a variable one. A last segment {path*} stands for all that follow. */
struct route {
	const char *method; /* GET also serves HEAD unless a HEAD route exists */
	const char *path;   /* "/v1/sandboxes/{id}/exec" */
	route_handler handle;
	unsigned flags;
	unsigned scope;	    /* what `admit` asks of the principal; opaque here */
	const void *doc;    /* what api/openapi.c says about it; opaque here */
	const char *action; /* what it does, by a name that stays; NULL if it only reads */
};

/* What a request shows of itself: one of these. */
struct credential {
	const char *token;
	const char *ticket;
	const char *session; /* the cookie of a browser, which no other page made it send */
	const char *path;    /* as it was sent, without the query: what a ticket is bound to */
};
