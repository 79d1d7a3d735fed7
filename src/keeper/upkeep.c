/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/upkeep.h"

#include "base/fd.h"
#include "keeper/inventory.h"
#include "keeper/userns.h"

#include <fcntl.h>
#include <unistd.h>

int upkeep_count(
	const struct disks *disks, const char *id, struct keeper_stats *stats, struct err *err)
{
	auto_fd int home = disk_open_mounted(disks, id);
	int r = 0;

	if (home < 0 && !disk_exists(disks, id)) {
		inventory_usage(disks->storage, id, stats);
		return 0;
	}
	if (home < 0)
		r = disk_borrow(disks, id, &home, err);
	if (r == 0)
		r = disk_usage(disks, id, home, stats, err);
	return r;
}

bool upkeep_is_quick(const struct disks *disks, const struct keeper_request *request)
{
	return (request->parts & KEEPER_PART_WORKSPACE) || !disk_exists(disks, request->id) ||
	       disk_way_of(disks, request->id) == DISK_QUOTA;
}

/* What is thrown away on an image that is mounted goes when the image leaves. */
static int clean_disk(
	const struct disks *disks, const struct keeper_request *request, struct err *err)
{
	auto_fd int home = disk_open_mounted(disks, request->id);
	int r;

	if (home >= 0) {
		r = storage_clean_home(home, request->parts, err);
		disk_clear_up(disks, request->id);
		return r;
	}
	if ((r = disk_borrow(disks, request->id, &home, err)) < 0 ||
		(r = storage_clean_home(home, request->parts, err)) < 0)
		return r;
	storage_empty_bins(home);
	disk_give_back(disks, request->id, home);
	return 0;
}

int upkeep_clean(struct disks *disks, const struct keeper_request *request, uint32_t base_uid,
	struct err *err)
{
	if (!disk_exists(disks, request->id))
		return storage_clean(disks->storage, request->id, base_uid, request->parts, err);
	if (request->parts & KEEPER_PART_WORKSPACE)
		return disk_discard(disks, request->id, err);
	return clean_disk(disks, request, err);
}
