/* SPDX-License-Identifier: Apache-2.0 */
#include "http/owner_memory.h"

#include "base/mem.h"

#include <assert.h>
#include <pthread.h>

#define SLOTS  256
#define SHARE  4 /* an owner has one part in so many */
#define EXCESS 2 /* times the share, for answers that turn out larger than expected */

/* An owner who has something in memory. */
struct holder {
	struct holder *next;
	uint64_t key, bytes;
};

struct owner_memory {
	uint64_t max_bytes;
	pthread_mutex_t lock; /* what follows */
	uint64_t bytes;	      /* of all */
	struct holder *slots[SLOTS];
};

struct owner_memory *owner_memory_new(uint64_t max_bytes)
{
	struct owner_memory *memory = mem_new(sizeof(*memory));

	memory->max_bytes = max_bytes;
	pthread_mutex_init(&memory->lock, NULL);
	return memory;
}

void owner_memory_free(struct owner_memory *memory)
{
	if (!memory)
		return;
	assert(memory->bytes == 0);
	pthread_mutex_destroy(&memory->lock);
	free(memory);
}

/* --- with the lock held --- */

static struct holder **find(struct owner_memory *memory, uint64_t key)
{
	struct holder **at = &memory->slots[key % SLOTS];

	while (*at && (*at)->key != key)
		at = &(*at)->next;
	return at;
}

static uint64_t held_by(struct owner_memory *memory, uint64_t key)
{
	const struct holder *holder = *find(memory, key);

	return holder ? holder->bytes : 0;
}

/* --- for everybody --- */

bool owner_memory_has_room(struct owner_memory *memory, uint64_t key)
{
	uint64_t held;
	bool has_room;

	pthread_mutex_lock(&memory->lock);
	held = held_by(memory, key);
	has_room = held == 0 ||
		   (held < memory->max_bytes / SHARE && memory->bytes < memory->max_bytes);
	pthread_mutex_unlock(&memory->lock);
	return has_room;
}

bool owner_memory_take(struct owner_memory *memory, uint64_t key, uint64_t bytes)
{
	uint64_t most = memory->max_bytes / SHARE * EXCESS;
	struct holder **at;
	bool has_room;

	pthread_mutex_lock(&memory->lock);
	at = find(memory, key);
	has_room = !*at || (bytes <= most && (*at)->bytes <= most - bytes);
	if (has_room && !*at) {
		*at = mem_new(sizeof(**at));
		(*at)->key = key;
	}
	if (has_room) {
		(*at)->bytes += bytes;
		memory->bytes += bytes;
	}
	pthread_mutex_unlock(&memory->lock);
	return has_room;
}

void owner_memory_give_back(struct owner_memory *memory, uint64_t key, uint64_t bytes)
{
	struct holder **at, *holder;

	if (bytes == 0)
		return;
	pthread_mutex_lock(&memory->lock);
	at = find(memory, key);
	holder = *at;
	assert(holder && holder->bytes >= bytes);
	holder->bytes -= bytes;
	memory->bytes -= bytes;
	if (holder->bytes == 0) {
		*at = holder->next;
		free(holder);
	}
	pthread_mutex_unlock(&memory->lock);
}
