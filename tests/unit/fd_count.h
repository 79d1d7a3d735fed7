/* SPDX-License-Identifier: Apache-2.0 */
/* How many descriptors this process has: for tests of whether any is left behind. */
#pragma once

#include <dirent.h>

static inline int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	while (dir && readdir(dir))
		count++;
	if (dir)
		closedir(dir);
	return count;
}
