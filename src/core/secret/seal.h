/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text that only the holder of a key can read, and that is bound to what it is for: AES-256-GCM with a
 * random nonce, over the text and a label beside it. One that was changed, or is opened with another label,
 * does not open.
 */
#pragma once

#include "base/buf.h"

#include <stdint.h>

#define SEAL_KEY_LEN  32
#define SEAL_OVERHEAD (12 + 16) /* nonce before it, tag behind it */

/* Appends the sealed text to out. */
int seal_close(const uint8_t key[SEAL_KEY_LEN], const struct buf *label, const char *text,
	size_t len, struct buf *out) must_check;

/* Sets ret_text, ended by a NUL byte and to be freed; -EBADMSG if it is not what was sealed. */
int seal_open(const uint8_t key[SEAL_KEY_LEN], const struct buf *label, const uint8_t *sealed,
	size_t len, char **ret_text) must_check;
