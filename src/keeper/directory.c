/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/directory.h"

#include "base/fd.h"

#include <fcntl.h>
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
