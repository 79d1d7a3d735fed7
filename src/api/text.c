/* SPDX-License-Identifier: Apache-2.0 */
#include "api/text.h"

#include "base/mem.h"

#include <ctype.h>
#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

bool text_is_utf8(const uint8_t *data, size_t len)
{
	size_t at = 0;

	while (at < len) {
		uint64_t word, next, n;

		/* Most text is ASCII: as long as it is, sixteen bytes at a time. */
		for (; len - at >= 16; at += 16) {
			memcpy(&word, data + at, sizeof(word));
			memcpy(&next, data + at + 8, sizeof(next));
			if ((word | next) & 0x8080808080808080u)
				break;
		}
		do {
			n = at < len ? text_character(data + at, len - at) : 0;
			at += n;
		} while (n > 1);
		if (n == 0 && at < len)
			return false;
	}
	return true;
}

/*
 * Whether bytes would be mostly escapes as a JSON string: a control character takes six bytes there
 * and a hundred times as long. A few do no harm; a stream of zeros is not text.
 */
static bool is_mostly_control(const uint8_t *data, size_t len)
{
	size_t count = 0;

	for (size_t at = 0, n; at < len; at += n) {
		uint64_t word;

		n = len - at < sizeof(word) ? len - at : sizeof(word);
		memcpy(&word, data + at, n);
		/* Words without a byte below 0x20 are most. */
		if (n == sizeof(word) &&
			!((word - 0x2020202020202020u) & ~word & 0x8080808080808080u))
			continue;
		for (size_t i = at; i < at + n; i++)
			count += data[i] < 0x20 && data[i] != '\n' && data[i] != '\t' &&
				 data[i] != '\r';
	}
	return count > 64 + len / 16;
}

void text_set(json_t *object, const char *name, const uint8_t *data, size_t len)
{
	bool is_text = text_is_utf8(data, len) && !is_mostly_control(data, len);
	json_t *text = is_text ? json_stringn_nocheck(len ? (const char *)data : "", len) : NULL;
	auto_free char *encoded = NULL;
	char key[64];
	int encoded_len;

	if (text) {
		json_object_set_new(object, name, text);
		return;
	}
	encoded = mem_new((len + 2) / 3 * 4 + 1);
	encoded_len = EVP_EncodeBlock((unsigned char *)encoded, data, (int)len);
	snprintf(key, sizeof(key), "%s_base64", name);
	json_object_set_new(object, key, json_stringn_nocheck(encoded, (size_t)encoded_len));
}

void text_put_plain(struct buf *out, const uint8_t *data, size_t len)
{
	for (size_t at = 0, n; at < len; at += n) {
		n = text_character(data + at, len - at);
		if (data[at] == 0x1b && at + 1 < len && data[at + 1] == '[') {
			n = 2;
			while (at + n < len && (data[at + n] < 0x40 || data[at + n] > 0x7e))
				n++;
			n += at + n < len;
		} else if (n == 0) {
			buf_append_str(out, "?");
			n = 1;
		} else if (n > 1 || data[at] >= 0x20 || data[at] == '\n' || data[at] == '\t') {
			buf_append(out, data + at, n);
		}
	}
}

ssize_t text_decode_base64(const char *text, uint8_t **ret_data)
{
	static const char alphabet[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	size_t len = strlen(text), padding = len - strcspn(text, "=");
	auto_free uint8_t *data = mem_new(len / 4 * 3 + 1);
	size_t decoded;

	/* OpenSSL passes over white space, ends at a hyphen and takes padding for zeros. */
	if (len % 4 || padding > 2 || strspn(text + len - padding, "=") != padding ||
		strspn(text, alphabet) != len - padding ||
		EVP_DecodeBlock(data, (const unsigned char *)text, (int)len) < 0)
		return -EINVAL;
	decoded = len / 4 * 3 - padding;
	if (data[decoded]) /* bits that are left over, in a character before the padding */
		return -EINVAL;
	*ret_data = take_ptr(&data);
	return (ssize_t)decoded;
}

void text_put_escaped(struct buf *out, const char *text)
{
	for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
		if (isalnum(*at) || strchr("-._~", *at))
			buf_append(out, at, 1);
		else
			buf_printf(out, "%%%02X", *at);
	}
}
