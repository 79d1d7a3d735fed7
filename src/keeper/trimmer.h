/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The member of the crew that looks after disks which have been in use for a while. Images are sparse and
 * larger than their limits; it sees to it that none takes more of the host than it holds.
 */
#pragma once

#include "keeper/crew.h"
#include "keeper/disk_image.h"

struct trimmer {
	const struct storage *storage;
	int mounted_fd; /* where disks are mounted, by the ids of their sandboxes */
	struct crew_member member;
};

void trimmer_start(
	struct trimmer *trimmer, const struct storage *storage, int mounted_fd, struct crew *crew);
