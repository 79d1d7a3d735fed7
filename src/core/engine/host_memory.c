/* SPDX-License-Identifier: Apache-2.0 */
#include "core/engine/host_memory.h"

#include "base/fd.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

uint64_t host_memory_available(void)
{
	char text[2048], *line;

	if (fd_read_file(AT_FDCWD, "/proc/meminfo", text, sizeof(text)) <= 0)
		return UINT64_MAX;
	line = strstr(text, "MemAvailable:");
	return line ? strtoull(line + strlen("MemAvailable:"), NULL, 10) * 1024 : UINT64_MAX;
}
