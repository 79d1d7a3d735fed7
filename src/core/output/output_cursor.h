/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reader of kept output (core/output/output_log.h), from any offset on. One thread at a time.
 *
 * It gives pieces in the order of their offsets, each beginning where the one before ended. One whose file is
 * removed under it finishes that file; what was removed behind it comes as a cut.
 */
#pragma once

#include "core/output/output_log.h"

struct output_cursor;

enum output_kind {
	OUTPUT_NONE,   /* nothing more at present */
	OUTPUT_STDOUT, /* a run of bytes of one stream */
	OUTPUT_STDERR,
	OUTPUT_RESULT, /* the same of what it wrote apart from its output (wire/agent.h) */
	OUTPUT_CUT,    /* bytes from `offset` to `next` are not kept; another cut may follow */
};

struct output_piece {
	enum output_kind kind;
	uint64_t offset; /* of its first byte */
	uint64_t next;	 /* one past its last */
	int64_t at_ms;	 /* when it came, of bytes; 0: unknown */
	/*
	 * What follows is there already, and is of another stream, or cut. At the end of the log it is false:
	 * more of the same may come.
	 */
	bool is_run_end;
};

/* A reader that begins at `from`, at most output_log_end(). Holds a reference of the log. */
struct output_cursor *output_cursor_new(struct output_log *log, uint64_t from);
void output_cursor_free(struct output_cursor *cursor);

/*
 * Reads the next piece, up to size (not 0) bytes of one run, into data; it may be less than the run has.
 * Never blocks but for the disk.
 */
void output_cursor_read(
	struct output_cursor *cursor, void *data, size_t size, struct output_piece *ret_piece);

/*
 * An offset from which at most `bytes` are left to read: where a line begins, if one does soon, and never
 * inside a character. For scrollback.
 */
uint64_t output_cursor_tail(struct output_log *log, uint64_t bytes);
