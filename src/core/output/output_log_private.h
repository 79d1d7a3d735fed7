/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a log shows its cursors: its files, and how far they go at this moment. And what the budget of its sandbox
 * (core/output/output_budget.h) knows of it and does to it, on the appender's thread.
 */
#pragma once

#include "base/err.h"
#include "base/mem.h"
#include "core/output/output_segment.h"

struct output_log;

/* How things were at one moment. */
struct output_view {
	uint64_t size, open, open_offset; /* of the segment */
	int open_stream;
	size_t open_header;
	int64_t open_at_ms;
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

uint32_t output_log_process(const struct output_log *log);
int output_log_dir(const struct output_log *log); /* borrowed */

/* What its files take on disk, in blocks. */
uint64_t output_log_used(const struct output_log *log);

/* Removes the oldest file: of the tail, else of the head, else the last, if that may go too. */
bool output_log_can_shorten(const struct output_log *log, bool last_too);
void output_log_shorten(struct output_log *log);

/* Its files were removed: it takes nothing more. On any thread. */
void output_log_end_for_good(struct output_log *log);

/*
 * Removes all that is kept of a process whose log is not open, but for a file without bytes, whose name says how
 * much there was. What is left on disk, in blocks.
 */
uint64_t output_log_clear(int dir_fd, uint32_t process);
