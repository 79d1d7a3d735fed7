/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An event stream on its way out, told event by event in the words of a door (http/server/request/request_redirect.h): text of
 * server-sent events goes in, and what the door makes of each comes out. On the connection's thread.
 */
#pragma once

#include "base/buf.h"

#include <jansson.h>
#include <stddef.h>
#include <sys/types.h>

struct event_filter;

/*
 * Appends what an event becomes, which may be nothing. A comment, which keeps a connection alive, is the event "" without
 * data, and the end of the stream is NULL.
 */
typedef void (*event_filter_fn)(void *arg, const char *event, const json_t *data, struct buf *out);

struct event_filter *event_filter_new(event_filter_fn tell, void *arg);
void event_filter_free(struct event_filter *filter);

/* -EMSGSIZE for an event that is larger than any of ours. */
int event_filter_feed(struct event_filter *filter, const char *data, size_t len) must_check;
void event_filter_end(struct event_filter *filter);

/* Takes up to size bytes of what came out: how many; -ENODATA after the end. */
ssize_t event_filter_take(struct event_filter *filter, char *data, size_t size) must_check;
