/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/files/disk_sync.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/major.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#define DISK "/workspace"

void disk_sync_begin(struct disk_sync *sync)
{
	auto_fd int fd = open(DISK, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	sync->fd = -1;
	if (fd >= 0 && fstat(fd, &st) == 0 && major(st.st_dev) == LOOP_MAJOR)
		sync->fd = take_fd(&fd);
}

void disk_sync_end(struct disk_sync *sync)
{
	fd_close(sync->fd);
}

static bool is_on_overlay(int file)
{
	struct statfs fs;

	return fstatfs(file, &fs) == 0 && fs.f_type == OVERLAYFS_SUPER_MAGIC;
}

int disk_sync_content(const struct disk_sync *sync, int file)
{
	const unsigned how =
		SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;

	if (sync->fd < 0)
		return 0;
	if (is_on_overlay(file))
		return disk_sync_all(sync);
	/* Without waiting for the device: disk_sync_file follows. */
	return sync_file_range(file, 0, 0, how) < 0 ? -errno : 0;
}

int disk_sync_file(const struct disk_sync *sync, int file)
{
	if (sync->fd < 0)
		return 0;
	if (is_on_overlay(file))
		return disk_sync_all(sync);
	return fsync(file) < 0 ? -errno : 0;
}

int disk_sync_all(const struct disk_sync *sync)
{
	return sync->fd >= 0 && syncfs(sync->fd) < 0 ? -errno : 0;
}

int disk_sync_describe(int errnum)
{
	struct disk_sync sync;
	auto_fd int file = -1;

	if (errnum != EROFS)
		return errnum;
	/* Newer kernels show this in no flag, so we try: /workspace itself is never mounted read-only. */
	disk_sync_begin(&sync);
	if (sync.fd >= 0) {
		file = openat(sync.fd, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
		if (file < 0 && (errno == EROFS || errno == EIO))
			errnum = EIO;
	}
	disk_sync_end(&sync);
	return errnum;
}
