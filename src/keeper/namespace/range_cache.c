/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/namespace/range_cache.h"

#include <string.h>

static void take_out(struct range_cache *cache, size_t at)
{
	cache->count--;
	memmove(&cache->slots[at], &cache->slots[at + 1],
		(cache->count - at) * sizeof(cache->slots[0]));
}

void range_cache_remove(struct range_cache *cache, uint32_t slot)
{
	for (size_t i = 0; i < cache->count; i++) {
		if (cache->slots[i] == slot) {
			take_out(cache, i);
			return;
		}
	}
}

bool range_cache_add(struct range_cache *cache, uint32_t slot, uint32_t *ret_evicted)
{
	bool is_full;

	range_cache_remove(cache, slot);
	is_full = cache->count == RANGE_CACHE_MAX;
	if (is_full) {
		*ret_evicted = cache->slots[0];
		take_out(cache, 0);
	}
	cache->slots[cache->count++] = slot;
	return is_full;
}
