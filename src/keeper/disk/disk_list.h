/* SPDX-License-Identifier: Apache-2.0 */
/* Lists what sandboxes have in the data directory: which ids, which uid owns it, how much it is. */
#pragma once

#include "keeper/disk/storage.h"

/* Lists ids that have directories or a disk, in order, after `after`; returns how many. */
uint32_t disk_list_list(const struct storage *storage, const char *after,
	char ids[][KEEPER_ID_LEN + 1], uint32_t max);

/*
 * Finds the uid that owns the files of a sandbox: of one without a disk, or in the home directory
 * of a disk. 1; 0 if they still belong to root; -ENOENT if there are none.
 */
int disk_list_owner(const struct storage *storage, const char *id, uint32_t *ret_uid) must_check;
int disk_list_home_owner(int home_fd, uint32_t *ret_uid) must_check;

/* Counts bytes and files of a sandbox without a disk. Takes as long as its trees are large. */
void disk_list_usage(const struct storage *storage, const char *id, struct keeper_stats *stats);
