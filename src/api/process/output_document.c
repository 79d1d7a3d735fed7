/* SPDX-License-Identifier: Apache-2.0 */
#include "api/process/output_document.h"

#include "api/text.h"
#include "core/output/output_cursor.h"

#include <string.h>

#define READ_SIZE (64u << 10)

struct reading {
	struct buf streams[2]; /* of stdout and stderr */
	uint64_t next, left;
	bool is_cut; /* something in between is not kept */
	bool has_more;
};

bool output_document_is_wanted(const struct request *req)
{
	const char *accept = request_header(req, "Accept");

	return accept && strstr(accept, "application/json") && !strstr(accept, "text/event-stream");
}

/* Takes one piece. False if there is none at present, or no room for what may come. */
static bool read_piece(struct reading *reading, struct output_cursor *cursor, char *data)
{
	size_t size = reading->left < READ_SIZE ? (size_t)reading->left : READ_SIZE;
	struct output_piece piece;

	if (size == 0)
		return false;
	output_cursor_read(cursor, data, size, &piece);
	if (piece.kind == OUTPUT_NONE)
		return false;
	reading->next = piece.next;
	reading->is_cut |= piece.kind == OUTPUT_CUT;
	if (piece.kind == OUTPUT_STDOUT || piece.kind == OUTPUT_STDERR) {
		(void)!buf_append(&reading->streams[piece.kind == OUTPUT_STDERR], data,
			(size_t)(piece.next - piece.offset));
		reading->left -= piece.next - piece.offset;
	}
	return true;
}

static void read_log(struct reading *reading, struct output_log *log)
{
	auto_free char *data = mem_new(READ_SIZE);
	uint64_t end = output_log_end(log);
	struct output_cursor *cursor;

	if (reading->next > end)
		reading->next = end;
	cursor = output_cursor_new(log, reading->next);
	while (read_piece(reading, cursor, data))
		;
	output_cursor_free(cursor);
	reading->has_more = reading->next < output_log_end(log);
}

void output_document_answer(struct request *req, const struct output_events_spec *spec)
{
	size_t max = (size_t)spec->api->exec_output_max;
	struct reading reading = {{BUF_INIT(max), BUF_INIT(max)}, .next = spec->from, .left = max};
	bool has_ended = spec->record->ended_at_ms > 0;
	json_t *answer;

	if (spec->log)
		read_log(&reading, spec->log);
	answer = json_pack("{s:s, s:o, s:b, s:I, s:b}", "status", has_ended ? "exited" : "running",
		"exit_code", has_ended ? json_integer(spec->record->exit_code) : json_null(),
		"truncated", reading.is_cut, "next", (json_int_t)reading.next, "more",
		reading.has_more);
	for (size_t i = 0; i < array_len(reading.streams); i++) {
		struct buf *bytes = &reading.streams[i];

		text_set(answer, i == 0 ? "stdout" : "stderr",
			bytes->data ? bytes->data : (const uint8_t *)"", bytes->len);
		buf_fini(bytes);
	}
	request_answer_json(req, 200, answer);
}
