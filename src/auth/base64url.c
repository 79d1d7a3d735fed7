/* SPDX-License-Identifier: Apache-2.0 */
#include "auth/base64url.h"

#include <errno.h>

static int value_of(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '-' ? 62 : c == '_' ? 63 : -1;
}

ssize_t base64url_decode(const char *text, size_t len, uint8_t *data)
{
	uint32_t bits = 0;
	unsigned count = 0;
	size_t size = 0;

	if (len % 4 == 1)
		return -EINVAL;
	for (size_t i = 0; i < len; i++) {
		int value = value_of(text[i]);

		if (value < 0)
			return -EINVAL;
		bits = bits << 6 | (uint32_t)value;
		count += 6;
		if (count >= 8) {
			count -= 8;
			data[size++] = (uint8_t)(bits >> count);
		}
	}
	/* Bits that are left over and not zero would make a second spelling of the same bytes. */
	return bits & ((1u << count) - 1) ? -EINVAL : (ssize_t)size;
}

void base64url_encode(const uint8_t *data, size_t len, char *text)
{
	static const char alphabet[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	uint32_t bits = 0;
	unsigned count = 0;

	for (size_t i = 0; i < len; i++) {
		bits = bits << 8 | data[i];
		for (count += 8; count >= 6; count -= 6)
			*text++ = alphabet[bits >> (count - 6) & 63];
	}
	if (count > 0)
		*text++ = alphabet[bits << (6 - count) & 63];
	*text = '\0';
}
