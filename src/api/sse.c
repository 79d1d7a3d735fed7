/* SPDX-License-Identifier: Apache-2.0 */
#include "api/sse.h"

#include "api/text.h"
#include "base/clock.h"
#include "base/exact_digits.h"
#include "base/format.h"

#include <endian.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

/* Long escapes in bytes that are still text. Colourful terminals have many; a stream of zeros is none. */
#define ESCAPES_MAX(len) (64 + (len) / 4)

/* Control characters in a JSON string; the short ones have two bytes, the others six. */
static const char controls[32][8] = {"\\u0000", "\\u0001", "\\u0002", "\\u0003", "\\u0004",
	"\\u0005", "\\u0006", "\\u0007", "\\b", "\\t", "\\n", "\\u000b", "\\f", "\\r", "\\u000e",
	"\\u000f", "\\u0010", "\\u0011", "\\u0012", "\\u0013", "\\u0014", "\\u0015", "\\u0016",
	"\\u0017", "\\u0018", "\\u0019", "\\u001a", "\\u001b", "\\u001c", "\\u001d", "\\u001e",
	"\\u001f"};

/* Where it stands: what is read, and what was written of it. */
struct encoding {
	const uint8_t *from, *end;
	uint8_t *to;
	size_t escapes_left; /* long ones */
};

static bool is_plain(uint8_t byte)
{
	return byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
}

/*
 * Copies bytes up to the first that is not plain, sixteen at a time: compilers make vector instructions of
 * it. As signed numbers, bytes of longer characters are below 0x20 too.
 */
static void copy_plain(struct encoding *encoding)
{
	typedef int8_t block __attribute__((vector_size(16)));

	while (encoding->end - encoding->from >= (ptrdiff_t)sizeof(block)) {
		block bytes, marks;
		uint64_t halves[2];

		memcpy(&bytes, encoding->from, sizeof(bytes));
		memcpy(encoding->to, &bytes, sizeof(bytes));
		marks = (bytes < 0x20) | (bytes == '"') | (bytes == '\\');
		memcpy(halves, &marks, sizeof(halves));
		if (halves[0] | halves[1]) {
			int at = halves[0] ? __builtin_ctzll(le64toh(halves[0])) / 8
					   : __builtin_ctzll(le64toh(halves[1])) / 8 + 8;

			encoding->from += at;
			encoding->to += at;
			return;
		}
		encoding->from += sizeof(bytes);
		encoding->to += sizeof(bytes);
	}
	while (encoding->from < encoding->end && is_plain(*encoding->from))
		*encoding->to++ = *encoding->from++;
}

/* Copies one character of more than a byte; false if it is none. */
static inline bool put_wide(struct encoding *encoding)
{
	size_t left = (size_t)(encoding->end - encoding->from);
	size_t len = text_character(encoding->from, left);

	/* Always four, where there are, is faster than just those that count. */
	if (left >= 4)
		memcpy(encoding->to, encoding->from, 4);
	else
		memcpy(encoding->to, encoding->from, len);
	encoding->from += len;
	encoding->to += len;
	return len > 0;
}

/* Writes one character of one byte; false if it is one escape too many. */
static inline bool put_narrow(struct encoding *encoding)
{
	uint8_t byte = *encoding->from++;

	if (byte >= 0x20) {
		if (!is_plain(byte))
			*encoding->to++ = '\\';
		*encoding->to++ = byte;
		return true;
	}
	memcpy(encoding->to, controls[byte], sizeof(controls[byte]));
	if (!controls[byte][2]) {
		encoding->to += 2;
		return true;
	}
	encoding->to += 6;
	return encoding->escapes_left-- > 0;
}

/* Whether blocks are worth it here. A single plain byte between others, as between words, is not. */
static inline bool is_plain_ahead(const struct encoding *encoding)
{
	return is_plain(encoding->from[0]) &&
	       (encoding->end - encoding->from < 2 || is_plain(encoding->from[1]));
}

