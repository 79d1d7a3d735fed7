/* SPDX-License-Identifier: Apache-2.0 */
/* MKDIR, MOVE and REMOVE. */
#include "agent/files/disk_sync.h"
#include "agent/files/path.h"
#include "agent/files/request/file.h"
#include "agent/files/tree_remove.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

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
		r = path_locate_new(request->to, &to);
	if (r < 0)
		return r;
	if (fstatat(from.dir, from.name, &stat, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	r = path_complete(&to, request->user);
	if (r < 0)
		return r;
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
		r = tree_remove(helper_io, place.dir, place.name, request->flag);
	else if (unlinkat(place.dir, place.name, 0) < 0)
		r = -errno;
	if (r == 0)
		r = disk_sync_all(&sync);
	if (r == 0)
		helper_io_put_answer(helper_io, &stat, 0, "");
	return r;
}
