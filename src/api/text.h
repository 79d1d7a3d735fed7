/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that a program wrote, as JSON: text where they are UTF-8, base64 where they are not. */
#pragma once

#include "base/buf.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The length of the character that data, not empty, begins with: 1 to 4; 0 if it is none, or not all of it
 * is there. As in RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF.
 */
static inline size_t text_character(const uint8_t *data, size_t len)
{
	uint8_t first = data[0];

	if (first < 0x80)
		return 1;
	if (len < 2 || (data[1] & 0xc0) != 0x80)
		return 0;
	if (first < 0xe0)
		return first >= 0xc2 ? 2 : 0;
	if (len < 3 || (data[2] & 0xc0) != 0x80)
		return 0;
	if (first < 0xf0) {
		if (first == 0xe0)
			return data[1] >= 0xa0 ? 3 : 0;
		return first != 0xed || data[1] < 0xa0 ? 3 : 0;
	}
	if (len < 4 || (data[3] & 0xc0) != 0x80)
		return 0;
	if (first == 0xf0)
		return data[1] >= 0x90 ? 4 : 0;
	return first < 0xf4 || (first == 0xf4 && data[1] < 0x90) ? 4 : 0;
}

/* Whether all of it is UTF-8. */
bool text_is_utf8(const uint8_t *data, size_t len);

/* Sets object[name] to the text, or object[name_base64] if it is none. */
void text_set(json_t *object, const char *name, const uint8_t *data, size_t len);

/*
 * Adds bytes as text to be read in any place: without control characters but \n and \t, without the escapes
 * that colour a terminal, and with a ? for what is not UTF-8.
 */
void text_put_plain(struct buf *out, const uint8_t *data, size_t len);

/* Decodes strict base64 with its padding into fresh memory; the length, or -EINVAL. */
ssize_t text_decode_base64(const char *text, uint8_t **ret_data);

/* Appends a text as a part of a path or a query, percent-encoded. */
void text_put_escaped(struct buf *out, const char *text);
