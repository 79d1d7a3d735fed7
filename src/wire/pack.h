/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers and byte strings in a frame's payload: little-endian, strings with a 32-bit length.
 *
 * Writing goes into a struct buf. Reading never leaves the payload: the first field that does not
 * fit sets `bad`, after which every read gives zeros and empty strings, so a parser reads all its
 * fields and asks once, with unpack_done(), whether the payload was exactly right.
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

void pack_u8(struct buf *out, uint8_t value);
void pack_u16(struct buf *out, uint16_t value);
void pack_u32(struct buf *out, uint32_t value);
void pack_u64(struct buf *out, uint64_t value);
void pack_bytes(struct buf *out, const void *data, size_t len);
void pack_str(struct buf *out, const char *s);

struct unpack {
	const uint8_t *at;
	const uint8_t *end;
	bool bad;
};

#define UNPACK_INIT(data, len) ((struct unpack){.at = (data), .end = (data) + (len)})

uint8_t unpack_u8(struct unpack *in);
uint16_t unpack_u16(struct unpack *in);
uint32_t unpack_u32(struct unpack *in);
uint64_t unpack_u64(struct unpack *in);

/* A view into the payload, valid as long as it is. */
const uint8_t *unpack_bytes(struct unpack *in, size_t *ret_len);

/* A fresh C string (never NULL); a NUL byte inside is bad. The caller frees it. */
char *unpack_str(struct unpack *in, size_t max);

/* Whether everything fitted and nothing is left over. */
bool unpack_done(const struct unpack *in);
