/* SPDX-License-Identifier: Apache-2.0 */
#include "core/upkeep/heap.h"

#include <malloc.h>

#define ARENAS_MAX 2
#define FREE_MAX   (8u << 20)

void heap_use_few_arenas(void)
{
	mallopt(M_ARENA_MAX, ARENAS_MAX);
}

void heap_give_back(void)
{
	/* Pages that were given back already are counted here too: then there is little to do. */
	if (mallinfo2().fordblks > FREE_MAX)
		malloc_trim(0);
}
