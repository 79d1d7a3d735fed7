/* SPDX-License-Identifier: Apache-2.0 */
#include "http/arena.h"

#include <stdint.h>
#include <string.h>

#define ALIGNMENT  16u
#define BLOCK_SIZE 8192u

struct arena_block {
	struct arena_block *next;
	_Alignas(16) char data[];
};

void *arena_alloc(struct arena *arena, size_t size)
{
	size_t limit = arena->blocks ? arena->size : ARENA_FIRST;
	char *base = arena->blocks ? arena->blocks->data : arena->first;
	struct arena_block *block;

	if (size > SIZE_MAX / 2)
		abort();
	size = (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
	if (size <= limit - arena->used) {
		arena->used += size;
		return base + arena->used - size;
	}
	arena->size = size > BLOCK_SIZE ? size : BLOCK_SIZE;
	block = malloc(sizeof(*block) + arena->size);
	if (!block)
		abort();
	block->next = arena->blocks;
	arena->blocks = block;
	arena->used = size;
	return block->data;
}

char *arena_strndup(struct arena *arena, const char *s, size_t len)
{
	char *copy = arena_alloc(arena, len + 1);

	memcpy(copy, s, len);
	copy[len] = '\0';
	return copy;
}

void arena_fini(struct arena *arena)
{
	while (arena->blocks) {
		struct arena_block *block = arena->blocks;

		arena->blocks = block->next;
		free(block);
	}
	arena->used = 0;
}
