/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds Ctrl-P Ctrl-Q among what is typed, however it is split over reads.
 *
 * A Ctrl-P is held back until the next key tells what it was. So that one that means the line before
 * (in a shell) is not held for ever, the caller lets it go after DETACH_KEYS_HOLD_MS.
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>

#define DETACH_KEYS_HOLD_MS 500

struct detach_keys {
	bool is_holding;
};

/*
 * Appends to out what is to be passed on; true when the keys were found: what came after them is
 * dropped. Out must have room for len + 1 bytes.
 */
bool detach_keys_filter(
	struct detach_keys *keys, const uint8_t *typed, size_t len, struct buf *out);

/* Passes on what is held back. Out must have room for a byte. */
void detach_keys_release(struct detach_keys *keys, struct buf *out);
