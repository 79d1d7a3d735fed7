/* SPDX-License-Identifier: Apache-2.0 */
/* MKDIR, MOVE and REMOVE. */
#include "agent/files/disk_sync.h"
#include "agent/files/file.h"
#include "agent/files/path.h"
#include "agent/machine/dirents.h"
#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LEVELS_BYTES_MAX (64u * 1024 * 1024)
#define ATTEMPTS_MAX	 10

static int answer(struct helper_io *helper_io, int fd, unsigned flags)
{
	struct stat stat;

	if (fstat(fd, &stat) < 0)
		return -errno;
	helper_io_put_answer(helper_io, &stat, flags, "");
	return 0;
}

int file_mkdir(struct helper_io *helper_io, const struct payload_file *request)
{
	auto_fd int existing = path_open(AT_FDCWD, request->path, O_PATH | O_DIRECTORY, 0);
	auto_(path_place_fini) struct path_place place = PATH_PLACE_INIT;
	auto_(disk_sync_end) struct disk_sync sync = {.fd = -1};
	struct path_owner owner;
	auto_fd int fd = -1;
	int r;

	if (existing >= 0)
		return answer(helper_io, existing, AGENT_FILE_EXISTED);
	if (existing != -ENOENT && existing != -ENOTDIR)
		return existing;
	r = path_locate_new(request->path, &place);
	if (r == 0)
		r = path_complete(&place, request->user);
	if (r == 0)
		r = path_owner(place.dir, request->user, &owner);
	if (r < 0)
		return r;
	disk_sync_begin(&sync);
	if (mkdirat(place.dir, place.name, request->mode & 07777) < 0)
		return -errno;
	fd = path_open(place.dir, place.name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0)
		return fd;
	path_give(fd, &owner);
	r = disk_sync_all(&sync);
	return r < 0 ? r : answer(helper_io, fd, 0);
}

static int rename_new(const struct path_place *from, const struct path_place *to)
{
	struct stat stat;

	/* By number: musl has no renameat2(). */
	if (syscall(SYS_renameat2, from->dir, from->name, to->dir, to->name, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL)
		return -errno;
	/* EINVAL: a file system without that flag, or a directory moved into itself. */
	if (fstatat(to->dir, to->name, &stat, AT_SYMLINK_NOFOLLOW) == 0)
		return -EEXIST;
	return renameat(from->dir, from->name, to->dir, to->name) < 0 ? -errno : 0;
}

int file_move(struct helper_io *helper_io, const struct payload_file *request)
{
	auto_(path_place_fini) struct path_place from = PATH_PLACE_INIT;
	auto_(path_place_fini) struct path_place to = PATH_PLACE_INIT;
	auto_(disk_sync_end) struct disk_sync sync = {.fd = -1};
	char target[PATH_MAX] = "";
	struct stat stat;
	int r;

	if (request->to[0] != '/')
		return -EINVAL;
	disk_sync_begin(&sync);
	r = path_locate(request->path, &from);
	if (r == 0)
		r = path_locate(request->to, &to);
	if (r < 0)
		return r;
	if (fstatat(from.dir, from.name, &stat, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!request->flag)
		r = rename_new(&from, &to);
	else if (renameat(from.dir, from.name, to.dir, to.name) < 0)
		r = -errno;
	if (r == 0)
		r = disk_sync_all(&sync);
	if (r < 0)
		return r;
	if (fstatat(to.dir, to.name, &stat, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (S_ISLNK(stat.st_mode))
		path_read_link(to.dir, to.name, target);
	helper_io_put_answer(helper_io, &stat, 0, target);
	return 0;
}

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

static int remove_tree(const struct helper_io *helper_io, int dir)
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

static int remove_directory(const struct helper_io *helper_io, const struct path_place *place,
	int fd, bool is_recursive)
{
	/* Another process may put a new entry into it between emptying and removing. */
	for (int i = 0; i < ATTEMPTS_MAX; i++) {
		int r;

		if (unlinkat(place->dir, place->name, AT_REMOVEDIR) == 0)
			return 0;
		if (errno != ENOTEMPTY && errno != EEXIST)
			return -errno;
		if (!is_recursive)
			return -EISDIR;
		r = remove_tree(helper_io, fd);
		if (r < 0)
			return r;
	}
	return -ENOTEMPTY;
}

int file_remove(struct helper_io *helper_io, const struct payload_file *request)
{
	auto_(path_place_fini) struct path_place place = PATH_PLACE_INIT;
	auto_(disk_sync_end) struct disk_sync sync = {.fd = -1};
	auto_fd int fd = -1;
	struct stat stat;
	int r = path_locate(request->path, &place);

	if (r < 0)
		return r;
	disk_sync_begin(&sync);
	fd = path_open(place.dir, place.name, O_PATH | O_NOFOLLOW, RESOLVE_NO_XDEV);
	if (fd < 0)
		return fd == -EXDEV ? -EBUSY : fd;
	if (fstat(fd, &stat) < 0)
		return -errno;
	if (S_ISDIR(stat.st_mode))
		r = remove_directory(helper_io, &place, fd, request->flag);
	else if (unlinkat(place.dir, place.name, 0) < 0)
		r = -errno;
	if (r == 0)
		r = disk_sync_all(&sync);
	if (r == 0)
		helper_io_put_answer(helper_io, &stat, 0, "");
	return r;
}
