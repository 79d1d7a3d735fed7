/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which uid ranges keep what was made for them while no sandbox runs in them.
 *
 * A range has a user namespace (userns.h) and two mounts (rootfs.h). Its next sandbox is cheaper
 * with them, and the daemon gives out the lowest free range, so a few ranges are used again and
 * again. Others are not: after a thousand sandboxes at a time there would be two thousand mounts
 * until the keeper ends. So a fixed number of ranges that were used last is kept, and the range
 * that has been idle longest is evicted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RANGE_CACHE_MAX 32

struct range_cache {
	uint32_t
		slots[RANGE_CACHE_MAX]; /* idle ranges; that which has been idle longest is first */
	size_t count;
};

/*
 * Adds a range that is idle from now on. True if another is evicted for it, whose namespace and
 * mounts the caller must release.
 */
bool range_cache_add(struct range_cache *cache, uint32_t slot, uint32_t *ret_evicted);

/* Removes a range that is about to be used. */
void range_cache_remove(struct range_cache *cache, uint32_t slot);
