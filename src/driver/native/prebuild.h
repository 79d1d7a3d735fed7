/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the keeper makes before a client asks for it: the policy of the native driver. The keeper
 * only builds, holds and hands over.
 *
 * Most creates want what the one before them wanted. So after each build that was like its
 * predecessor one more like it is ordered, in the uid range that is likely to be next. A build in
 * that range takes it over. At most one is held. Besides, the keeper has some networks and disks
 * ready, which builds of all kinds take.
 */
#pragma once

#include "wire/keeper.h"

#include <stdbool.h>
#include <stddef.h>

#define PREBUILD_NETWORKS 4
#define PREBUILD_DISKS	  16

#define PREBUILD_ORDERS_MAX 2

struct prebuild {
	struct keeper_request last; /* the last build; kind 0: there was none */
	uint32_t held_slot;	    /* where one was held after it */
	unsigned passed_over;	    /* builds in other ranges while one is held there */
};

/* The request that says how many spares the keeper has. */
struct keeper_request prebuild_spares(bool limits_disk);

/*
 * Notes a build that the keeper has begun. Of two uid ranges (KEEPER_SLOT_COUNT: none) the keeper
 * holds a sandbox without an owner in held_slot, and the next sandbox will be in next_slot. Returns
 * how many requests, none of which has an answer, go to the keeper now.
 */
size_t prebuild_note(struct prebuild *prebuild, const struct keeper_request *built,
	uint32_t held_slot, uint32_t next_slot,
	struct keeper_request ret_orders[static PREBUILD_ORDERS_MAX]);
