/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/mount/directory.h"

#include "base/fd.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

int directory_open(int parent, const char *name)
{
	return openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

DIR *directory_list(int fd)
{
	int own = directory_open(fd, ".");
	DIR *list = own < 0 ? NULL : fdopendir(own);

	if (!list)
		fd_close(own);
	return list;
}

const struct dirent *directory_next(DIR *list)
{
	const struct dirent *entry;

	while (list && (entry = readdir(list))) {
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			return entry;
	}
	return NULL;
}

void directory_end(DIR *list)
{
	if (list)
		closedir(list);
}

unsigned directory_keep_first(
	char *names, size_t width, unsigned count, unsigned max, const char *name)
{
	unsigned at = 0;

	while (at < count && strcmp(names + at * width, name) < 0)
		at++;
	if (at == max || (at < count && strcmp(names + at * width, name) == 0))
		return count;
	if (count < max)
		count++;
	memmove(names + (at + 1) * width, names + at * width, (count - 1 - at) * width);
	snprintf(names + at * width, width, "%s", name);
	return count;
}
