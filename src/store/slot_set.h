/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which uid ranges (slots) are taken, and which one is next. A low one, because the keeper has the
 * namespaces of these at hand. Zeroed, nothing is taken. Whoever shares one has a lock.
 */
#pragma once

#include "wire/keeper.h"

struct slot_set {
	uint32_t lowest_free; /* no slot below is free */
	uint32_t turn;	      /* the one after that taken last */
	uint32_t in_turn; /* how many of the lowest free ones take turns; 0: always the lowest */
	uint8_t taken[KEEPER_SLOT_COUNT / 8];
};

/* The one that slot_set_take takes; KEEPER_SLOT_COUNT if there is none. */
uint32_t slot_set_next(const struct slot_set *set);

/* Takes it, if it is not KEEPER_SLOT_COUNT, and returns it. */
uint32_t slot_set_take(struct slot_set *set);

/* Notes one that is taken already. One that does not exist is ignored, here and by slot_set_free. */
void slot_set_mark(struct slot_set *set, uint32_t slot);

void slot_set_free(struct slot_set *set, uint32_t slot);

/* From now on a few take turns: a slot that was freed is not the next one to be taken. */
void slot_set_take_turns(struct slot_set *set);
