/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The request's headers, copied out of the HTTP library's buffer: a handler may read them when that
 * buffer is already gone with its client.
 */
#pragma once

#include "base/err.h"
#include "http/arena.h"

#define HEADERS_MAX 100

struct MHD_Connection;

struct header {
	const char *name;
	const char *value;
};

struct headers {
	struct header *list;
	unsigned count;
};

/* The request line, where the library has it in its buffer; of the target, a copy. */
struct request_line {
	const char *method, *target, *version;
};

/*
 * Copies and checks them, each with headers_add(). On failure ret_headers has what came before the
 * offending one.
 *
 * The library parses in place, and is lenient: it cuts a line at a NUL byte, takes a bare LF for its
 * end and a line that begins with NUL for the last, and joins folded lines. So what it found must
 * lie end to end, with CR LF between, from the method to the body; anything else is refused.
 */
int headers_read(struct MHD_Connection *connection, const struct request_line *line,
	struct arena *arena, struct headers *ret_headers, struct err *err) must_check;

/*
 * Adds one: a name is a token, a value has no control characters, and none comes twice but those that
 * are lists, which are joined. Space after a value is dropped. The list must have room for HEADERS_MAX,
 * or for as many as are added.
 */
int headers_add(struct headers *headers, struct arena *arena, const struct header *header,
	struct err *err) must_check;

/* The value, or NULL; the name in any case. */
const char *headers_get(const struct headers *headers, const char *name);
