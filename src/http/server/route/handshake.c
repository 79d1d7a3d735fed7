/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server/route/handshake.h"

#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define KEY_LEN 24 /* base64 of 16 bytes */

static const char magic[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/* Whether a header that is a list has this element; `compare` as strncmp. */
static bool has_element(
	const char *list, const char *name, int (*compare)(const char *, const char *, size_t))
{
	size_t want = strlen(name);

	while (list && *list) {
		size_t len;

		list += strspn(list, ", \t");
		len = strcspn(list, ", \t");
		if (len == want && compare(list, name, len) == 0)
			return true;
		list += len;
	}
	return false;
}

static bool is_key(const char *key)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	return key && strlen(key) == KEY_LEN && strspn(key, digits) == KEY_LEN - 2 &&
	       strcmp(key + KEY_LEN - 2, "==") == 0;
}

static void make_accept(const char *key, char accept[HANDSHAKE_ACCEPT_LEN + 1])
{
	unsigned char text[KEY_LEN + sizeof(magic)];
	unsigned char digest[SHA_DIGEST_LENGTH];

	memcpy(text, key, KEY_LEN);
	memcpy(text + KEY_LEN, magic, sizeof(magic));
	SHA1(text, sizeof(text) - 1, digest);
	EVP_EncodeBlock((unsigned char *)accept, digest, sizeof(digest));
}

int handshake_read(
	const struct headers *headers, const char *protocol, struct handshake *ret, struct err *err)
{
	const char *version = headers_get(headers, "Sec-WebSocket-Version");
	const char *key = headers_get(headers, "Sec-WebSocket-Key");
	const char *offered = headers_get(headers, "Sec-WebSocket-Protocol");

	if (!has_element(headers_get(headers, "Upgrade"), "websocket", strncasecmp) ||
		!has_element(headers_get(headers, "Connection"), "upgrade", strncasecmp))
		return err_explain(err, ERR_UPGRADE, NULL, "connect with a WebSocket client",
			"this route is a WebSocket");
	if (!version || strcmp(version, HANDSHAKE_VERSION) != 0)
		return err_explain(err, ERR_UPGRADE, NULL,
			"send Sec-WebSocket-Version: " HANDSHAKE_VERSION,
			"this version of WebSocket is not spoken here");
	if (!is_key(key))
		return err_set(err, ERR_INVALID, "Sec-WebSocket-Key is not 16 bytes in base64");
	if (protocol && offered && !has_element(offered, protocol, strncmp))
		return err_set(
			err, ERR_INVALID, "Sec-WebSocket-Protocol does not offer %.64s", protocol);
	make_accept(key, ret->accept);
	ret->has_protocols = protocol && offered;
	return 0;
}
