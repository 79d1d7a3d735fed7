/* SPDX-License-Identifier: Apache-2.0 */
/* What a log shows its cursors: its files, and how far they go at this moment. */
#pragma once

#include "core/output_log.h"
#include "core/output_segment.h"

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

/* Opens a segment for reading. */
int output_log_open_segment(struct output_log *log, const struct output_segment *segment)
	must_check;
