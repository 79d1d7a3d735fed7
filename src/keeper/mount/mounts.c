/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/mount/mounts.h"

#include "base/fd.h"

int mounts_clone(
	int dirfd, const char *path, uint64_t attrs, int userns_fd, int *ret_fd, struct err *err)
{
	auto_fd int fd = mounts_open_tree(dirfd, path, AT_RECURSIVE);

	if (fd < 0)
		return err_sys(err, "clone mount %s", path);
	if (mounts_set_attr(fd, attrs, userns_fd, AT_RECURSIVE) < 0) {
		/* A file system that cannot map ids shows its files as owned by `nobody`; no
		 * wall depends on that. */
		attrs &= ~(uint64_t)MOUNT_ATTR_IDMAP;
		if (mounts_set_attr(fd, attrs, -1, AT_RECURSIVE) < 0)
			return err_sys(err, "set attributes of mount %s", path);
	}
	*ret_fd = take_fd(&fd);
	return 0;
}

int mounts_place(int mount_fd, const char *place, struct err *err)
{
	auto_fd int mount = mount_fd;
	auto_fd int target = mounts_open_beneath(AT_FDCWD, place, O_PATH);

	if (target < 0)
		return err_sys(err, "open mount point /%s", place);
	if (mounts_attach(mount, target) < 0)
		return err_sys(err, "mount /%s", place);
	return 0;
}

int mounts_replace(int mount_fd, const char *place, struct err *err)
{
	auto_fd int mount = mount_fd;
	auto_fd int target = mounts_open_beneath(AT_FDCWD, place, O_PATH | O_DIRECTORY);

	if (target < 0)
		return err_sys(err, "open mount point /%s", place);
	/* Else nothing is mounted there, or the kernel cannot. */
	if (mounts_attach_beneath(mount, target) < 0)
		return mounts_attach(mount, target) < 0 ? err_sys(err, "mount /%s", place) : 0;
	/* By descriptor: the sandbox may have moved the directories above since. */
	if (fchdir(target) < 0 || umount2(".", MNT_DETACH) < 0)
		return err_sys(err, "unmount what was at /%s", place);
	return 0;
}
