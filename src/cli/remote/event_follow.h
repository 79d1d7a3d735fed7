/* SPDX-License-Identifier: Apache-2.0 */
/* Follows a stream of events that the daemon sends, until it ends. */
#pragma once

#include "cli/remote/client.h"
#include "cli/remote/event_reader.h"

#include <jansson.h>

/* Gives each event to visit. What visit returns, if not 0, ends it. */
int event_follow(struct client *client, event_fn visit, void *arg, struct err *err) must_check;

/* How an event becomes a line for people, without its end; data is the event's, and may be changed. */
typedef void (*event_line_fn)(struct buf *line, const struct event *event, json_t *data);

/* Writes each event to standard output as a line: as JSON with its name, or as line_of says. */
int event_follow_print(struct client *client, bool as_json, event_line_fn line_of, struct err *err)
	must_check;
