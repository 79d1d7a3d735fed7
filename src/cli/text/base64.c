/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/text/base64.h"

#include <errno.h>
#include <string.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

#define NO_DIGIT 0xff

/* Made anew for each call: 64 stores against thousands of branches, and no table to check by eye.
 */
static void fill_values(uint8_t values[256])
{
	memset(values, NO_DIGIT, 256);
	for (uint8_t i = 0; i < 64; i++)
		values[(uint8_t)alphabet[i]] = i;
}

/* Decodes one group of four; the number of bytes, or -EINVAL. */
static int decode_group(const uint8_t values[256], const char *text, bool is_last, uint8_t out[3])
{
	int pad = text[3] != '=' ? 0 : text[2] != '=' ? 1 : 2;
	uint32_t bits = 0;

	if (pad > 0 && !is_last)
		return -EINVAL;
	for (int i = 0; i < 4; i++) {
		uint8_t value = i < 4 - pad ? values[(uint8_t)text[i]] : 0;

		if (value == NO_DIGIT)
			return -EINVAL;
		bits = bits << 6 | value;
	}
	out[0] = (uint8_t)(bits >> 16);
	out[1] = (uint8_t)(bits >> 8);
	out[2] = (uint8_t)bits;
	return 3 - pad;
}

int base64_decode(const char *text, size_t len, struct buf *out)
{
	size_t before = out->len;
	uint8_t values[256];
	int r;

	if (len % 4 != 0)
		return -EINVAL;
	r = buf_reserve(out, len / 4 * 3);
	if (r < 0)
		return r;
	fill_values(values);
	for (size_t i = 0; i < len; i += 4) {
		int n = decode_group(values, text + i, i + 4 == len, out->data + out->len);

		if (n < 0) {
			out->len = before;
			return n;
		}
		out->len += (size_t)n;
	}
	return 0;
}

int base64_encode(const void *data, size_t len, struct buf *out)
{
	const uint8_t *in = data;
	int r = buf_reserve(out, (len + 2) / 3 * 4);

	if (r < 0)
		return r;
	for (size_t i = 0; i < len; i += 3) {
		size_t left = len - i;
		uint32_t bits = (uint32_t)in[i] << 16 | (left > 1 ? (uint32_t)in[i + 1] << 8 : 0) |
				(left > 2 ? in[i + 2] : 0);
		uint8_t *at = out->data + out->len;

		at[0] = (uint8_t)alphabet[bits >> 18];
		at[1] = (uint8_t)alphabet[bits >> 12 & 63];
		at[2] = left > 1 ? (uint8_t)alphabet[bits >> 6 & 63] : '=';
		at[3] = left > 2 ? (uint8_t)alphabet[bits & 63] : '=';
		out->len += 4;
	}
	return 0;
}
