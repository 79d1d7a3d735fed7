/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/terminal/input/detach_keys.h"

#define CTRL_P 0x10
#define CTRL_Q 0x11

void detach_keys_release(struct detach_keys *keys, struct buf *out)
{
	if (keys->is_holding)
		buf_append(out, &(uint8_t){CTRL_P}, 1);
	keys->is_holding = false;
}

bool detach_keys_filter(struct detach_keys *keys, const uint8_t *typed, size_t len, struct buf *out)
{
	for (size_t i = 0; i < len; i++) {
		if (keys->is_holding && typed[i] == CTRL_Q) {
			keys->is_holding = false;
			return true;
		}
		detach_keys_release(keys, out);
		if (typed[i] == CTRL_P)
			keys->is_holding = true;
		else
			buf_append(out, &typed[i], 1);
	}
	return false;
}
