/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/roster.h"

#include "base/fd.h"

#include <string.h>

/* The place of the first entry whose id is not less than id. */
static size_t lower_bound(const struct roster *roster, const char *id)
{
	size_t low = 0, high = roster->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(roster->sorted[middle]->id, id) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct held *roster_find(const struct roster *roster, const char *id)
{
	size_t at = lower_bound(roster, id);

	if (at == roster->count || strcmp(roster->sorted[at]->id, id) != 0)
		return NULL;
	return roster->sorted[at];
}

struct held *roster_find_pid(const struct roster *roster, pid_t pid)
{
	for (size_t i = 0; i < roster->count; i++) {
		if (roster->sorted[i]->pid == pid)
			return roster->sorted[i];
	}
	return NULL;
}

struct held *roster_find_slot(const struct roster *roster, uint32_t slot)
{
	for (size_t i = 0; i < roster->count; i++) {
		struct held *held = roster->sorted[i];

		if (held->slot == slot && held->pid && held->has_owner)
			return held;
	}
	return NULL;
}

static void insert(struct roster *roster, struct held *held)
{
	size_t at = lower_bound(roster, held->id);

	memmove(&roster->sorted[at + 1], &roster->sorted[at],
		(roster->count - at) * sizeof(struct held *));
	roster->sorted[at] = held;
	roster->count++;
}

static void take_out(struct roster *roster, const struct held *held)
{
	size_t at = lower_bound(roster, held->id);

	roster->count--;
	memmove(&roster->sorted[at], &roster->sorted[at + 1],
		(roster->count - at) * sizeof(struct held *));
}

struct held *roster_add(struct roster *roster, const char *id)
{
	struct held *held = mem_new(sizeof(*held));

	if (roster->count == roster->cap) {
		roster->cap = roster->cap ? roster->cap * 2 : 64;
		roster->sorted = realloc(roster->sorted, roster->cap * sizeof(struct held *));
		if (!roster->sorted)
			abort();
	}
	memcpy(held->id, id, sizeof(held->id));
	memcpy(held->group, id, sizeof(held->group));
	held->has_owner = true;
	insert(roster, held);
	held->lifeline = held->kill_waiter = held->pause.waiter = -1;
	held->network = NETWORK_NONE;
	return held;
}

void roster_release(struct held *held)
{
	fd_close(take_fd(&held->lifeline));
	network_release(&held->network);
}

void roster_rename(struct roster *roster, struct held *held, const char *id)
{
	take_out(roster, held);
	memcpy(held->id, id, sizeof(held->id));
	insert(roster, held);
}

void roster_remove(struct roster *roster, struct held *held)
{
	take_out(roster, held);
	roster_release(held);
	free(held);
}

uint32_t roster_list(
	const struct roster *roster, const char *after, char ids[][KEEPER_ID_LEN + 1], uint32_t max)
{
	uint32_t count = 0;

	for (size_t i = lower_bound(roster, after); i < roster->count && count < max; i++) {
		if (roster->sorted[i]->has_owner && strcmp(roster->sorted[i]->id, after) != 0)
			memcpy(ids[count++], roster->sorted[i]->id, sizeof(ids[0]));
	}
	return count;
}
