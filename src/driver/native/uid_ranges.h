/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which uid range (slot) each sandbox has that has files. A sandbox gets a range with its first
 * start and keeps it as long as it has files, because they belong to it: so the files on disk say
 * which ranges are taken, and this is the memory of what they said. Whoever shares one has a lock.
 *
 * New sandboxes get low ranges, because the keeper has the namespaces of these at hand. If sandboxes
 * are built ahead (prebuild.h) a few take turns: else a sandbox that ends would change which is next.
 */
#pragma once

#include "model/id.h"
#include "wire/keeper.h"

#define UID_RANGE_NONE	  KEEPER_SLOT_COUNT /* nobody's files yet */
#define UID_RANGE_UNKNOWN UINT32_MAX	    /* there are files, and whose is not known */

struct uid_ranges {
	uint32_t lowest_free; /* no slot below is free */
	uint32_t turn;	      /* the one after that taken last */
	uint32_t in_turn; /* how many of the lowest free ones take turns; 0: always the lowest */
	uint8_t taken[KEEPER_SLOT_COUNT / 8];
	void *owners; /* a tsearch tree by id */
};

/* Zeroed, no range is taken. With take_turns a range that was freed is not the next to be taken. */
void uid_ranges_init(struct uid_ranges *ranges, bool take_turns);
void uid_ranges_fini(struct uid_ranges *ranges);

/* Whether a sandbox is known to have files; and its range, or UID_RANGE_NONE or _UNKNOWN. */
bool uid_ranges_find(const struct uid_ranges *ranges, const char *id, uint32_t *ret_slot);

/* The range that the next new sandbox will get; UID_RANGE_NONE if all are taken. */
uint32_t uid_ranges_next(const struct uid_ranges *ranges);

/* Gives a sandbox that has none a range. -ENOSPC if all are taken. */
int uid_ranges_take(struct uid_ranges *ranges, const char *id, uint32_t *ret_slot) must_check;

/*
 * Notes what was found on disk; slot may be UID_RANGE_NONE or _UNKNOWN. -EEXIST if the range is
 * another sandbox's: then this one's is noted as unknown.
 */
int uid_ranges_note(struct uid_ranges *ranges, const char *id, uint32_t slot) must_check;

/* Its files are gone. */
void uid_ranges_release(struct uid_ranges *ranges, const char *id);
