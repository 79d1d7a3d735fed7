/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kept log (core/output/output_log.h) as server-sent events, at the pace of a client: `stdout`, `stderr` and `cut`.
 * The id of an event is the offset one past its last byte, so each says where to go on. A character that is cut in two
 * by the end of what is there waits for its rest; when its stream is interrupted by the other one it goes out as base64.
 *
 * One thread at a time.
 */
#pragma once

#include "base/buf.h"
#include "core/output/output_cursor.h"

struct log_events {
	struct output_cursor *cursor; /* NULL: there is no log */
	uint64_t at;		      /* offset of the next byte to be put */
	uint64_t end;		      /* one past the last that may be put; UINT64_MAX: all */
	struct buf out;		      /* events, taken up to out_done */
	size_t out_done;
	uint8_t carry[4]; /* the beginning of a character */
	size_t carry_len;
	bool carry_is_stderr;
	int64_t carry_at_ms;
	/* Takes bytes of the stream for results, at the offset `at`; NULL: they are left out. */
	void (*result)(void *arg, const uint8_t *data, size_t len);
	void *arg;
};

/* Begins at an offset; the log may be NULL. */
void log_events_init(struct log_events *events, struct output_log *log, uint64_t from);
void log_events_fini(struct log_events *events);

/* Puts what comes next of the log into `out`; whether there was anything. */
bool log_events_put_next(struct log_events *events) must_check;

/* Nothing more comes: puts what waits for its rest. */
void log_events_put_rest(struct log_events *events);

/*
 * Fills in up to size bytes of events for a stream (http/stream.h), of which produce() puts more into `out` when it is
 * empty, until it says false.
 */
size_t log_events_take(
	struct log_events *events, char *data, size_t size, bool (*produce)(void *arg), void *arg);
