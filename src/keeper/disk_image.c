/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/disk_image.h"

#include "base/fd.h"
#include "keeper/directory.h"
#include "keeper/image.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define HOME "home" /* below it ext4 keeps things near each other */

void disk_image_name(const char *id, char name[static DISK_IMAGE_NAME_MAX])
{
	snprintf(name, DISK_IMAGE_NAME_MAX, "%s.img", id);
}

bool disk_image_exists(const struct storage *storage, const char *id)
{
	char name[DISK_IMAGE_NAME_MAX];

	disk_image_name(id, name);
	return faccessat(storage->workspaces_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int disk_image_make(
	const struct storage *storage, int *ret_file_fd, int *ret_mount_fd, struct err *err)
{
	auto_fd int file = -1, mount = -1, home = -1;
	int r;

	if ((r = image_make(storage->spares_fd, &file, err)) < 0 ||
		(r = image_mount(file, &mount, err)) < 0)
		return r;
	if (mkdirat(mount, HOME, 0700) < 0)
		return err_sys(err, "make the directory of a disk");
	if ((r = disk_image_open_home(mount, &home, err)) < 0 ||
		(r = storage_furnish(home, err)) < 0)
		return r;
	*ret_file_fd = take_fd(&file);
	*ret_mount_fd = take_fd(&mount);
	return 0;
}

int disk_image_link(int file_fd, int dirfd, const char *name, struct err *err)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", file_fd);
	if (linkat(AT_FDCWD, path, dirfd, name, AT_SYMLINK_FOLLOW) < 0)
		return err_sys(err, "name image %s", name);
	return 0;
}

int disk_image_mount(
	const struct storage *storage, const char *id, int *ret_mount_fd, struct err *err)
{
	char name[DISK_IMAGE_NAME_MAX];
	auto_fd int file = -1;

	disk_image_name(id, name);
	file = openat(storage->workspaces_fd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (file < 0)
		return err_sys(err, "open the disk of %s", id);
	return image_mount(file, ret_mount_fd, err);
}

int disk_image_open_home(int root_fd, int *ret_home_fd, struct err *err)
{
	int fd = directory_open(root_fd, HOME);

	if (fd < 0)
		return err_sys(err, "open the directory of a disk");
	*ret_home_fd = fd;
	return 0;
}

void disk_image_give_back(const struct storage *storage, const char *id, int fd)
{
	char name[DISK_IMAGE_NAME_MAX];
	auto_fd int file = -1;

	disk_image_name(id, name);
	file = openat(storage->workspaces_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (file >= 0)
		image_trim(file, fd);
}
