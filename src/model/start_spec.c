/* SPDX-License-Identifier: Apache-2.0 */
#include "model/start_spec.h"

#include "base/mem.h"

#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>

const char *start_spec_name(const json_t *spec)
{
	return json_string_value(json_object_get(spec, "name"));
}

uint64_t start_spec_digest(const json_t *spec)
{
	auto_free char *text = json_dumps(spec, JSON_COMPACT | JSON_SORT_KEYS);
	unsigned char hash[SHA256_DIGEST_LENGTH];
	uint64_t digest;

	if (!text)
		abort();
	SHA256((const unsigned char *)text, strlen(text), hash);
	memcpy(&digest, hash, sizeof(digest));
	return digest ? digest : 1;
}
