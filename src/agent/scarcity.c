/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/scarcity.h"

#include "agent/knob.h"
#include "base/mem.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/vfs.h>

/* ext4 wants room for a whole folio before it takes any of a write: with a little left, it is full. */
#define ROOM_FOR_A_WRITE (2u << 20)

/* The v1 hierarchies first: where they are, the controllers are not on v2. */
static int open_either(const char *v1, const char *v2)
{
	int fd = open(v1, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? open(v2, O_RDONLY | O_CLOEXEC) : fd;
}

void scarcity_open(struct scarcity *scarcity)
{
	scarcity->memory_fd = open_either(
		"/sys/fs/cgroup/memory/memory.oom_control", "/sys/fs/cgroup/memory.events");
	scarcity->pids_fd =
		open_either("/sys/fs/cgroup/pids/pids.events", "/sys/fs/cgroup/pids.events");
}

struct scarcity_counts scarcity_read(const struct scarcity *scarcity)
{
	return (struct scarcity_counts){
		.oom_kills = knob_read(scarcity->memory_fd, "oom_kill"),
		.refused_forks = knob_read(scarcity->pids_fd, "max"),
	};
}

bool scarcity_is_disk_full(void)
{
	static const char *const places[] = {"/workspace", "/", "/tmp"};

	for (size_t i = 0; i < array_len(places); i++) {
		struct statfs disk;

		if (statfs(places[i], &disk) < 0)
			continue;
		/* Some count no blocks, or no inodes, at all. */
		if ((disk.f_blocks > 0 &&
			    disk.f_bavail * (uint64_t)disk.f_bsize < ROOM_FOR_A_WRITE) ||
			(disk.f_files > 0 && disk.f_ffree == 0))
			return true;
	}
	return false;
}
