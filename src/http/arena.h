/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is dropped whole: what one request needs while it lives. Small requests fit into the
 * first block, which is embedded in the owner. One thread at a time.
 */
#pragma once

#include "base/mem.h"

#define ARENA_FIRST 2048

struct arena_block;

struct arena {
	struct arena_block *blocks;
	size_t used; /* of the newest block, or of first[] while there is none */
	size_t size; /* of the newest block */
	_Alignas(16) char first[ARENA_FIRST];
};

/* A zeroed arena is ready. Memory is aligned for any type and not zeroed; never NULL. */
void *arena_alloc(struct arena *arena, size_t size);
char *arena_strndup(struct arena *arena, const char *s, size_t len);
void arena_fini(struct arena *arena);
