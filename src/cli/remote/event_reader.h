/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads server-sent events out of bytes that arrive in any pieces (the WHATWG event stream format).
 *
 * A line and an event's data may each have EVENT_READER_MAX bytes; a server that sends more is not
 * believed any further.
 */
#pragma once

#include "base/buf.h"

#define EVENT_READER_MAX (8u * 1024 * 1024) /* an image in base64 is the largest */

/* One whole event. The strings live until the function returns; data may hold NUL bytes. */
struct event {
	const char *name; /* "message" when the server gave none */
	const char *id;	  /* the last id seen; "" for none */
	const char *data;
	size_t data_len;
};

/* Returns 0 to go on, anything else ends the feeding with that value. */
typedef int (*event_fn)(const struct event *event, void *arg);

struct event_reader {
	struct buf line;
	struct buf data;
	char name[64];
	char id[64];
	bool has_data;
	bool skip_newline; /* the last byte was CR: a LF belongs to it */
	bool began;	   /* past the place where a byte order mark may stand */
};

void event_reader_init(struct event_reader *reader);
void event_reader_fini(struct event_reader *reader);

/* 0, what visit returned, or -EMSGSIZE. An event that the stream's end cuts off is dropped. */
int event_reader_feed(struct event_reader *reader, const char *bytes, size_t len, event_fn visit,
	void *arg) must_check;
