/* SPDX-License-Identifier: Apache-2.0 */
#include "core/upkeep/heap.h"

#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

#define ARENAS_MAX 2
#define FREE_MAX   (4u << 20)
#define PART	   4
#define LOOKS_ALL  30

void heap_use_few_arenas(void)
{
	mallopt(M_ARENA_MAX, ARENAS_MAX);
}

/* What is in memory and of no file; 0 if that cannot be known. */
static size_t resident_bytes(void)
{
	FILE *statm = fopen("/proc/self/statm", "re");
	unsigned long resident = 0, of_files = 0;
	int n = statm ? fscanf(statm, "%*u %lu %lu", &resident, &of_files) : 0;

	if (statm)
		fclose(statm);
	return n == 2 && resident > of_files ? (resident - of_files) * (size_t)sysconf(_SC_PAGESIZE)
					     : 0;
}

/*
 * The library counts pages as free that were given back already, so what is free is told by what is in memory
 * beyond what is used: stacks too, and pages that are used in part.
 */
static size_t unused_bytes(size_t *ret_used)
{
	struct mallinfo2 heap = mallinfo2();
	size_t used = heap.uordblks + heap.hblkhd, resident = resident_bytes();

	*ret_used = used;
	return resident > used ? resident - used : 0;
}

void heap_give_back(struct heap_look *look)
{
	size_t used, unused = unused_bytes(&used), more;
	size_t changed = used > look->used ? used - look->used : look->used - used;

	/* What kept pages from being given back may have been freed since. */
	if (++look->count % LOOKS_ALL == 0)
		look->stays = 0;
	if (unused < look->stays)
		look->stays = unused;
	more = unused - look->stays;
	if (more >= FREE_MAX && changed <= more / PART) {
		malloc_trim(0);
		look->stays = unused_bytes(&used);
	}
	look->used = used;
}
