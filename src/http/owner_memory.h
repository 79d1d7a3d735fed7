/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory held for clients: answers that they have not read, buffers of streams and downloads,
 * bodies that they are still sending. It has a bound, and one owner has at most a quarter: an owner
 * that asks for much and reads nothing is refused new requests, and no other owner is. When all of
 * it is taken, owners that hold some are refused and the others are served, so that a new client,
 * and the operator, always get an answer.
 *
 * Requests are refused before they are worked on. The size of an answer is not known then, so it
 * may exceed the share, up to twice of it; beyond that it becomes an error.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define OWNER_MEMORY_SMALL                                                                         \
	(16u * 1024) /* what is less is not counted: the number of connections bounds it */

struct owner_memory;

struct owner_memory *owner_memory_new(uint64_t max_bytes);
void owner_memory_free(struct owner_memory *memory);

/* Whether another request of an owner is to be worked on. A key is an owner, or all strangers. */
bool owner_memory_has_room(struct owner_memory *memory, uint64_t key);

/* Takes bytes for an owner; false if that would be more than twice the share. */
bool owner_memory_take(struct owner_memory *memory, uint64_t key, uint64_t bytes);
void owner_memory_give_back(struct owner_memory *memory, uint64_t key, uint64_t bytes);
