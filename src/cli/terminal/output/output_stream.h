/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events of a command's output, written where they belong: stdout to one descriptor, stderr to
 * another, byte for byte.
 *
 * Remembers where it is, so that a stream that was cut off can be asked for again from there: an
 * event counts as seen when all of its bytes are written.
 */
#pragma once

#include "base/err.h"
#include "cli/remote/event_reader.h"

#include <jansson.h>

#define OUTPUT_STREAM_ENDED 1 /* what output_stream_feed returns after the last event */

struct output_stream {
	struct event_reader reader;
	struct buf decoded;
	struct line_writer *lines; /* NULL: bytes go out as they are */
	int out_fd;
	int err_fd;
	bool has_next;
	uint64_t next;	/* the id of the last event: where to go on */
	json_t *result; /* the data of the last event (`exit`, `end`), once it came */
	struct err *err;
	/* Takes an event of another kind, or one of those with another meaning; NULL: there are none. */
	bool (*take)(void *arg, const char *name, const json_t *data);
	void *arg;
};

void output_stream_init(struct output_stream *stream, int out_fd, int err_fd);
void output_stream_fini(struct output_stream *stream);

/* Forgets half an event, before the bytes of another connection are fed. */
void output_stream_restart(struct output_stream *stream);

/* 0 to go on, OUTPUT_STREAM_ENDED, or -errno. */
int output_stream_feed(struct output_stream *stream, const char *bytes, size_t len, struct err *err)
	must_check;
