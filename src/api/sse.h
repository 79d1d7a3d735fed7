/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Server-sent events, as text into a buffer.
 *
 * Output is most of what is streamed, so it does not pass through a JSON tree: it is checked, escaped and
 * copied in one go. It comes as {"data": text} where it is UTF-8 and as {"data_base64": ...} where it is not,
 * or where it is mostly control characters, which take six bytes each as text.
 *
 * An event is put whole or not at all. One that does not fit sets out->failed.
 */
#pragma once

#include "base/buf.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define SSE_OUTPUT_MAX (64u << 10) /* bytes of output in one event */

/*
 * The most that len bytes of output take as events: two for each byte, six for each fourth, and some for each
 * event.
 */
#define SSE_OUTPUT_ROOM(len) ((len)*3 + ((len) / (SSE_OUTPUT_MAX - 3) + 1) * 512)

/*
 * Puts bytes of one run of a stream, which begin at an offset, as events with the offset behind their last
 * byte as their id. Returns how many bytes that were: all of them, unless out is full, but for a character at
 * the end whose rest is not there. That is left out if may_continue, and if the bytes before it are text.
 */
struct sse_run {
	bool is_stderr;
	uint64_t offset;
	int64_t at_ms; /* when it came, told as `at`; 0: unknown */
};
size_t sse_put_output(struct buf *out, const struct sse_run *run, const uint8_t *data, size_t len,
	bool may_continue);

void sse_put_event(struct buf *out, uint64_t id, const char *event, const json_t *data);
