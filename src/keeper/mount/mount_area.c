/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/mount/mount_area.h"

#include "base/fd.h"
#include "keeper/mount/directory.h"
#include "keeper/mount/mounts.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

int mount_area_make(int place_fd, int *ret_fd, struct err *err)
{
	auto_fd int fs = mounts_fsopen("tmpfs");
	auto_fd int mount_area = -1;

	/* Without a size: the files on it are small, and count in the memory of the sandbox that
	 * writes them. */
	if (fs < 0 || mounts_set_string(fs, "mode", "0700") < 0 ||
		mounts_set_string(fs, "size", "0") < 0)
		return err_sys(err, "configure tmpfs for mounts");
	mount_area = mounts_fsmount(fs, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	if (mount_area < 0 || mounts_attach(mount_area, place_fd) < 0)
		return err_sys(err, "mount tmpfs for mounts");
	*ret_fd = take_fd(&mount_area);
	return 0;
}

int mount_area_open_section(int mount_area_fd, const char *name, int *ret_fd, struct err *err)
{
	auto_fd int place = -1, mount = -1;
	int fd, r;

	if (mkdirat(mount_area_fd, name, 0700) < 0 && errno != EEXIST)
		return err_sys(err, "make section %s of the mount area", name);
	place = directory_open(mount_area_fd, name);
	r = place < 0 ? err_sys(err, "open section %s of the mount area", name)
		      : mount_area_make(place, &mount, err);
	if (r < 0)
		return r;
	/* Opened as a directory: the mount's own descriptor is only O_PATH. */
	fd = directory_open(mount_area_fd, name);
	if (fd < 0)
		return err_sys(err, "open section %s of the mount area", name);
	*ret_fd = fd;
	return 0;
}

int mount_area_open_mount(int section_fd, const char *name)
{
	auto_fd int fd = directory_open(section_fd, name);
	struct stat here, there;

	if (fd < 0 || fstat(section_fd, &here) < 0 || fstat(fd, &there) < 0)
		return -errno;
	return here.st_dev == there.st_dev ? -ENOENT : take_fd(&fd);
}

int mount_area_put_mount(int section_fd, const char *name, int mount_fd, struct err *err)
{
	auto_fd int place = -1;

	if (mkdirat(section_fd, name, 0700) < 0 && errno != EEXIST)
		return err_sys(err, "make a place for mount %s", name);
	place = openat(section_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (place < 0 || mounts_attach(mount_fd, place) < 0) {
		int r = err_sys(err, "place mount %s", name);

		mount_area_drop_place(section_fd, name);
		return r;
	}
	return 0;
}

int mount_area_unmount(int section_fd, const char *name)
{
	char path[96];

	snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", section_fd, name);
	return umount2(path, MNT_DETACH) < 0 ? -errno : 0;
}

void mount_area_drop_place(int section_fd, const char *name)
{
	unlinkat(section_fd, name, AT_REMOVEDIR);
}
