/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a sandbox, be they in directories (storage.h) or on a disk (disk.h): counted, and removed. */
#pragma once

#include "keeper/disk.h"

/* Counts bytes and files. Takes as long as trees are large, or as a mount takes: for a child. */
int upkeep_count(const struct disks *disks, const char *id, struct keeper_stats *stats,
	struct err *err) must_check;

/* Whether that is a rename or two in the data directory, which the loop does itself; else it is for a child. */
bool upkeep_is_quick(const struct disks *disks, const struct keeper_request *request);

/* Empties or removes parts (KEEPER_PART_*) of a sandbox that does not run, whose uids begin at base_uid. */
int upkeep_clean(struct disks *disks, const struct keeper_request *request, uint32_t base_uid,
	struct err *err) must_check;
