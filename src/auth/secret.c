/* SPDX-License-Identifier: Apache-2.0 */
#include "auth/secret.h"

#include "auth/base64url.h"
#include "base/format.h"

#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define RANDOM_LEN 32
#define SHORT_LEN  43 /* of 32 bytes in base64url */

static void draw(unsigned char random[RANDOM_LEN])
{
	if (getrandom(random, RANDOM_LEN, 0) != RANDOM_LEN)
		abort();
}

void secret_make(const char *prefix, char text[SECRET_TEXT_MAX])
{
	unsigned char random[RANDOM_LEN];
	size_t len;

	draw(random);
	len = format_append(text, SECRET_TEXT_MAX, 0, "%s", prefix);
	for (size_t i = 0; i < sizeof(random); i++)
		len = format_append(text, SECRET_TEXT_MAX, len, "%02x", random[i]);
	explicit_bzero(random, sizeof(random));
}

bool secret_is_token(const char *text)
{
	size_t len = strlen(SECRET_TOKEN_PREFIX);

	return strncmp(text, SECRET_TOKEN_PREFIX, len) == 0 &&
	       strlen(text + len) == 2 * RANDOM_LEN &&
	       strspn(text + len, "0123456789abcdef") == 2 * RANDOM_LEN;
}

void secret_make_short(const char *prefix, char text[SECRET_TEXT_MAX])
{
	unsigned char random[RANDOM_LEN];
	size_t len = strlen(prefix);

	draw(random);
	memcpy(text, prefix, len);
	base64url_encode(random, sizeof(random), text + len);
	explicit_bzero(random, sizeof(random));
}

void secret_make_frame(char text[SECRET_TEXT_MAX])
{
	static const char letters[] = "0123456789abcdefghjkmnpqrstvwxyz"; /* 32 of them */
	unsigned char random[SECRET_FRAME_LEN];
	size_t len = strlen(SECRET_FRAME_PREFIX);

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		abort();
	memcpy(text, SECRET_FRAME_PREFIX, len);
	for (; len < SECRET_FRAME_LEN; len++)
		text[len] = letters[random[len] % (sizeof(letters) - 1)];
	text[len] = '\0';
	explicit_bzero(random, sizeof(random));
}

bool secret_is_link(const char *text, size_t len)
{
	size_t prefix = strlen(SECRET_LINK_PREFIX);

	return len == prefix + SHORT_LEN && memcmp(text, SECRET_LINK_PREFIX, prefix) == 0;
}

void secret_hash(const char *text, unsigned char hash[SECRET_HASH_LEN])
{
	SHA256((const unsigned char *)text, strlen(text), hash);
}
