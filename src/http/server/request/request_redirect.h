/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request that goes on as another one of the same sender, for a door that speaks a protocol of its own (api/mcp).
 *
 * The door's handler reads what it was sent, names the request of the API that does it, and says how the answer is told
 * in its protocol. Everything between is as if the client had asked for that route: the gate judges the sender for its
 * scope, it waits in the classes of its route, and the account names its action, object and status. What the client's headers
 * say is meant for the door; the route sees none of them.
 */
#pragma once

#include "http/server/request/request.h"

/*
 * Tells the answer of the route in the protocol of the door: takes over the body, which is NULL for an empty answer
 * and the error document for a failure, and changes *status.
 */
typedef json_t *(*request_translate_fn)(void *arg, int *status, json_t *body);

/* The same for a door whose answers are more than JSON: answers the request in the place of a translation. */
typedef void (*request_retell_fn)(struct request *req, void *arg, int status, json_t *body);

/* Tells one event of a stream in the words of the door (http/server/request/event_filter.h). */
struct buf;
typedef void (*request_event_fn)(void *arg, const char *event, const json_t *data, struct buf *out);

struct request_redirection {
	const char *method;
	const char *target;   /* path and query, percent-encoded */
	const json_t *body;   /* NULL: none */
	route_handler handle; /* in the place of the route's own; NULL: that one */
	const char *accept; /* what the route is told of the answer that is wanted; NULL: nothing */
	request_translate_fn translate; /* this, or the next */
	request_retell_fn retell;
	request_event_fn
		retell_event;	 /* of a route that answers with events; NULL: there are none */
	const char *stream_type; /* what these become */
	bool passes_content;	 /* the content of a file goes out as it is */
	void *arg;		 /* must outlive the request, as what request_keep() keeps */
};

/*
 * The handler returns 0 after it, with no answer given. On failure (no such route) nothing was changed. A sender without the
 * scope of the route is refused as on that. Not for routes with a raw body, unless `handle` does without it, and not for those that answer with a stream,
 * but by `retell_event`.
 */
int request_redirect(struct request *req, const struct request_redirection *to, struct err *err)
	must_check;

/* What the handler that a redirection named is given with it. */
void *request_redirect_arg(const struct request *req);
