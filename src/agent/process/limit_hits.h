/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a sandbox ran out of: memory, processes, room on disk. A command that failed for that often
 * cannot say so itself.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The kernel's counters of the whole sandbox; -1 for a file that is not there, which counts as 0. */
struct limit_hits {
	int memory_fd;
	int pids_fd;
};

struct limit_hits_counts {
	uint64_t oom_kills;
	uint64_t refused_forks;
};

/*
 * Called once at the start, before a program of the sandbox could put other files in their place.
 */
void limit_hits_open(struct limit_hits *limit_hits);
struct limit_hits_counts limit_hits_read(const struct limit_hits *limit_hits);

/* Whether a file system that commands write to has hardly a block, or no inode, left. */
bool limit_hits_is_disk_full(void);
