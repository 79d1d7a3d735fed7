/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/shelf.h"

#include "base/fd.h"
#include "keeper/directory.h"
#include "keeper/mounts.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

int shelf_make(int place_fd, int *ret_fd, struct err *err)
{
	auto_fd int fs = mounts_fsopen("tmpfs");
	auto_fd int shelf = -1;

	/* Without a size: what lies on it is small, and paid for by the sandbox that writes. */
	if (fs < 0 || mounts_set_string(fs, "mode", "0700") < 0 ||
		mounts_set_string(fs, "size", "0") < 0)
		return err_sys(err, "configure tmpfs for mounts");
	shelf = mounts_fsmount(fs, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	if (shelf < 0 || mounts_attach(shelf, place_fd) < 0)
		return err_sys(err, "mount tmpfs for mounts");
	*ret_fd = take_fd(&shelf);
	return 0;
}

int shelf_open_section(int shelf_fd, const char *name, int *ret_fd, struct err *err)
{
	auto_fd int place = -1, mount = -1;
	int fd, r;

	if (mkdirat(shelf_fd, name, 0700) < 0 && errno != EEXIST)
		return err_sys(err, "make section %s of the shelf", name);
	place = directory_open(shelf_fd, name);
	r = place < 0 ? err_sys(err, "open section %s of the shelf", name)
		      : shelf_make(place, &mount, err);
	if (r < 0)
		return r;
	/* As a directory: what was mounted is only a place. */
	fd = directory_open(shelf_fd, name);
	if (fd < 0)
		return err_sys(err, "open section %s of the shelf", name);
	*ret_fd = fd;
	return 0;
}

int shelf_open_mount(int section_fd, const char *name)
{
	auto_fd int fd = directory_open(section_fd, name);
	struct stat here, there;

	if (fd < 0 || fstat(section_fd, &here) < 0 || fstat(fd, &there) < 0)
		return -errno;
	return here.st_dev == there.st_dev ? -ENOENT : take_fd(&fd);
}

int shelf_put_mount(int section_fd, const char *name, int mount_fd, struct err *err)
{
	auto_fd int place = -1;

	if (mkdirat(section_fd, name, 0700) < 0 && errno != EEXIST)
		return err_sys(err, "make a place for mount %s", name);
	place = openat(section_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (place < 0 || mounts_attach(mount_fd, place) < 0) {
		int r = err_sys(err, "place mount %s", name);

		shelf_drop_place(section_fd, name);
		return r;
	}
	return 0;
}

int shelf_unmount(int section_fd, const char *name)
{
	char path[96];

	snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", section_fd, name);
	return umount2(path, MNT_DETACH) < 0 ? -errno : 0;
}

void shelf_drop_place(int section_fd, const char *name)
{
	unlinkat(section_fd, name, AT_REMOVEDIR);
}
