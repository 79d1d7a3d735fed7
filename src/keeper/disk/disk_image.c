/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/disk/disk_image.h"

#include "base/fd.h"
#include "base/log.h"
#include "keeper/disk/disk_list.h"
#include "keeper/disk/ext4_image.h"
#include "keeper/mount/directory.h"
#include "keeper/mount/mounts.h"
#include "keeper/namespace/userns.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
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

int disk_image_owner(const struct storage *storage, const char *id, uint32_t *ret_gid)
{
	char name[DISK_IMAGE_NAME_MAX];
	struct stat st;

	disk_image_name(id, name);
	if (fstatat(storage->workspaces_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (st.st_gid == 0)
		return 0;
	*ret_gid = st.st_gid;
	return 1;
}

void disk_image_mark(const struct storage *storage, const char *id, uint32_t base_gid)
{
	char name[DISK_IMAGE_NAME_MAX];
	uint32_t gid = 0;
	int r = disk_image_owner(storage, id, &gid);

	disk_image_name(id, name);
	if (r >= 0 && gid != base_gid)
		r = fchownat(
			storage->workspaces_fd, name, (uid_t)-1, base_gid, AT_SYMLINK_NOFOLLOW);
	/* Without the mark it only takes longer to find out. */
	if (r < 0 && r != -ENOENT)
		log_warning("the disk of %s is not marked with its uid range", id);
}

static int init_home(int mount_fd, struct err *err)
{
	auto_fd int home = -1;
	int r;

	if (mkdirat(mount_fd, HOME, 0700) < 0)
		return err_sys(err, "make the directory of a disk");
	r = disk_image_open_home(mount_fd, &home, err);
	return r < 0 ? r : storage_init_home(home, err);
}

int disk_image_make(
	const struct storage *storage, int *ret_file_fd, int *ret_mount_fd, struct err *err)
{
	auto_fd int file = -1, mount = -1;
	int r;

	if ((r = ext4_image_make(storage->pool_fd, &file, err)) < 0 ||
		(r = ext4_image_mount(file, &mount, err)) < 0 || (r = init_home(mount, err)) < 0)
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

static int open_file(const struct storage *storage, const char *id, int *ret_fd, struct err *err)
{
	char name[DISK_IMAGE_NAME_MAX];

	disk_image_name(id, name);
	*ret_fd = openat(storage->workspaces_fd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	return *ret_fd < 0 ? err_sys(err, "open the disk of %s", id) : 0;
}

/* The first uid of the range that a uid lies in. Images are mounted by root of the host alone. */
static uint32_t range_of(uint32_t uid)
{
	return uid < KEEPER_UID_FIRST ? uid : uid - (uid - KEEPER_UID_FIRST) % KEEPER_UID_COUNT;
}

int disk_image_map_range(int mount_fd, uint32_t wanted, struct err *err)
{
	auto_fd int home = -1, map = -1;
	uint32_t found = 0;
	int r = disk_image_open_home(mount_fd, &home, err);

	if (r < 0)
		return r;
	if (disk_list_home_owner(home, &found) != 1 || range_of(found) == range_of(wanted))
		return 0;
	r = userns_map_range(range_of(found), range_of(wanted), &map, err);
	if (r < 0)
		return r;
	if (mounts_set_attr(mount_fd, MOUNT_ATTR_IDMAP, map, 0) < 0)
		return err_sys(err, "map the uids of a disk");
	return 0;
}

int disk_image_mount(
	const struct storage *storage, const char *id, int *ret_mount_fd, struct err *err)
{
	auto_fd int file = -1, mount = -1;
	int r = open_file(storage, id, &file, err);
	uint32_t owner;

	if (r == 0)
		r = ext4_image_mount(file, &mount, err);
	/* A new image may have lost all that was not on the host's disk when that was full. */
	if (r == 0 && faccessat(mount, HOME, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
		r = init_home(mount, err);
	if (r == 0 && disk_image_owner(storage, id, &owner) == 1)
		r = disk_image_map_range(mount, owner, err);
	if (r == 0)
		*ret_mount_fd = take_fd(&mount);
	return r;
}

bool disk_image_maps_no_range(int home_fd)
{
	const uint32_t uid = KEEPER_UID_FIRST + KEEPER_LAYER_SLOT * KEEPER_UID_COUNT;

	return fchownat(home_fd, "trash", uid, uid, AT_SYMLINK_NOFOLLOW) == 0 &&
	       fchownat(home_fd, "trash", 0, 0, AT_SYMLINK_NOFOLLOW) == 0;
}

int disk_image_lend(
	const struct storage *storage, const char *id, uid_t uid, int *ret_file_fd, struct err *err)
{
	auto_fd int file = -1;
	int r = open_file(storage, id, &file, err);

	if (r == 0)
		r = ext4_image_lend(file, uid, err);
	if (r > 0)
		*ret_file_fd = take_fd(&file);
	return r;
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
	int r;

	disk_image_name(id, name);
	file = openat(storage->workspaces_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (file < 0 || !ext4_image_is_bloated(file, fd))
		return;
	r = ext4_image_trim(file, fd);
	if (r < 0)
		log_warning("the free blocks of the disk of %s stay: %s", id, strerror(-r));
}
