/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/mount/mounts.h"

#include "base/fd.h"

#include <errno.h>
#include <sys/stat.h>

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

/* An image, or root in the sandbox, may have put a link or a file where sandboxes have a directory. */
static int place_failed(int target, const char *place, struct err *err)
{
	int r = err_sys(err, "mount /%s", place);
	struct stat st;

	if ((r != -EINVAL && r != -ENOTDIR) || fstat(target, &st) < 0 || S_ISDIR(st.st_mode))
		return r;
	return err_explain(err, ERR_UNPROCESSABLE, "invalid_root",
		"use an image in which that is a directory, or reset the sandbox that changed it",
		"nothing can be mounted at /%s, which is no directory there", place);
}

int mounts_place(int mount_fd, const char *place, struct err *err)
{
	auto_fd int mount = mount_fd;
	auto_fd int target = mounts_open_beneath(AT_FDCWD, place, O_PATH);

	if (target < 0)
		return err_sys(err, "open mount point /%s", place);
	return mounts_attach(mount, target) < 0 ? place_failed(target, place, err) : 0;
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
