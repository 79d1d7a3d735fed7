/* SPDX-License-Identifier: Apache-2.0 */
/* RFC 4648 base64 with padding, as the API carries bytes that are not UTF-8. */
#pragma once

#include "base/buf.h"

/* Appends the decoded bytes; -EINVAL on anything but whole, padded groups, and nothing is appended.
 */
int base64_decode(const char *text, size_t len, struct buf *out) must_check;

/* Appends the encoded text. */
int base64_encode(const void *data, size_t len, struct buf *out) must_check;
