/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/trash.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "keeper/directory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A name in the trash that nothing else has: inode and time together do not come twice. */
static void new_name(uint64_t inode, char name[64])
{
	snprintf(name, 64, "%llx-%llx", (unsigned long long)inode,
		(unsigned long long)clock_steady_us());
}

int trash_discard(const struct storage *storage, int dirfd, const char *name, struct err *err)
{
	struct stat st;
	char to[64];

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_sys(err, "look at %s", name);
	new_name(st.st_ino, to);
	if (renameat(dirfd, name, storage->trash_fd, to) < 0)
		return err_sys(err, "move %s into the trash", name);
	return 0;
}

/*
 * Empties one directory of the shredder; directories in it move up into the shredder, so that a tree of any
 * depth is taken apart without recursion and with two descriptors.
 */
static void flatten(const struct storage *storage, const char *name)
{
	auto_fd int fd = directory_open(storage->shredder_fd, name);
	DIR *list = fd < 0 ? NULL : directory_list(fd);
	const struct dirent *entry;

	while ((entry = directory_next(list))) {
		char to[64];

		if (unlinkat(fd, entry->d_name, 0) == 0 ||
			unlinkat(fd, entry->d_name, AT_REMOVEDIR) == 0)
			continue;
		new_name(entry->d_ino, to);
		if (renameat(fd, entry->d_name, storage->shredder_fd, to) < 0)
			log_warning("the shredder keeps an entry: %s", strerror(errno));
	}
	directory_end(list);
}

/* Whether anything could be removed. */
static bool shred(const struct storage *storage)
{
	DIR *list = directory_list(storage->shredder_fd);
	const struct dirent *entry;
	bool progress = false;

	while ((entry = directory_next(list))) {
		const char *name = entry->d_name;

		if (unlinkat(storage->shredder_fd, name, 0) < 0) {
			flatten(storage, name);
			if (unlinkat(storage->shredder_fd, name, AT_REMOVEDIR) < 0)
				continue;
		}
		progress = true;
	}
	directory_end(list);
	return progress;
}

/* Whether there was anything. */
static bool fill_shredder(const struct storage *storage)
{
	DIR *list = directory_list(storage->trash_fd);
	const struct dirent *entry;
	bool progress = false;

	while ((entry = directory_next(list))) {
		if (renameat(storage->trash_fd, entry->d_name, storage->shredder_fd,
			    entry->d_name) == 0)
			progress = true;
	}
	directory_end(list);
	return progress;
}

void trash_empty(const struct storage *storage)
{
	bool progress;

	do {
		progress = fill_shredder(storage);
		progress |= shred(storage);
	} while (progress);
}
