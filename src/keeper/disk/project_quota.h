/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory whose contents have a limit, by a project quota of the file system it is in.
 *
 * The directory has the number of a project, which all that is made below inherits; the file system counts
 * bytes and files of each project, and refuses what is more than its limit. Nothing is mounted and nothing
 * is made ahead. Root inside a sandbox can change neither number nor limit: the kernel lets only the host's
 * user namespace do that. That a rename or link may lead nothing in from another project, or from none, is
 * the kernel's rule too; out of it everything may go, into the trash.
 *
 * The number is remembered nowhere but in the directory. A new one is drawn at random until the kernel
 * counts nothing for it: so it is never one whose files still wait in the trash, nor that of a neighbour.
 */
#pragma once

#include "base/err.h"
#include "wire/keeper.h"

#define PROJECT_QUOTA_FILES                                                                        \
	262144 /* how many there may be; as many as in an image (image_blank.sh) */

/*
 * Whether directories in dirfd can have a limit, found out by making one; err says why not. The file system
 * must enforce quotas of projects: ext4 or XFS mounted with prjquota.
 */
int project_quota_try(int dirfd, struct err *err) must_check;

/* Makes the directory dirfd/name. */
int project_quota_make(int dirfd, const char *name, struct err *err) must_check;

/*
 * Call it before making or removing anything in the directory: gives it its project, if it is new,
 * and waits until no other process has it open by this function. A process that prepares it and one
 * that empties its trash must not meet.
 */
int project_quota_enter(int fd, struct err *err) must_check;

/*
 * Sets how much the directory may hold. 0 bytes: no limit; a directory without a project has none
 * already.
 */
int project_quota_set_limit(int fd, uint64_t bytes, uint64_t files, struct err *err) must_check;

/* Bytes and files that are in use, and how many files there can be. */
int project_quota_usage(int fd, struct keeper_stats *stats, struct err *err) must_check;
