/* SPDX-License-Identifier: Apache-2.0 */
#include "api/log_events.h"

#include "api/sse.h"

#include <assert.h>
#include <string.h>

#define PIECE_MAX (32u * 1024)
#define EVENT_MAX (PIECE_MAX * 6 + 4096)

void log_events_init(struct log_events *events, struct output_log *log, uint64_t from)
{
	*events = (struct log_events){.cursor = log ? output_cursor_new(log, from) : NULL,
		.at = from,
		.end = UINT64_MAX,
		.out = BUF_INIT(EVENT_MAX)};
}

void log_events_fini(struct log_events *events)
{
	output_cursor_free(events->cursor);
	buf_fini(&events->out);
}

void log_events_put_rest(struct log_events *events)
{
	if (events->carry_len == 0)
		return;
	events->at += sse_put_output(&events->out,
		&(struct sse_run){events->carry_is_stderr, events->at, events->carry_at_ms},
		events->carry, events->carry_len, false);
	events->carry_len = 0;
}

static void put_cut(struct log_events *events, const struct output_piece *piece)
{
	json_t *data = json_pack(
		"{s:I, s:I}", "from", (json_int_t)piece->offset, "to", (json_int_t)piece->next);

	log_events_put_rest(events);
	sse_put_event(&events->out, piece->next, "cut", data);
	json_decref(data);
	events->at = piece->next;
}

/* data has room for the carry before the piece's len bytes. */
static void put_piece(
	struct log_events *events, const struct output_piece *piece, uint8_t *data, size_t len)
{
	bool is_stderr = piece->kind == OUTPUT_STDERR;
	size_t carried, done;

	if (events->carry_is_stderr != is_stderr)
		log_events_put_rest(events);
	carried = events->carry_len;
	memcpy(data - carried, events->carry, carried);
	done = sse_put_output(&events->out, &(struct sse_run){is_stderr, events->at, piece->at_ms},
		data - carried, carried + len, !piece->is_run_end);
	events->at += done;
	events->carry_len = carried + len - done;
	assert(events->carry_len <= sizeof(events->carry));
	events->carry_is_stderr = is_stderr;
	events->carry_at_ms = piece->at_ms;
	memcpy(events->carry, data + len - events->carry_len, events->carry_len);
}

/* Results are no output: they have a reader of their own, or none. */
static void put_result(
	struct log_events *events, const struct output_piece *piece, const uint8_t *data)
{
	log_events_put_rest(events);
	if (events->result)
		events->result(events->arg, data, (size_t)(piece->next - piece->offset));
	events->at = piece->next;
}

bool log_events_put_next(struct log_events *events)
{
	uint8_t data[sizeof(events->carry) + PIECE_MAX] not_cleared;
	struct output_piece piece = {.kind = OUTPUT_NONE};

	uint64_t at = events->at + events->carry_len;
	size_t most = events->end - at < PIECE_MAX ? (size_t)(events->end - at) : PIECE_MAX;

	if (events->cursor && at < events->end)
		output_cursor_read(events->cursor, data + sizeof(events->carry), most, &piece);
	if (piece.kind == OUTPUT_NONE)
		return false;
	if (piece.kind == OUTPUT_CUT)
		put_cut(events, &piece);
	else if (piece.kind == OUTPUT_RESULT)
		put_result(events, &piece, data + sizeof(events->carry));
	else
		put_piece(events, &piece, data + sizeof(events->carry),
			(size_t)(piece.next - piece.offset));
	return true;
}

size_t log_events_take(
	struct log_events *events, char *data, size_t size, bool (*produce)(void *arg), void *arg)
{
	size_t n = 0;

	while (n < size) {
		size_t left = events->out.len - events->out_done;
		size_t part = left < size - n ? left : size - n;

		if (left > 0) {
			memcpy(data + n, events->out.data + events->out_done, part);
			events->out_done += part;
			n += part;
			continue;
		}
		events->out.len = events->out_done = 0;
		if (!produce(arg)) {
			buf_fini(&events->out); /* a quiet stream costs no memory */
			break;
		}
	}
	return n;
}
