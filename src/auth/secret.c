/* SPDX-License-Identifier: Apache-2.0 */
#include "auth/secret.h"

#include "auth/base64url.h"

#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define RANDOM_LEN 32

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
	len = (size_t)snprintf(text, SECRET_TEXT_MAX, "%s", prefix);
	for (size_t i = 0; i < sizeof(random); i++)
		len += (size_t)snprintf(text + len, SECRET_TEXT_MAX - len, "%02x", random[i]);
	explicit_bzero(random, sizeof(random));
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

void secret_hash(const char *text, unsigned char hash[SECRET_HASH_LEN])
{
	SHA256((const unsigned char *)text, strlen(text), hash);
}
