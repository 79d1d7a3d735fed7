/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/frame.h"

#include "wire/pack.h"

#include <errno.h>

/* Header: u32 length of the payload, u16 kind, u16 zero, u32 id. */
void frame_put_header(struct buf *out, uint16_t kind, uint32_t id, uint32_t len)
{
	pack_u32(out, len);
	pack_u16(out, kind);
	pack_u16(out, 0);
	pack_u32(out, id);
}

void frame_put(struct buf *out, uint16_t kind, uint32_t id, const void *payload, size_t len)
{
	frame_put_header(out, kind, id, (uint32_t)len);
	buf_append(out, payload, len);
}

int frame_next(const uint8_t *data, size_t len, uint32_t max_payload, struct frame *ret_frame)
{
	struct unpack in = UNPACK_INIT(data, len < FRAME_HEADER_LEN ? len : FRAME_HEADER_LEN);
	uint32_t payload_len;
	uint16_t kind, zero;
	uint32_t id;

	if (len < FRAME_HEADER_LEN)
		return 0;
	payload_len = unpack_u32(&in);
	kind = unpack_u16(&in);
	zero = unpack_u16(&in);
	id = unpack_u32(&in);
	if (zero != 0 || payload_len > max_payload)
		return -EPROTO;
	if (len - FRAME_HEADER_LEN < payload_len)
		return 0;
	*ret_frame = (struct frame){
		.kind = kind, .id = id, .len = payload_len, .payload = data + FRAME_HEADER_LEN};
	return (int)(FRAME_HEADER_LEN + payload_len);
}
