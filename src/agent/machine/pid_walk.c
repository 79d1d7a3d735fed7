/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/machine/pid_walk.h"

#include "base/fd.h"
#include "base/number.h"

#include <fcntl.h>

void pid_walk_open(struct pid_walk *walk)
{
	*walk = (struct pid_walk){
		.proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
		.entries = mem_new(DIRENTS_LEN),
	};
	dirents_begin(&walk->dirents, walk->proc_fd, walk->entries);
}

bool pid_walk_next(struct pid_walk *walk)
{
	uint64_t pid;

	while (dirents_next(&walk->dirents, &walk->name) > 0) {
		if (number_parse(walk->name, 1, INT32_MAX, &pid) < 0)
			continue;
		walk->pid = (pid_t)pid;
		return true;
	}
	return false;
}

void pid_walk_close(struct pid_walk *walk)
{
	fd_close(walk->proc_fd);
	free(walk->entries);
}
