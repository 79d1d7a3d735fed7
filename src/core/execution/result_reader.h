/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads what a runner writes to the descriptor for results: lines, each a JSON object with one member, whose name
 * says what it is (runtime/python.py). The code that runs can write there too, so this is hostile input: a line that
 * is too long or makes no sense is left out and counted.
 *
 * In a context each line begins with the id of its execution and a space. Another's is left out and counted too: so
 * what a thread of an earlier execution writes late never becomes the result of a later one. Empty lines say nothing.
 */
#pragma once

#include "base/buf.h"

#include <jansson.h>
#include <stdbool.h>

#define RESULT_READER_LINE_MAX (6u << 20)

struct result_reader {
	struct buf line;
	bool is_skipping;   /* the rest of a line that is left out */
	unsigned bad;	    /* lines that were left out */
	const char *marker; /* what lines begin with, borrowed; NULL: nothing */
	/* A line and its length; the value is borrowed. */
	void (*take)(void *arg, const char *kind, json_t *value, size_t len);
	void *arg;
};

void result_reader_init(struct result_reader *reader,
	void (*take)(void *arg, const char *kind, json_t *value, size_t len), void *arg);
void result_reader_fini(struct result_reader *reader);

void result_reader_put(struct result_reader *reader, const uint8_t *data, size_t len);

/* Bytes are missing here: what was begun is left out, and so is the rest of a line that comes without its beginning. */
void result_reader_cut(struct result_reader *reader);
