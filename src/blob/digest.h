/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The name of a blob by its content: "sha256:" and 64 lower-case hexadecimal digits. No other
 * algorithm is taken, and no other spelling, so a digest is also safe as a part of a file name.
 */
#pragma once

#include "base/err.h"

#include <stdint.h>

#define DIGEST_PREFIX  "sha256:"
#define DIGEST_LEN     71 /* of the text, without its NUL */
#define DIGEST_HEX_LEN 64 /* of its digits alone */

struct digest {
	char text[DIGEST_LEN + 1];
};

/* Whether a text of foreign origin is a digest: 0, or ERR_INVALID. */
int digest_parse(const char *text, struct digest *ret_digest, struct err *err) must_check;

bool digest_equals(const struct digest *a, const struct digest *b);

/* The 64 digits alone. */
const char *digest_hex(const struct digest *digest);

/* Hashes a stream piece by piece. */
struct digest_stream;

struct digest_stream *digest_stream_new(void);
void digest_stream_free(struct digest_stream *stream);
void digest_stream_freep(struct digest_stream **stream);
void digest_stream_add(struct digest_stream *stream, const void *data, size_t len);

/* The digest of all that was added so far; more may be added afterwards. */
void digest_stream_read(const struct digest_stream *stream, struct digest *ret_digest);

void digest_of(const void *data, size_t len, struct digest *ret_digest);