/* Appends bytes as the inside of a JSON string, for which there is room; false if they are no text. */
static bool put_text(struct buf *out, const uint8_t *data, size_t len)
{
	struct encoding encoding = {
		.from = data,
		.end = data + len,
		.to = out->data + out->len,
		.escapes_left = ESCAPES_MAX(len),
	};

	while (encoding.from < encoding.end) {
		copy_plain(&encoding);
		while (encoding.from < encoding.end) {
			bool is_wide = *encoding.from >= 0x80;

			if (!is_wide && is_plain_ahead(&encoding))
				break;
			if (!(is_wide ? put_wide(&encoding) : put_narrow(&encoding)))
				return false;
		}
	}
	out->len = (size_t)(encoding.to - out->data);
	return true;
}

static void put_head(struct buf *out, bool is_stderr, uint64_t id, const char *key)
{
	out->len += (size_t)sprintf((char *)out->data + out->len,
		"id: %" PRIu64 "\nevent: %s\ndata: {\"%s\":\"", id, is_stderr ? "stderr" : "stdout",
		key);
}

static void put_tail(struct buf *out, int64_t at_ms)
{
	char at[CLOCK_TEXT_LEN] = "";

	if (at_ms > 0)
		clock_format(at_ms, at);
	out->len += (size_t)sprintf((char *)out->data + out->len, "\"%s%s%s}\n\n",
		at[0] ? ",\"at\":\"" : "", at, at[0] ? "\"" : "");
}

/* Puts one event, for which there is room; how many bytes it has. */
static size_t put_piece(struct buf *out, const struct sse_run *run, uint64_t offset,
	const uint8_t *data, size_t len, bool may_continue)
{
	size_t before = out->len, whole = may_continue ? len - format_unfinished(data, len) : len;

	if (whole == 0)
		return 0;
	put_head(out, run->is_stderr, offset + whole, "data");
	if (!put_text(out, data, whole)) {
		out->len = before;
		whole = len;
		put_head(out, run->is_stderr, offset + whole, "data_base64");
		out->len += (size_t)EVP_EncodeBlock(out->data + out->len, data, (int)len);
	}
	put_tail(out, run->at_ms);
	return whole;
}

/* The same where it may be too much: the room is only known when it is done. */
static size_t put_tightly(struct buf *out, const struct sse_run *run, uint64_t offset,
	const uint8_t *data, size_t len, bool may_continue)
{
	struct buf event = BUF_INIT(SSE_OUTPUT_ROOM(len));
	size_t n = 0;

	if (buf_reserve(&event, event.max) < 0)
		out->failed = true;
	else
		n = put_piece(&event, run, offset, data, len, may_continue);
	if (buf_append(out, event.data, event.len) < 0)
		n = 0;
	buf_fini(&event);
	return n;
}

size_t sse_put_output(struct buf *out, const struct sse_run *run, const uint8_t *data, size_t len,
	bool may_continue)
{
	size_t done = 0, n = 1;

	while (done < len && n > 0) {
		bool is_last = len - done <= SSE_OUTPUT_MAX;
		size_t part = is_last ? len - done : SSE_OUTPUT_MAX;
		bool fits = SSE_OUTPUT_ROOM(part) <= out->max - out->len;

		if (fits && buf_reserve(out, SSE_OUTPUT_ROOM(part)) < 0)
			break;
		n = (fits ? put_piece : put_tightly)(
			out, run, run->offset + done, data + done, part, !is_last || may_continue);
		done += n;
	}
	return done;
}

void sse_put_event(struct buf *out, uint64_t id, const char *event, const json_t *data)
{
	auto_free char *json =
		json_dumps(data, JSON_COMPACT | JSON_REAL_PRECISION(exact_digits(data)));

	if (!json)
		out->failed = true;
	else
		buf_printf(out, "id: %" PRIu64 "\nevent: %s\ndata: %s\n\n", id, event, json);
}
