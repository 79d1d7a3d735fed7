/* SPDX-License-Identifier: Apache-2.0 */
#include "auth/secret.h"

#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

void secret_make(const char *prefix, char text[SECRET_TEXT_MAX])
{
	unsigned char random[32];
	size_t len;

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		abort();
	len = (size_t)snprintf(text, SECRET_TEXT_MAX, "%s", prefix);
	for (size_t i = 0; i < sizeof(random); i++)
		len += (size_t)snprintf(text + len, SECRET_TEXT_MAX - len, "%02x", random[i]);
	explicit_bzero(random, sizeof(random));
}

void secret_hash(const char *text, unsigned char hash[SECRET_HASH_LEN])
{
	SHA256((const unsigned char *)text, strlen(text), hash);
}
