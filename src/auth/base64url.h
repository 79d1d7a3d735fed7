/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 as JSON Web Tokens write it (RFC 7515): another alphabet, no padding, and only one spelling. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Decodes len characters into data, which has room for base64url_size(len); the size, or -EINVAL. */
ssize_t base64url_decode(const char *text, size_t len, uint8_t *data);

/* Encodes len bytes, with a NUL behind, into text, which has room for len / 3 * 4 + 4 characters. */
void base64url_encode(const uint8_t *data, size_t len, char *text);

static inline size_t base64url_size(size_t len)
{
	return len / 4 * 3 + 3;
}
