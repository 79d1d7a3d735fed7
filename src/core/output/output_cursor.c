/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cursor has an offset, and a place in one file: the record that it reads, or the last one before its
 * offset. To go on it looks at the log (under its lock) and then reads (without): what it saw is valid for
 * ever, because files only grow, but for the header of the open record, which is therefore taken from what it
 * saw and not from the file.
 */
#include "core/output/output_cursor.h"

#include "base/fd.h"
#include "core/output/output_log_private.h"
#include "core/output/output_record.h"

#include <assert.h>
#include <string.h>

#define LINE_SEARCH_BYTES 4096

struct output_cursor {
	struct output_log *log;
	uint64_t offset; /* of the next byte */

	struct output_segment *segment; /* NULL: to be found */
	int fd;				/* of the segment */
	bool is_broken;			/* nothing more can be read from it */
	uint64_t at, at_offset;		/* the record: its position, and offset of its first byte */
	struct output_record record;	/* it, if is_known */
	bool is_known;
	uint64_t size;	  /* of the file, as it was seen last */
	uint64_t settled; /* headers in the window before this position are final */
	struct output_window window;
};

struct output_cursor *output_cursor_new(struct output_log *log, uint64_t from)
{
	struct output_cursor *cursor = mem_new(sizeof(*cursor));
	uint64_t end = output_log_end(log);

	cursor->log = output_log_ref(log);
	cursor->offset = from < end ? from : end;
	cursor->fd = -1;
	return cursor;
}

/* Lets go of the file; where to go on is found by the offset. */
static void leave_segment(struct output_cursor *cursor)
{
	if (cursor->segment)
		output_segment_unref(take_ptr(&cursor->segment));
	fd_close(take_fd(&cursor->fd));
}

void output_cursor_free(struct output_cursor *cursor)
{
	if (!cursor)
		return;
	leave_segment(cursor);
	output_log_unref(cursor->log);
	free(cursor);
}

/*
 * Begins with a file that was just found. At its start, but for an offset in the record that is open: whoever
 * comes back to follow a command is there, and need not walk. A file that went away meanwhile is a cut.
 */
static void enter_segment(struct output_cursor *cursor, const struct output_view *view)
{
	bool is_in_open = view->open < view->size && cursor->offset >= view->open_offset;

	cursor->at = is_in_open ? view->open : OUTPUT_MARK_LEN;
	cursor->at_offset = is_in_open ? view->open_offset : cursor->segment->first;
	cursor->is_known = false;
	cursor->window.len = 0;
	cursor->settled = 0;
	cursor->fd = output_log_open_segment(cursor->log, cursor->segment);
	cursor->is_broken = cursor->fd < 0;
}

/* Learns what the record is; false if there is none yet, or never. */
static bool read_record(struct output_cursor *cursor, const struct output_view *view)
{
	struct output_record record;

	if (cursor->is_known)
		return true;
	if (cursor->at == view->open && view->open < view->size) {
		cursor->record = (struct output_record){
			.stream = view->open_stream,
			.is_open = true,
			.header = view->open_header,
			.at_ms = view->open_at_ms,
			.len = view->size - view->open - view->open_header,
		};
		return true;
	}
	if (cursor->at >= cursor->settled)
		cursor->window.len = 0;
	if (cursor->window.len == 0)
		cursor->settled = view->open;
	if (!output_record_read(&cursor->window, cursor->fd, view->size, cursor->at, &record))
		return false;
	/* Files that overlap are not ours; still no byte comes twice. */
	if (cursor->at_offset >= view->until)
		return false;
	if (record.len > view->until - cursor->at_offset)
		record.len = view->until - cursor->at_offset;
	cursor->record = record;
	cursor->is_known = true;
	return true;
}

