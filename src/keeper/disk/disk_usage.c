/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/disk/disk_usage.h"

#include "base/fd.h"
#include "keeper/disk/disk_image.h"
#include "keeper/disk/disk_list.h"
#include "keeper/disk/ext4_image.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int disk_usage_count(
	const struct disks *disks, const char *id, struct keeper_stats *stats, struct err *err)
{
	auto_fd int home = disk_open_mounted(disks, id);
	int r = 0;

	if (home < 0 && !disk_exists(disks, id)) {
		disk_list_usage(disks->storage, id, stats);
		return 0;
	}
	if (home < 0)
		r = disk_borrow(disks, id, &home, err);
	if (r == 0)
		r = disk_usage(disks, id, home, stats, err);
	return r;
}

int disk_usage_find_slot(const struct disks *disks, const struct userns_ranges *ranges,
	const char *id, uint32_t *ret_slot, struct err *err)
{
	auto_fd int home = disk_open_mounted(disks, id);
	uint32_t uid = 0;
	int r = 0;

	if (home < 0 && disk_exists(disks, id))
		r = disk_borrow(disks, id, &home, err);
	if (r < 0)
		return r;
	r = home < 0 ? disk_list_owner(disks->storage, id, &uid) : disk_list_home_owner(home, &uid);
	if (r == -ENOENT && home < 0)
		return err_set(err, ERR_NOT_FOUND, "sandbox %s has no files", id);
	if (r < 0 && r != -ENOENT)
		return err_from(err, r, "look whose the files of %s are", id);
	*ret_slot = r == 1 ? userns_slot(ranges, uid) : KEEPER_SLOT_COUNT;
	/* An image of before there were marks: the next one who asks knows at once. */
	if (*ret_slot < KEEPER_SLOT_COUNT)
		disk_image_mark(disks->storage, id, userns_base(ranges, *ret_slot));
	return 0;
}

uint32_t disk_usage_known_slot(
	const struct disks *disks, const struct userns_ranges *ranges, const char *id)
{
	auto_fd int home = -1;
	uint32_t uid = 0;
	int r = disk_image_owner(disks->storage, id, &uid);

	if (r == 1)
		return userns_slot(ranges, uid);
	home = disk_open_mounted(disks, id);
	if (home < 0 && r == 0)
		return KEEPER_SLOT_UNKNOWN;
	r = home < 0 ? disk_list_owner(disks->storage, id, &uid) : disk_list_home_owner(home, &uid);
	return r == 1 ? userns_slot(ranges, uid) : KEEPER_SLOT_COUNT;
}

bool disk_usage_is_quick(const struct disks *disks, const struct keeper_request *request)
{
	return (request->parts & KEEPER_PART_WORKSPACE) || !disk_exists(disks, request->id) ||
	       disk_way_of(disks, request->id) == DISK_QUOTA;
}

/*
 * What a client is told to be empty must not come back when ext4 fails before it has written that. A directory of the
 * host is the host's to write.
 */
static int clean_home(
	const struct disks *disks, const struct keeper_request *request, int home, struct err *err)
{
	bool is_told = request->parts & KEEPER_PART_SCRATCH;
	int r = storage_clean_home(home, request->parts, err);

	if (r == 0 && is_told && disk_way_of(disks, request->id) == DISK_IMAGE && syncfs(home) < 0)
		return err_explain(err, ERR_NO_SPACE, "disk_failed",
			"free space on the host, then start the sandbox, which has its disk "
			"checked",
			"the disk of the sandbox failed, as it does when the disk of the host is "
			"full: %s",
			strerror(errno));
	ext4_image_note_damage(r, err);
	return r;
}

/* The trash of a mounted image is emptied when the image is unmounted. */
static int clean_disk(
	const struct disks *disks, const struct keeper_request *request, struct err *err)
{
	auto_fd int home = disk_open_mounted(disks, request->id);
	int r;

	if (home >= 0) {
		r = clean_home(disks, request, home, err);
		disk_clear_up(disks, request->id);
		return r;
	}
	r = disk_borrow(disks, request->id, &home, err);
	if (r < 0) {
		ext4_image_note_damage(r, err);
		return r;
	}
	r = clean_home(disks, request, home, err);
	if (r < 0)
		return r;
	storage_empty_trash(home);
	disk_give_back(disks, request->id, home);
	return 0;
}

int disk_usage_clean(struct disks *disks, const struct keeper_request *request, uint32_t base_uid,
	struct err *err)
{
	if (!disk_exists(disks, request->id))
		return storage_clean(disks->storage, request->id, base_uid, request->parts, err);
	if (request->parts & KEEPER_PART_WORKSPACE)
		return disk_discard(disks, request->id, err);
	return clean_disk(disks, request, err);
}
