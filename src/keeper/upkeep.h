/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a sandbox, be they in directories (storage.h) or on a disk (disk.h): counted, and removed. */
#pragma once

#include "keeper/disk.h"

/* Whether the files of a sandbox are in directories, which have no limit. */
bool upkeep_is_plain(const struct disks *disks, const char *id);

/* Counts bytes and files. Takes as long as trees are large, or as a mount takes: for a child. */
int upkeep_count(const struct disks *disks, const char *id, struct keeper_stats *stats,
	struct err *err) must_check;

/*
 * Empties or removes parts (KEEPER_PART_*) of a sandbox that does not run, whose uids begin at base_uid. Returns 1 if that needs a mount
 * and may_wait is not set, which is for children; then nothing was done.
 */
int upkeep_clean(struct disks *disks, const struct keeper_request *request, uint32_t base_uid,
	bool may_wait, struct err *err) must_check;
