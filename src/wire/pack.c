/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/pack.h"

#include <string.h>

static void put(struct buf *out, uint64_t value, size_t bytes)
{
	uint8_t raw[8];

	for (size_t i = 0; i < bytes; i++)
		raw[i] = (uint8_t)(value >> (8 * i));
	buf_append(out, raw, bytes);
}

void pack_u8(struct buf *out, uint8_t value)
{
	put(out, value, 1);
}

void pack_u16(struct buf *out, uint16_t value)
{
	put(out, value, 2);
}

void pack_u32(struct buf *out, uint32_t value)
{
	put(out, value, 4);
}

void pack_u64(struct buf *out, uint64_t value)
{
	put(out, value, 8);
}

void pack_bytes(struct buf *out, const void *data, size_t len)
{
	pack_u32(out, (uint32_t)len);
	buf_append(out, data, len);
}

void pack_str(struct buf *out, const char *s)
{
	pack_bytes(out, s, strlen(s));
}

static uint64_t get(struct unpack *in, size_t bytes)
{
	uint64_t value = 0;

	if (in->bad || (size_t)(in->end - in->at) < bytes) {
		in->bad = true;
		return 0;
	}
	for (size_t i = 0; i < bytes; i++)
		value |= (uint64_t)in->at[i] << (8 * i);
	in->at += bytes;
	return value;
}

uint8_t unpack_u8(struct unpack *in)
{
	return (uint8_t)get(in, 1);
}

uint16_t unpack_u16(struct unpack *in)
{
	return (uint16_t)get(in, 2);
}

uint32_t unpack_u32(struct unpack *in)
{
	return (uint32_t)get(in, 4);
}

uint64_t unpack_u64(struct unpack *in)
{
	return get(in, 8);
}

const uint8_t *unpack_bytes(struct unpack *in, size_t *ret_len)
{
	size_t len = unpack_u32(in);
	const uint8_t *data = in->at;

	if (in->bad || (size_t)(in->end - in->at) < len) {
		in->bad = true;
		*ret_len = 0;
		return in->end;
	}
	in->at += len;
	*ret_len = len;
	return data;
}

char *unpack_str(struct unpack *in, size_t max)
{
	size_t len;
	const uint8_t *data = unpack_bytes(in, &len);
	char *s;

	if (len > max || memchr(data, 0, len)) {
		in->bad = true;
		len = 0;
	}
	s = mem_new(len + 1);
	memcpy(s, data, len);
	return s;
}

bool unpack_done(const struct unpack *in)
{
	return !in->bad && in->at == in->end;
}
