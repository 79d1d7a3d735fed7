/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/machine/cgroup_value.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

uint64_t cgroup_value_read(int fd, const char *key)
{
	char text[1024];
	ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);
	size_t len = strlen(key);

	if (n <= 0)
		return 0;
	text[n] = '\0';
	for (const char *at = text; at; at = strchr(at, '\n')) {
		at += *at == '\n';
		if (strncmp(at, key, len) == 0 && at[len] == ' ')
			return strtoull(at + len, NULL, 10);
	}
	return 0;
}
