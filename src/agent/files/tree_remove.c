/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/files/tree_remove.h"

#include "agent/files/path.h"
#include "agent/machine/dirents.h"
#include "base/buf.h"
#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <unistd.h>

#define LEVELS_BYTES_MAX (64u * 1024 * 1024)
#define ATTEMPTS_MAX	 10

/*
 * Empties a tree without recursion and without a list of names. `levels` remembers only which
 * directory each ".." must lead to: another process may move a directory away while it is being
 * emptied, and then ".." is a directory that must not be removed. Coming back up, it reads the
 * directory from its beginning: what is done is gone, so its first names are the ones still to do.
 */
struct remover {
	const struct helper_io *helper_io;
	int dir;
	struct buf levels; /* struct level */
	char *entries;
};

struct level {
	dev_t device;
	ino_t inode;
};

static void remover_fini(struct remover *remover)
{
	fd_close(remover->dir);
	buf_fini(&remover->levels);
	free(remover->entries);
}

/* Goes one level down, never into a mount. */
static int remover_enter(struct remover *remover, const char *name)
{
	int dir =
		path_open(remover->dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, RESOLVE_NO_XDEV);
	struct stat stat;
	struct level level;

	if (dir < 0)
		return dir == -EXDEV ? -EBUSY : dir;
	if (fstat(remover->dir, &stat) < 0) {
		fd_close(dir);
		return -EIO;
	}
	level = (struct level){.device = stat.st_dev, .inode = stat.st_ino};
	fd_close(remover->dir);
	remover->dir = dir;
	return buf_append(&remover->levels, &level, sizeof(level)) < 0 ? -ENOMEM : 0;
}

static int remover_leave(struct remover *remover)
{
	int dir = path_open(remover->dir, "..", O_RDONLY | O_DIRECTORY, 0);
	struct stat stat;
	struct level *level;

	if (dir < 0)
		return dir;
	fd_close(remover->dir);
	remover->dir = dir;
	remover->levels.len -= sizeof(*level);
	level = (struct level *)(void *)(remover->levels.data + remover->levels.len);
	if (fstat(dir, &stat) < 0 || stat.st_dev != level->device || stat.st_ino != level->inode)
		return -EBUSY;
	return 0;
}

/* 0: gone; 1: a directory that has entries; -errno. */
static int remove_one(int dir, const char *name, bool is_directory)
{
	if (!is_directory && unlinkat(dir, name, 0) == 0)
		return 0;
	if (is_directory || errno == EISDIR || errno == EPERM) {
		int saved = is_directory ? 0 : errno;

		if (unlinkat(dir, name, AT_REMOVEDIR) == 0)
			return 0;
		if (errno == ENOTEMPTY || errno == EEXIST)
			return 1;
		if (errno == ENOTDIR && saved)
			errno = saved;
	}
	return errno == ENOENT ? 0 : -errno;
}

/* Removes what it can of the present directory. 1: went into a directory below; 0: it is empty. */
static int remove_entries(struct remover *remover)
{
	struct dirents dirents;
	const char *name;
	int r;

	dirents_begin(&dirents, remover->dir, remover->entries);
	while ((r = dirents_next(&dirents, &name)) > 0) {
		r = remove_one(remover->dir, name, dirents.type == DT_DIR);
		if (r < 0)
			return r;
		if (r == 0)
			continue;
		r = remover_enter(remover, name);
		if (r != -ENOENT && r != -ENOTDIR)
			return r < 0 ? r : 1;
	}
	return r;
}

static int empty(const struct helper_io *helper_io, int dir)
{
	auto_(remover_fini) struct remover remover = {
		.helper_io = helper_io,
		.dir = path_open(dir, ".", O_RDONLY | O_DIRECTORY, 0),
		.levels = BUF_INIT(LEVELS_BYTES_MAX),
		.entries = mem_new(DIRENTS_LEN),
	};

	if (remover.dir < 0)
		return remover.dir;
	while (helper_io_is_wanted(helper_io)) {
		int r = remove_entries(&remover);

		if (r == 0 && remover.levels.len == 0)
			return 0;
		if (r == 0)
			r = remover_leave(&remover);
		if (r < 0)
			return r;
	}
	return -EPIPE;
}

int tree_remove(const struct helper_io *helper_io, int dir, const char *name, bool is_recursive)
{
	/* Another process may put a new entry into it between emptying and removing. */
	for (int i = 0; i < ATTEMPTS_MAX; i++) {
		auto_fd int fd = -1;
		int r;

		if (unlinkat(dir, name, AT_REMOVEDIR) == 0)
			return 0;
		if (errno != ENOTEMPTY && errno != EEXIST)
			return -errno;
		if (!is_recursive)
			return -EISDIR;
		fd = path_open(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, RESOLVE_NO_XDEV);
		if (fd < 0)
			return fd == -EXDEV ? -EBUSY : fd;
		r = empty(helper_io, fd);
		if (r < 0)
			return r;
	}
	return -ENOTEMPTY;
}
