/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a sandbox ran out of: memory, processes, room on disk. A command that failed for one of these
 * often cannot say so itself.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The kernel's counters of the whole sandbox; -1 for a file that is not there, which counts as 0. */
struct scarcity {
	int memory_fd;
	int pids_fd;
};

struct scarcity_counts {
	uint64_t oom_kills;
	uint64_t refused_forks;
};

/* Called once at the start, before anybody in the sandbox could put other files in their place. */
void scarcity_open(struct scarcity *scarcity);
struct scarcity_counts scarcity_read(const struct scarcity *scarcity);

/* Whether a file system that commands write to has hardly a block, or no inode, left. */
bool scarcity_is_disk_full(void);
