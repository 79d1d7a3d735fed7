/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/native/prebuild.h"

/* Builds come in any order; but after so many it waits for one that never comes. */
#define PASSED_OVER_MAX 4

struct keeper_request prebuild_spares(bool limits_disk)
{
	return (struct keeper_request){.kind = KEEPER_SPARES,
		.spare_networks = PREBUILD_NETWORKS,
		.spare_disks = limits_disk ? PREBUILD_DISKS : 0};
}

/* Whether a sandbox built for one request also serves the other. */
static bool is_alike(const struct keeper_request *a, const struct keeper_request *b)
{
	return a->profile == b->profile && a->leads_out == b->leads_out &&
	       a->has_volumes == b->has_volumes && strcmp(a->stack, b->stack) == 0 &&
	       memcmp(&a->limits, &b->limits, sizeof(a->limits)) == 0;
}

/* Whether what is held waits in vain. */
static bool is_in_vain(struct prebuild *prebuild, uint32_t held_slot)
{
	if (held_slot != prebuild->held_slot)
		prebuild->passed_over = 0;
	prebuild->held_slot = held_slot;
	return held_slot < KEEPER_SLOT_COUNT && ++prebuild->passed_over > PASSED_OVER_MAX;
}

size_t prebuild_note(struct prebuild *prebuild, const struct keeper_request *built,
	uint32_t held_slot, uint32_t next_slot,
	struct keeper_request ret_orders[static PREBUILD_ORDERS_MAX])
{
	/* If all builds differ, what is built ahead would only be discarded. */
	bool is_likely = prebuild->last.kind == 0 || is_alike(&prebuild->last, built);
	bool is_in_the_way = is_in_vain(prebuild, held_slot);
	size_t count = 0;

	prebuild->last = *built;
	if (is_in_the_way)
		ret_orders[count++] =
			(struct keeper_request){.kind = KEEPER_DROP, .slot = held_slot};
	/* The keeper makes no directories ahead, only disks. */
	if ((held_slot >= KEEPER_SLOT_COUNT || is_in_the_way) && is_likely &&
		built->limits.disk_bytes > 0 && next_slot < KEEPER_SLOT_COUNT) {
		ret_orders[count] = *built;
		ret_orders[count].kind = KEEPER_PREBUILD;
		ret_orders[count].slot = next_slot;
		memset(ret_orders[count].id, 0, sizeof(ret_orders[count].id));
		count++;
	}
	return count;
}
