/* SPDX-License-Identifier: Apache-2.0 */
#include "model/text_digest.h"

#include <openssl/sha.h>
#include <string.h>

uint64_t text_digest(const char *text)
{
	unsigned char hash[SHA256_DIGEST_LENGTH];
	uint64_t first;

	SHA256((const unsigned char *)text, strlen(text), hash);
	memcpy(&first, hash, sizeof(first));
	return first ? first : 1;
}
