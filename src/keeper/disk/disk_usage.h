/* SPDX-License-Identifier: Apache-2.0 */
/* Counts and removes the files of a sandbox, in directories (storage.h) or on a disk (disk.h). */
#pragma once

#include "keeper/disk/disk.h"
#include "keeper/namespace/userns.h"

/* Counts bytes and files. Takes as long as trees are large, or as a mount takes: for a child. */
int disk_usage_count(const struct disks *disks, const char *id, struct keeper_stats *stats,
	struct err *err) must_check;

/*
 * Finds the uid range that owns the files of a sandbox; KEEPER_SLOT_COUNT if they still belong to
 * root. ERR_NOT_FOUND if there are none. For a child: a disk may have to be mounted.
 */
int disk_usage_find_slot(const struct disks *disks, const struct userns_ranges *ranges,
	const char *id, uint32_t *ret_slot, struct err *err) must_check;

/* The same at once: KEEPER_SLOT_UNKNOWN if a disk would have to be mounted for it. */
uint32_t disk_usage_known_slot(
	const struct disks *disks, const struct userns_ranges *ranges, const char *id);

/*
 * Whether disk_usage_clean only renames in the data directory, which the loop may do itself; else a
 * child must.
 */
bool disk_usage_is_quick(const struct disks *disks, const struct keeper_request *request);

/* Empties or removes parts (KEEPER_PART_*) of a sandbox that does not run, whose uids begin at base_uid. */
int disk_usage_clean(struct disks *disks, const struct keeper_request *request, uint32_t base_uid,
	struct err *err) must_check;
