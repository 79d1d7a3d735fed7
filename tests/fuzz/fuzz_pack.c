/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers and strings in a payload. The first byte says how many of the next ones are orders, each
 * for one thing to be read; the rest is the payload they are read from.
 */
#include "wire/pack.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TEXT_MAX 100

/* Reads one thing and writes it again. */
static void copy_one(struct unpack *in, uint8_t order, struct buf *out)
{
	const uint8_t *bytes;
	size_t len;
	char *text;

	switch (order % 6) {
	case 0:
		pack_u8(out, unpack_u8(in));
		break;
	case 1:
		pack_u16(out, unpack_u16(in));
		break;
	case 2:
		pack_u32(out, unpack_u32(in));
		break;
	case 3:
		pack_u64(out, unpack_u64(in));
		break;
	case 4:
		bytes = unpack_bytes(in, &len);
		pack_bytes(out, bytes, len);
		break;
	case 5:
		text = unpack_str(in, TEXT_MAX);
		assert(strlen(text) <= TEXT_MAX);
		pack_str(out, text);
		free(text);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t orders = size > 0 ? data[0] % 16 : 0;
	struct buf out = BUF_INIT(1 << 20);
	const uint8_t *payload;
	struct unpack in;

	if (size < 1 + orders)
		return 0;
	payload = data + 1 + orders;
	in = UNPACK_INIT(payload, size - 1 - orders);
	for (size_t i = 0; i < orders; i++) {
		bool was_bad = in.bad;
		const uint8_t *before = in.at;

		copy_one(&in, data[1 + i], &out);
		assert(in.at >= before && in.at <= in.end);
		assert(!was_bad || (in.bad && in.at == before));
		/* Whatever was read is what was there, byte for byte. */
		if (!in.bad) {
			assert(out.len == (size_t)(in.at - payload));
			assert(out.len == 0 || memcmp(out.data, payload, out.len) == 0);
		}
	}
	assert(unpack_done(&in) == (!in.bad && in.at == in.end));
	buf_fini(&out);
	return 0;
}
