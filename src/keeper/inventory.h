/* SPDX-License-Identifier: Apache-2.0 */
/* What sandboxes have in the data directory: whose it is, and how much. */
#pragma once

#include "keeper/storage.h"

/* The ids that have directories or a disk, in order, from the one after `after` on; how many. */
uint32_t inventory_list(const struct storage *storage, const char *after,
	char ids[][KEEPER_ID_LEN + 1], uint32_t max);

/* Bytes and files that a sandbox without a disk has. Takes as long as its trees are large. */
void inventory_usage(const struct storage *storage, const char *id, struct keeper_stats *stats);
