/* SPDX-License-Identifier: Apache-2.0 */
#include "store/slot_set.h"

#define IN_TURN 8

/* The lowest free one from `from` on; KEEPER_SLOT_COUNT if there is none. */
static uint32_t find_free(const struct slot_set *set, uint32_t from)
{
	uint32_t slot = from > set->lowest_free ? from : set->lowest_free;

	while (slot < KEEPER_SLOT_COUNT && set->taken[slot / 8] & (1u << slot % 8))
		slot++;
	return slot;
}

/*
 * If the keeper builds ahead (keeper/birth.h) a few take turns: else a sandbox that ends would change which
 * is next.
 */
uint32_t slot_set_next(const struct slot_set *set)
{
	uint32_t lowest = find_free(set, 0);
	uint32_t slot = find_free(set, set->turn);

	return slot < KEEPER_SLOT_COUNT && slot - lowest < set->in_turn ? slot : lowest;
}

uint32_t slot_set_take(struct slot_set *set)
{
	uint32_t slot = slot_set_next(set);

	if (slot == KEEPER_SLOT_COUNT)
		return slot;
	slot_set_mark(set, slot);
	if (slot == set->lowest_free)
		set->lowest_free++;
	set->turn = slot + 1;
	return slot;
}

void slot_set_mark(struct slot_set *set, uint32_t slot)
{
	if (slot < KEEPER_SLOT_COUNT)
		set->taken[slot / 8] |= (uint8_t)(1u << slot % 8);
}

void slot_set_free(struct slot_set *set, uint32_t slot)
{
	if (slot >= KEEPER_SLOT_COUNT)
		return;
	set->taken[slot / 8] &= (uint8_t) ~(1u << slot % 8);
	if (slot < set->lowest_free)
		set->lowest_free = slot;
}

void slot_set_take_turns(struct slot_set *set)
{
	set->in_turn = IN_TURN;
}
