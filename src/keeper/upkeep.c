/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/upkeep.h"

#include "base/fd.h"
#include "keeper/image.h"
#include "keeper/userns.h"

#include <fcntl.h>
#include <unistd.h>

bool upkeep_is_plain(const struct disks *disks, const char *id)
{
	return faccessat(disks->storage->workspaces_fd, id, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int upkeep_count(
	const struct disks *disks, const char *id, struct keeper_stats *stats, struct err *err)
{
	auto_fd int home = disk_open_mounted(disks, id);
	int r = 0;

	if (home < 0 && !disk_exists(disks, id)) {
		storage_usage(disks->storage, id, stats);
		return 0;
	}
	if (home < 0)
		r = disk_borrow(disks, id, &home, err);
	if (r == 0)
		image_usage(home, stats);
	return r;
}

static int clean_disk(
	struct disks *disks, const struct keeper_request *request, bool may_wait, struct err *err)
{
	auto_fd int home = -1;
	int r;

	if (request->parts & KEEPER_PART_WORKSPACE)
		return disk_discard(disks, request->id, err);
	home = disk_open_mounted(disks, request->id);
	if (home >= 0) /* what is thrown away here goes when the disk leaves */
		return storage_clean_home(home, request->parts, err);
	if (!may_wait)
		return 1;
	if ((r = disk_borrow(disks, request->id, &home, err)) < 0 ||
		(r = storage_clean_home(home, request->parts, err)) < 0)
		return r;
	storage_empty_bins(home);
	disk_give_back(disks, request->id, home);
	return 0;
}

int upkeep_clean(struct disks *disks, const struct keeper_request *request, uint32_t base_uid,
	bool may_wait, struct err *err)
{
	if (disk_exists(disks, request->id))
		return clean_disk(disks, request, may_wait, err);
	return storage_clean(disks->storage, request->id, base_uid, request->parts, err);
}
