/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/native/uid_ranges.h"

#include "base/mem.h"

#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>

#define IN_TURN 8

struct owner_entry {
	char id[ID_LEN + 1];
	uint32_t slot;
};

static int compare(const void *one, const void *other)
{
	return strcmp(
		((const struct owner_entry *)one)->id, ((const struct owner_entry *)other)->id);
}

static struct owner_entry *find(const struct uid_ranges *ranges, const char *id)
{
	struct owner_entry key = {.slot = 0}, *const * found;

	snprintf(key.id, sizeof(key.id), "%s", id);
	found = tfind(&key, &ranges->owners, compare);
	return found ? *found : NULL;
}

static struct owner_entry *find_or_add(struct uid_ranges *ranges, const char *id)
{
	struct owner_entry *entry = find(ranges, id);

	if (entry)
		return entry;
	entry = mem_new(sizeof(*entry));
	snprintf(entry->id, sizeof(entry->id), "%s", id);
	entry->slot = UID_RANGE_NONE;
	if (!tsearch(entry, &ranges->owners, compare))
		abort();
	return entry;
}

static bool is_taken(const struct uid_ranges *ranges, uint32_t slot)
{
	return ranges->taken[slot / 8] & (1u << slot % 8);
}

/* The lowest free one from `from` on; UID_RANGE_NONE if there is none. */
static uint32_t find_free(const struct uid_ranges *ranges, uint32_t from)
{
	uint32_t slot = from > ranges->lowest_free ? from : ranges->lowest_free;

	while (slot < KEEPER_SLOT_COUNT && is_taken(ranges, slot))
		slot++;
	return slot;
}

static void set_taken(struct uid_ranges *ranges, uint32_t slot)
{
	ranges->taken[slot / 8] |= (uint8_t)(1u << slot % 8);
}

static void set_free(struct uid_ranges *ranges, uint32_t slot)
{
	if (slot >= KEEPER_SLOT_COUNT)
		return;
	ranges->taken[slot / 8] &= (uint8_t) ~(1u << slot % 8);
	if (slot < ranges->lowest_free)
		ranges->lowest_free = slot;
}

void uid_ranges_init(struct uid_ranges *ranges, bool take_turns)
{
	*ranges = (struct uid_ranges){.in_turn = take_turns ? IN_TURN : 0};
	/* Those who write layers have it. */
	set_taken(ranges, KEEPER_LAYER_SLOT);
}

void uid_ranges_fini(struct uid_ranges *ranges)
{
	tdestroy(ranges->owners, free);
	ranges->owners = NULL;
}

bool uid_ranges_find(const struct uid_ranges *ranges, const char *id, uint32_t *ret_slot)
{
	const struct owner_entry *entry = find(ranges, id);

	if (entry)
		*ret_slot = entry->slot;
	return entry;
}

uint32_t uid_ranges_next(const struct uid_ranges *ranges)
{
	uint32_t lowest = find_free(ranges, 0);
	uint32_t slot = find_free(ranges, ranges->turn);

	return slot < KEEPER_SLOT_COUNT && slot - lowest < ranges->in_turn ? slot : lowest;
}

int uid_ranges_take(struct uid_ranges *ranges, const char *id, uint32_t *ret_slot)
{
	uint32_t slot = uid_ranges_next(ranges);

	if (slot == UID_RANGE_NONE)
		return -ENOSPC;
	set_taken(ranges, slot);
	if (slot == ranges->lowest_free)
		ranges->lowest_free++;
	ranges->turn = slot + 1;
	find_or_add(ranges, id)->slot = slot;
	*ret_slot = slot;
	return 0;
}

int uid_ranges_note(struct uid_ranges *ranges, const char *id, uint32_t slot)
{
	struct owner_entry *entry = find_or_add(ranges, id);

	if (entry->slot == slot)
		return 0;
	set_free(ranges, entry->slot);
	if (slot < KEEPER_SLOT_COUNT && is_taken(ranges, slot)) {
		entry->slot = UID_RANGE_UNKNOWN;
		return -EEXIST;
	}
	if (slot < KEEPER_SLOT_COUNT)
		set_taken(ranges, slot);
	entry->slot = slot;
	return 0;
}

void uid_ranges_release(struct uid_ranges *ranges, const char *id)
{
	struct owner_entry *entry = find(ranges, id);

	if (!entry)
		return;
	set_free(ranges, entry->slot);
	tdelete(entry, &ranges->owners, compare);
	free(entry);
}
