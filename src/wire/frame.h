/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames on the byte stream between sandlotd and an agent: a 12-byte header, then a payload.
 *
 * Both sides treat what they read as hostile. frame_next() only looks at bytes that have arrived,
 * and refuses a length above the caller's maximum before it allocates anything.
 */
#pragma once

#include "base/buf.h"

#include <stdint.h>

#define FRAME_HEADER_LEN 12

struct frame {
	uint16_t kind; /* enum agent_msg */
	uint32_t id;   /* which process or request; 0 where there is none */
	uint32_t len;  /* of the payload */
	const uint8_t *payload;
};

/* Appends the header for a payload of len bytes that the caller appends next. */
void frame_put_header(struct buf *out, uint16_t kind, uint32_t id, uint32_t len);

/* Appends a whole frame. */
void frame_put(struct buf *out, uint16_t kind, uint32_t id, const void *payload, size_t len);

/*
 * Looks at the first frame of data. Returns its length with the header when it is complete; 0 when
 * more bytes are needed; -EPROTO when this can never become a frame of at most max_payload bytes.
 */
int frame_next(const uint8_t *data, size_t len, uint32_t max_payload, struct frame *ret_frame)
	must_check;
