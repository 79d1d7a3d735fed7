/* SPDX-License-Identifier: Apache-2.0 */
/* What a log shows its cursors: its files, and how far they go at this moment. */
#pragma once

#include "core/output_log.h"

#include <stdatomic.h>

#define OUTPUT_NAME_LEN 32 /* "4294967295-ffffffffffffffff" and its NUL */

/* One file. Counted: by the log while it is in its list, by each cursor that reads it. */
struct output_segment {
	atomic_int refs;
	uint64_t first; /* offset of its first byte */

	/* The appender's alone. */
	bool is_head;	/* it stays */
	uint64_t limit; /* of its size */
	uint64_t
		blocks; /* bytes it takes on disk, at least: of one that is used again, what it had */

	/* Under the log's lock. */
	uint64_t size; /* of the file, as far as it is valid */
	/*
	 * Position of the last record, whose header is not to be read yet, and offset of its first byte; equal to
	 * size when none is open; UINT64_MAX in a file of an earlier life, whose headers will not change.
	 */
	uint64_t open, open_offset;
	bool open_is_stderr;
};

/* How things were at one moment. */
struct output_view {
	uint64_t size, open, open_offset; /* of the segment */
	bool open_is_stderr;
	bool is_last;	/* no file follows it */
	uint64_t until; /* where the next file begins, or the end of the log */
};

/*
 * Looks at *segment; if it is NULL, at the one where offset is or would be, and sets it, with a reference. It
 * stays NULL if the log begins behind the offset; then the view says only until when.
 */
void output_log_look(struct output_log *log, uint64_t offset, struct output_segment **segment,
	struct output_view *ret_view);

void output_log_put_segment(struct output_segment *segment);

/* Opens a segment for reading. */
int output_log_open_segment(struct output_log *log, const struct output_segment *segment)
	must_check;
