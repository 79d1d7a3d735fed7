/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/disk/disk_mount.h"

#include "base/fail_point.h"
#include "base/fd.h"
#include "base/log.h"
#include "keeper/disk/ext4_image.h"
#include "keeper/mount/directory.h"
#include "keeper/mount/mount_area.h"

#include <stdio.h>
#include <unistd.h>

/* --- taking a disk from the pool --- */

/*
 * Moves the mount of a pool disk from a place on the mount area to that of `taker`, and its image
 * to a new name. The keeper does it, not a child, which may be killed between the two steps: then
 * the image would stay mounted at a place that no code looks at.
 */
static int move_pool_disk(struct disk_mount *disk_mount, int from_fd, const char *pool_disk,
	const char *taker, int dirfd, const char *image, struct err *err)
{
	auto_fd int mount = mount_area_open_mount(from_fd, pool_disk);
	int pool_fd = disk_mount->storage->pool_fd, r;
	struct err ignored;

	if (mount < 0)
		return err_set(err, ERR_UNAVAILABLE, "pool disk %s is not mounted", pool_disk);
	r = mount_area_put_mount(disk_mount->mounted_fd, taker, mount, err);
	if (r < 0)
		return r;
	mount_area_drop_place(from_fd, pool_disk);
	fail_point("disk.pool_disk_moved");
	if (renameat(pool_fd, pool_disk, dirfd, image) < 0) {
		r = err_sys(err, "give %s its disk", taker);
		(void)!disk_unmount_discard(
			&disk_mount->unmounts, taker, pool_fd, pool_disk, &ignored);
		return r;
	}
	fail_point("disk.pool_disk_named");
	return 0;
}

/* Makes a pool disk the disk of id. */
static int give_pool_disk(struct disk_mount *disk_mount, int from_fd, const char *pool_disk,
	const char *id, struct err *err)
{
	char image[DISK_IMAGE_NAME_MAX];

	disk_image_name(id, image);
	return move_pool_disk(
		disk_mount, from_fd, pool_disk, id, disk_mount->storage->workspaces_fd, image, err);
}

int disk_mount_take(struct disk_mount *disk_mount, const char *id, struct err *err)
{
	char pool_disk[DISK_IMAGE_NAME_MAX];

	if (!disk_pool_find(&disk_mount->disk_pool, pool_disk))
		return 0;
	return give_pool_disk(disk_mount, disk_mount->disk_pool.ready_fd, pool_disk, id, err);
}

int disk_mount_reserve(struct disk_mount *disk_mount, const char *name, struct err *err)
{
	char pool_disk[DISK_IMAGE_NAME_MAX];

	if (!disk_pool_find(&disk_mount->disk_pool, pool_disk))
		return err_set(err, ERR_UNAVAILABLE, "the disk pool is empty");
	return move_pool_disk(disk_mount, disk_mount->disk_pool.ready_fd, pool_disk, name,
		disk_mount->storage->pool_fd, name, err);
}

int disk_mount_hand_over(
	struct disk_mount *disk_mount, const char *name, const char *id, struct err *err)
{
	return give_pool_disk(disk_mount, disk_mount->mounted_fd, name, id, err);
}

void disk_mount_unreserve(struct disk_mount *disk_mount, const char *name)
{
	int pool_fd = disk_mount->storage->pool_fd;
	struct err err;

	if (disk_unmount_discard(&disk_mount->unmounts, name, pool_fd, name, &err) < 0) {
		log_warning("%s", err.message);
		disk_unmount_park(&disk_mount->unmounts, name);
	}
}

int disk_mount_discard(struct disk_mount *disk_mount, const char *id, struct err *err)
{
	int workspaces_fd = disk_mount->storage->workspaces_fd;
	char name[DISK_IMAGE_NAME_MAX];

	disk_image_name(id, name);
	return disk_unmount_discard(&disk_mount->unmounts, id, workspaces_fd, name, err);
}

/* --- opening --- */

static int make_for(
	const struct disk_mount *disk_mount, const char *id, int *ret_mount_fd, struct err *err)
{
	auto_fd int file = -1;
	char name[DISK_IMAGE_NAME_MAX];
	int r = disk_image_make(disk_mount->storage, &file, ret_mount_fd, err);

	disk_image_name(id, name);
	return r < 0 ? r : disk_image_link(file, disk_mount->storage->workspaces_fd, name, err);
}