/* Goes on to the record that has the byte at the offset; false if this file has none. */
static bool find_record(struct output_cursor *cursor, const struct output_view *view)
{
	while (!cursor->is_broken && read_record(cursor, view)) {
		if (cursor->offset - cursor->at_offset < cursor->record.len)
			return true;
		if (!cursor->is_known)
			return false; /* all that there is of the open one */
		cursor->at += cursor->record.header + cursor->record.len;
		cursor->at_offset += cursor->record.len;
		cursor->is_known = false;
	}
	return false;
}

/* Finds out what is at the offset, and moves there: bytes, nothing, or a cut until *ret_until. */
static enum output_kind settle(struct output_cursor *cursor, uint64_t *ret_until)
{
	static const enum output_kind kinds[] = {
		[1] = OUTPUT_STDOUT, [2] = OUTPUT_STDERR, [3] = OUTPUT_RESULT};
	struct output_view view;

	for (;;) {
		bool is_new = !cursor->segment;

		output_log_look(cursor->log, cursor->offset, &cursor->segment, &view);
		*ret_until = view.until;
		cursor->size = view.size;
		if (!cursor->segment)
			return cursor->offset < view.until ? OUTPUT_CUT : OUTPUT_NONE;
		if (is_new)
			enter_segment(cursor, &view);
		if (find_record(cursor, &view))
			return kinds[cursor->record.stream];
		if (cursor->offset < view.until)
			return OUTPUT_CUT;
		if (view.is_last)
			return OUTPUT_NONE;
		leave_segment(cursor); /* for a later one: so this ends */
	}
}

void output_cursor_read(
	struct output_cursor *cursor, void *data, size_t size, struct output_piece *ret_piece)
{
	uint64_t offset = cursor->offset, until, in_record;
	enum output_kind kind, after;
	size_t n = 0;

	assert(size > 0);
	do {
		kind = settle(cursor, &until);
		*ret_piece = (struct output_piece){.kind = kind, .offset = offset, .next = offset};
		if (kind == OUTPUT_NONE)
			return;
		if (kind == OUTPUT_CUT) {
			leave_segment(cursor);
			ret_piece->next = cursor->offset = until;
			ret_piece->is_run_end = true;
			return;
		}
		in_record = offset - cursor->at_offset;
		if (size > cursor->record.len - in_record)
			size = (size_t)(cursor->record.len - in_record);
		n = output_record_fetch(&cursor->window, cursor->fd, cursor->size,
			cursor->at + cursor->record.header + in_record, data, size);
		cursor->is_broken = n == 0;
	} while (n == 0);
	ret_piece->next = cursor->offset = offset + n;
	ret_piece->at_ms = cursor->record.at_ms;
	if (in_record + n < cursor->record.len)
		return;
	after = settle(cursor, &until);
	ret_piece->is_run_end = after != OUTPUT_NONE && after != kind;
}

uint64_t output_cursor_tail(struct output_log *log, uint64_t bytes)
{
	uint64_t end = output_log_end(log), from = end > bytes ? end - bytes : 0;
	struct output_cursor *cursor;
	struct output_piece piece;
	uint8_t data[LINE_SEARCH_BYTES];
	uint8_t *newline;
	size_t len, at;

	if (from == 0 || bytes == 0)
		return from;
	/* One byte earlier: a line that begins right there is seen by the newline before it. */
	cursor = output_cursor_new(log, from - 1);
	len = bytes / 4 < sizeof(data) - 4 ? (size_t)bytes / 4 + 4 : sizeof(data);
	output_cursor_read(cursor, data, len, &piece);
	output_cursor_free(cursor);
	if (piece.kind == OUTPUT_CUT)
		return piece.next < from ? from : piece.next;
	len = (size_t)(piece.next - piece.offset);
	newline = memchr(data, '\n', len);
	if (newline)
		return piece.offset + (uint64_t)(newline - data) + 1;
	for (at = 1; at < len && at <= 3 && (data[at] & 0xc0) == 0x80;)
		at++;
	return piece.offset + at;
}
