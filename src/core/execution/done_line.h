/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the line with which an interpreter says that it is done, in all that comes on the descriptor for results:
 *
 *     <id of the execution> {"done":{"cpu_us":12,"memory":9000000,"outputs":false}}
 *
 * An interpreter for one execution alone says it without id.
 *
 * Everything else is passed over without a look, at the speed of memchr. Hostile input: a line that is longer than such
 * a line can be, or that makes no sense, is not it.
 */
#pragma once

#include "base/mem.h"
#include "model/id.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DONE_LINE_MAX 256

struct done_line {
	/* "": its lines have none. A copy: lines still come when the execution is gone. */
	char id[ID_LEN + 1];
	char text[DONE_LINE_MAX];
	size_t len;
	bool is_long; /* the rest of a line that is too long */
	/* What it said, once it was found. */
	uint64_t cpu_us, memory_bytes;
	bool has_outputs; /* files of the directory for outputs changed */
};

void done_line_init(struct done_line *line, const char *id);

/* Takes bytes; true if they complete the line. What follows it is not looked at. */
bool done_line_put(struct done_line *line, const uint8_t *data, size_t len) must_check;