/* Mounts the image of a sandbox in its place, and makes it if there is none. */
static int mount_root(
	const struct disk_mount *disk_mount, const char *id, int *ret_fd, struct err *err)
{
	auto_fd int mount = -1;
	int r = disk_image_exists(disk_mount->storage, id)
			? disk_image_mount(disk_mount->storage, id, &mount, err)
			: make_for(disk_mount, id, &mount, err);

	if (r == 0)
		r = mount_area_put_mount(disk_mount->mounted_fd, id, mount, err);
	if (r == 0)
		r = fail_point_check("disk.mounted", err);
	if (r < 0)
		return r;
	/* Opened at its place: before 6.15 only what is mounted somewhere can be cloned. */
	*ret_fd = disk_mount_open_root(disk_mount, id);
	return *ret_fd < 0 ? err_sys(err, "open the disk of %s", id) : 0;
}

int disk_mount_open_root(const struct disk_mount *disk_mount, const char *id)
{
	return mount_area_open_mount(disk_mount->mounted_fd, id);
}

int disk_mount_open_home(const struct disk_mount *disk_mount, const char *id, int root_fd,
	int *ret_home_fd, struct err *err)
{
	auto_fd int mounted = -1;

	if (root_fd < 0) {
		int r = mount_root(disk_mount, id, &mounted, err);

		if (r < 0)
			return r;
		root_fd = mounted;
	}
	return disk_image_open_home(root_fd, ret_home_fd, err);
}

int disk_mount_open_mounted(const struct disk_mount *disk_mount, const char *id)
{
	auto_fd int root = disk_mount_open_root(disk_mount, id);
	struct err ignored;
	int home = -1;

	if (root >= 0)
		(void)!disk_image_open_home(root, &home, &ignored);
	return home;
}

/* Looks again: the mark may be from an earlier run of the sandbox. */
static bool has_failed(const struct disk_mount *disk_mount, const char *name)
{
	auto_fd int home = disk_mount_open_mounted(disk_mount, name);

	return home >= 0 && ext4_image_has_failed(home);
}

uint32_t disk_mount_list_failed(
	const struct disk_mount *disk_mount, char ids[][KEEPER_ID_LEN + 1], uint32_t max)
{
	DIR *list = directory_list(disk_mount->failed_fd);
	const struct dirent *entry;
	uint32_t count = 0;

	while (count < max && (entry = directory_next(list))) {
		if (keeper_is_id(entry->d_name, '\0') && has_failed(disk_mount, entry->d_name))
			snprintf(ids[count++], KEEPER_ID_LEN + 1, "%s", entry->d_name);
	}
	directory_end(list);
	return count;
}

int disk_mount_borrow(
	const struct disk_mount *disk_mount, const char *id, int *ret_home_fd, struct err *err)
{
	auto_fd int mount = -1;
	int r = disk_image_mount(disk_mount->storage, id, &mount, err);

	return r < 0 ? r : disk_image_open_home(mount, ret_home_fd, err);
}

/* --- at the start of the keeper --- */

int disk_mount_try(struct disk_mount *disk_mount, struct err *err)
{
	auto_fd int file = -1, mount = -1, limit_fd = -1;
	int r;

	if ((r = disk_image_make(disk_mount->storage, &file, &mount, err)) < 0 ||
		(r = ext4_image_open_limit(mount, &limit_fd, err)) < 0 ||
		(r = ext4_image_set_limit(mount, limit_fd, 1 << 20, err)) < 0)
		return r;
	ext4_image_usage(mount, &disk_mount->unmounts.blank);
	return 0;
}

int disk_mount_open(struct disk_mount *disk_mount, const struct storage *storage, int mount_area_fd,
	struct helpers *helpers, struct err *err)
{
	int r;

	*disk_mount = (struct disk_mount){.storage = storage};
	if ((r = mount_area_open_section(mount_area_fd, "disks", &disk_mount->mounted_fd, err)) <
			0 ||
		(r = mount_area_open_section(
			 mount_area_fd, "failed", &disk_mount->failed_fd, err)) < 0 ||
		(r = disk_pool_open(&disk_mount->disk_pool, storage, mount_area_fd, helpers, err)) <
			0 ||
		(r = disk_unmount_open(&disk_mount->unmounts, &disk_mount->disk_pool, mount_area_fd,
			 disk_mount->mounted_fd, err)) < 0)
		return r;
	helpers_share_fd(helpers, disk_mount->mounted_fd);
	helpers_share_fd(helpers, disk_mount->failed_fd);
	return 0;
}

void disk_mount_start(struct disk_mount *disk_mount, bool fills_pool)
{
	struct helpers *helpers = disk_mount->disk_pool.helpers;

	if (fills_pool)
		disk_pool_start(&disk_mount->disk_pool);
	disk_mount->disk_trim = (struct disk_trim){.storage = disk_mount->storage,
		.disk_pool = &disk_mount->disk_pool,
		.mounted_fd = disk_mount->mounted_fd,
		.failed_fd = disk_mount->failed_fd};
	disk_trim_start(&disk_mount->disk_trim, helpers);
}
