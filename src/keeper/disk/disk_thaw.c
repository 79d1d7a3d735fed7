/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/disk/disk_thaw.h"

#include "base/fd.h"
#include "base/log.h"
#include "keeper/mount/directory.h"
#include "keeper/mount/mounts.h"

#include <errno.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#define DEVICE_MAX 64

/* Whether a loop device has the image of a sandbox as its file. */
static bool is_disk(const struct storage *storage, const char *device)
{
	auto_fd int loop = open(device, O_RDONLY | O_CLOEXEC);
	struct loop_info64 info;
	const struct dirent *entry;
	bool is_found = false;
	struct stat st;
	DIR *list;

	if (loop < 0 || ioctl(loop, LOOP_GET_STATUS64, &info) < 0 ||
		fstat(storage->workspaces_fd, &st) < 0 || st.st_dev != info.lo_device)
		return false;
	list = directory_list(storage->workspaces_fd);
	while (!is_found && (entry = directory_next(list)))
		is_found = entry->d_ino == info.lo_inode && keeper_is_id(entry->d_name, '.');
	directory_end(list);
	return is_found;
}

/* A mount of a device that has a file system already is one more mount of that. */
static void thaw(const char *device)
{
	auto_fd int fs = mounts_fsopen("ext4"), mount = -1, root = -1;

	if (fs < 0 || mounts_set_string(fs, "source", device) < 0)
		return;
	mount = mounts_fsmount(fs, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	root = mount < 0 ? -1 : openat(mount, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root >= 0 && ioctl(root, FITHAW, 0) == 0)
		log_warning("thawed the disk on %s, which an earlier keeper left frozen", device);
}

void disk_thaw_left(const struct storage *storage)
{
	auto_fd int blocks = open("/sys/block", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = blocks < 0 ? NULL : directory_list(blocks);
	const struct dirent *entry;

	while ((entry = directory_next(list))) {
		char device[DEVICE_MAX];

		if (strncmp(entry->d_name, "loop", 4) != 0)
			continue;
		snprintf(device, sizeof(device), "/dev/%.40s", entry->d_name);
		if (is_disk(storage, device))
			thaw(device);
	}
	directory_end(list);
}
