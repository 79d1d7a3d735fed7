/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/namespace/ipcns.h"

#include "base/fd.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int ipcns_limit(const struct keeper_limits *limits, struct err *err)
{
	char pages[32];
	const struct {
		const char *path, *value;
	} knobs[] = {
		{"proc/sys/kernel/shmall", pages},
		{"proc/sys/kernel/msgmni", "512"},
		/* in a set, in all, in one call, sets */
		{"proc/sys/kernel/sem", "1000 32000 500 1024"},
	};

	snprintf(pages, sizeof(pages), "%llu",
		(unsigned long long)(limits->memory_bytes / 2 / (uint64_t)sysconf(_SC_PAGESIZE)));
	for (size_t i = 0; i < array_len(knobs); i++) {
		int r = fd_write_file(AT_FDCWD, knobs[i].path, knobs[i].value);

		if (r < 0)
			return err_from(err, r, "write /%s", knobs[i].path);
	}
	return 0;
}
