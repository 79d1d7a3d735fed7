/* SPDX-License-Identifier: Apache-2.0 */
#include "blob/digest.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#define PREFIX_LEN (sizeof(DIGEST_PREFIX) - 1)
#define HASH_SIZE  32

struct digest_stream {
	EVP_MD_CTX *context;
};

int digest_parse(const char *text, struct digest *ret_digest, struct err *err)
{
	if (strlen(text) != DIGEST_LEN || strncmp(text, DIGEST_PREFIX, PREFIX_LEN) != 0 ||
		strspn(text + PREFIX_LEN, "0123456789abcdef") != 2 * HASH_SIZE)
		return err_explain(err, ERR_INVALID, "invalid_digest",
			"a digest is sha256: and 64 hexadecimal digits",
			"\"%.80s\" is not a digest", text);
	memcpy(ret_digest->text, text, DIGEST_LEN + 1);
	return 0;
}

bool digest_equals(const struct digest *a, const struct digest *b)
{
	return strcmp(a->text, b->text) == 0;
}

const char *digest_hex(const struct digest *digest)
{
	return digest->text + PREFIX_LEN;
}

struct digest_stream *digest_stream_new(void)
{
	struct digest_stream *stream = mem_new(sizeof(*stream));

	stream->context = EVP_MD_CTX_new();
	if (!stream->context || EVP_DigestInit_ex(stream->context, EVP_sha256(), NULL) != 1)
		abort();
	return stream;
}

void digest_stream_free(struct digest_stream *stream)
{
	if (!stream)
		return;
	EVP_MD_CTX_free(stream->context);
	free(stream);
}

void digest_stream_freep(struct digest_stream **stream)
{
	digest_stream_free(*stream);
}

void digest_stream_add(struct digest_stream *stream, const void *data, size_t len)
{
	if (EVP_DigestUpdate(stream->context, data, len) != 1)
		abort();
}

void digest_stream_read(const struct digest_stream *stream, struct digest *ret_digest)
{
	EVP_MD_CTX *copy = EVP_MD_CTX_new();
	uint8_t hash[HASH_SIZE];

	if (!copy || EVP_MD_CTX_copy_ex(copy, stream->context) != 1 ||
		EVP_DigestFinal_ex(copy, hash, NULL) != 1)
		abort();
	EVP_MD_CTX_free(copy);
	memcpy(ret_digest->text, DIGEST_PREFIX, PREFIX_LEN);
	for (size_t i = 0; i < HASH_SIZE; i++)
		snprintf(ret_digest->text + PREFIX_LEN + 2 * i, 3, "%02x", hash[i]);
}

void digest_of(const void *data, size_t len, struct digest *ret_digest)
{
	auto_(digest_stream_freep) struct digest_stream *stream = digest_stream_new();

	digest_stream_add(stream, data, len);
	digest_stream_read(stream, ret_digest);
}
