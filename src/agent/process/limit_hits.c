/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/process/limit_hits.h"

#include "agent/machine/cgroup_value.h"
#include "base/mem.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/vfs.h>

/* ext4 needs room for a whole folio before it takes any of a write: a disk with less is full. */
#define ROOM_FOR_A_WRITE (2u << 20)

/* The v1 hierarchies first: where they are, the controllers are not on v2. */
static int open_either(const char *v1, const char *v2)
{
	int fd = open(v1, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? open(v2, O_RDONLY | O_CLOEXEC) : fd;
}

void limit_hits_open(struct limit_hits *limit_hits)
{
	limit_hits->memory_fd = open_either(
		"/sys/fs/cgroup/memory/memory.oom_control", "/sys/fs/cgroup/memory.events");
	limit_hits->pids_fd =
		open_either("/sys/fs/cgroup/pids/pids.events", "/sys/fs/cgroup/pids.events");
}

struct limit_hits_counts limit_hits_read(const struct limit_hits *limit_hits)
{
	return (struct limit_hits_counts){
		.oom_kills = cgroup_value_read(limit_hits->memory_fd, "oom_kill"),
		.refused_forks = cgroup_value_read(limit_hits->pids_fd, "max"),
	};
}

bool limit_hits_is_disk_full(void)
{
	static const char *const places[] = {"/workspace", "/", "/tmp"};

	for (size_t i = 0; i < array_len(places); i++) {
		struct statfs disk;

		if (statfs(places[i], &disk) < 0)
			continue;
		/* Some file systems count no blocks, or no inodes, at all. */
		if ((disk.f_blocks > 0 &&
			    disk.f_bavail * (uint64_t)disk.f_bsize < ROOM_FOR_A_WRITE) ||
			(disk.f_files > 0 && disk.f_ffree == 0))
			return true;
	}
	return false;
}
