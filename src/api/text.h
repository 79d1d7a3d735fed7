/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that a program wrote, as JSON: text where they are UTF-8, base64 where they are not. */
#pragma once

#include <jansson.h>
#include <stdint.h>
#include <sys/types.h>

/* How many bytes at the end of data begin a character whose rest is not there: 0 to 3. */
size_t text_unfinished(const uint8_t *data, size_t len);

/* Sets object[name] to the text, or object[name_base64] if it is none. */
void text_set(json_t *object, const char *name, const uint8_t *data, size_t len);

/* Decodes strict base64 with its padding into fresh memory; the length, or -EINVAL. */
ssize_t text_decode_base64(const char *text, uint8_t **ret_data);
