/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/disk/next_disk.h"

#include "base/fail_point.h"
#include "base/fd.h"
#include "base/log.h"
#include "keeper/disk/disk_image.h"
#include "keeper/disk/ext4_image.h"
#include "keeper/mount/mount_area.h"
#include "keeper/mount/mounts.h"

#include <errno.h>
#include <string.h>

int next_disk_mount(
	const struct disks *disks, const char *snapshot, int copy_fd, int loop_fd, struct err *err)
{
	auto_fd int mount = -1;
	int r = ext4_image_mount_attached(copy_fd, loop_fd, &mount, err);

	if (r == 0)
		r = mount_area_put_mount(disks->disk_mount.mounted_fd, snapshot, mount, err);
	fail_point("snapshot.mounted");
	return r;
}

static int unmount(const struct disks *disks, const char *snapshot)
{
	return mount_area_unmount(disks->disk_mount.mounted_fd, snapshot);
}

/* What was mounted somewhere takes no map any more, but a clone of it does. */
int next_disk_map(
	const struct disks *disks, const char *snapshot, uint32_t base_uid, struct err *err)
{
	int mounted_fd = disks->disk_mount.mounted_fd, r;
	auto_fd int root = mount_area_open_mount(mounted_fd, snapshot), mount = -1;

	if (root == -ENOENT)
		return 0;
	if (root < 0)
		return err_from(err, root, "open the disk of a fork");
	if ((r = mounts_clone(root, "", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, -1, &mount, err)) <
			0 ||
		(r = disk_image_map_range(mount, base_uid, err)) < 0)
		return r;
	fd_close(take_fd(&root));
	r = unmount(disks, snapshot);
	if (r < 0)
		return err_from(err, r, "replace the mount of the disk of a fork");
	fail_point("snapshot.mapped");
	return mount_area_put_mount(mounted_fd, snapshot, mount, err);
}

int next_disk_give(const struct disks *disks, const char *snapshot, const char *id, struct err *err)
{
	int mounted_fd = disks->disk_mount.mounted_fd, r;
	auto_fd int mount = mount_area_open_mount(mounted_fd, snapshot);

	if (mount == -ENOENT)
		return 0;
	if (mount < 0)
		return err_from(err, mount, "open the disk of a fork");
	r = mount_area_put_mount(mounted_fd, id, mount, err);
	if (r < 0)
		return r;
	mount_area_drop_place(mounted_fd, snapshot);
	return 1;
}

/* Nothing of it needs to come to the host's disk, so the unmount does not wait for that. */
void next_disk_drop(const struct disks *disks, const char *snapshot)
{
	int mounted_fd = disks->disk_mount.mounted_fd, r;
	auto_fd int root = mount_area_open_mount(mounted_fd, snapshot);

	if (root == -ENOENT)
		return;
	if (root >= 0)
		ext4_image_shutdown(root);
	fd_close(take_fd(&root));
	r = unmount(disks, snapshot);
	if (r < 0)
		log_warning("the disk of a fork stays mounted: %s", strerror(-r));
	else
		mount_area_drop_place(mounted_fd, snapshot);
}
