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

/*
 * Copies and checks them: names are tokens, values have no control characters, and none comes twice
 * but those that are lists, which are joined. Space around a value is dropped. On failure ret_headers has
 * what came before the offending one.
 */
int headers_read(struct MHD_Connection *connection, struct arena *arena,
	struct headers *ret_headers, struct err *err) must_check;

/* The value, or NULL; the name in any case. */
const char *headers_get(const struct headers *headers, const char *name);
