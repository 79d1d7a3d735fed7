/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/disk/disk_trim.h"

#include "base/fd.h"
#include "base/log.h"
#include "keeper/disk/ext4_image.h"
#include "keeper/mount/directory.h"
#include "keeper/mount/mount_area.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define EVERY_S 3

static void trim(const struct disk_trim *disk_trim, const char *id)
{
	auto_fd int root = mount_area_open_mount(disk_trim->mounted_fd, id);
	auto_fd int home = -1;
	struct err ignored;

	if (root < 0 || disk_image_open_home(root, &home, &ignored) < 0)
		return;
	ext4_image_go_direct(home);
	if (ext4_image_has_failed(home)) {
		if (mkdirat(disk_trim->failed_fd, id, 0700) == 0)
			log_warning("the disk of %s failed and takes no more writes", id);
	} else if (ext4_image_host_has_room(disk_trim->storage->workspaces_fd)) {
		disk_image_give_back(disk_trim->storage, id, home);
	}
}

/* Removes the marks of disks that are mounted no more. */
static void forget_failed(const struct disk_trim *disk_trim)
{
	DIR *list = directory_list(disk_trim->failed_fd);
	const struct dirent *entry;

	while ((entry = directory_next(list))) {
		if (faccessat(disk_trim->mounted_fd, entry->d_name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
			unlinkat(disk_trim->failed_fd, entry->d_name, AT_REMOVEDIR);
	}
	directory_end(list);
}

/*
 * A create takes a pool disk without a check. If the keeper takes one at this moment, the create
 * fails.
 */
static void remove_failed_pool_disks(const struct disk_trim *disk_trim)
{
	DIR *list = directory_list(disk_trim->disk_pool->ready_fd);
	const struct dirent *entry;

	while ((entry = directory_next(list))) {
		auto_fd int root =
			mount_area_open_mount(disk_trim->disk_pool->ready_fd, entry->d_name);

		if (root < 0 || !ext4_image_has_failed(root))
			continue;
		log_warning("pool disk %s failed and is removed", entry->d_name);
		if (mount_area_unmount(disk_trim->disk_pool->ready_fd, entry->d_name) == 0) {
			mount_area_drop_place(disk_trim->disk_pool->ready_fd, entry->d_name);
			unlinkat(disk_trim->storage->pool_fd, entry->d_name, 0);
		}
	}
	directory_end(list);
}

static void run_trimmer(const void *arg, int wake_fd)
{
	const struct disk_trim *disk_trim = arg;

	(void)wake_fd;
	for (;;) {
		DIR *list = directory_list(disk_trim->mounted_fd);
		const struct dirent *entry;

		while ((entry = directory_next(list)))
			trim(disk_trim, entry->d_name);
		directory_end(list);
		forget_failed(disk_trim);
		remove_failed_pool_disks(disk_trim);
		sleep(EVERY_S);
	}
}

void disk_trim_start(struct disk_trim *disk_trim, struct helpers *helpers)
{
	disk_trim->helper =
		(struct helper){.name = "disk trimmer", .work = run_trimmer, .arg = disk_trim};
	helpers_add(helpers, &disk_trim->helper);
}
