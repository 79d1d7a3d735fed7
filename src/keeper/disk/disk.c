/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/disk/disk.h"

#include "base/fd.h"
#include "base/log.h"
#include "keeper/disk/disk_image.h"
#include "keeper/disk/ext4_image.h"
#include "keeper/disk/project_quota.h"
#include "keeper/disk/trash.h"
#include "keeper/mount/directory.h"
#include "keeper/mount/mount_area.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define KEEPERS_ROOM  (256ull << 10) /* for directories that the keeper makes at each start */
#define KEEPERS_FILES 32
#define NAME_MAX_LEN  (KEEPER_ID_LEN + 8)

/* --- which kind of disk --- */

static void home_name(const char *id, char name[NAME_MAX_LEN])
{
	snprintf(name, NAME_MAX_LEN, "%s.home", id);
}

static bool is_stored(const struct disks *disks, const char *name)
{
	return faccessat(disks->storage->workspaces_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool has_quota(const struct disks *disks, const char *id)
{
	char name[NAME_MAX_LEN];

	home_name(id, name);
	return is_stored(disks, name);
}

bool disk_exists(const struct disks *disks, const char *id)
{
	return disk_image_exists(disks->storage, id) || has_quota(disks, id);
}

bool disk_is_new(const struct disks *disks, const char *id)
{
	return !disk_exists(disks, id) && !is_stored(disks, id);
}

enum disk_way disk_way_of(const struct disks *disks, const char *id)
{
	if (has_quota(disks, id))
		return DISK_QUOTA;
	if (disk_image_exists(disks->storage, id))
		return DISK_IMAGE;
	return is_stored(disks, id) ? DISK_NONE : disks->way;
}

/* The kernel forgets a project that has no limit as soon as its last file is gone. */
static int discard_quota(
	const struct storage *storage, int dirfd, const char *name, struct err *err)
{
	auto_fd int home = directory_open(dirfd, name);
	struct err why;

	if (home >= 0 && project_quota_set_limit(home, 0, 0, &why) < 0)
		log_warning("the limit of a disk stays: %s", why.message);
	return trash_discard(&storage->trash, dirfd, name, err);
}

/* --- before a build --- */

void disk_keep_spares(struct disks *disks, unsigned count)
{
	if (disks->way == DISK_IMAGE)
		disk_pool_keep(&disks->disk_mount.disk_pool, count);
}

void disk_fill_pool(const struct disks *disks)
{
	if (disks->way == DISK_IMAGE)
		disk_pool_fill_up(&disks->disk_mount.disk_pool);
}

void disk_claim(struct disks *disks, const char *id, bool wants_limit)
{
	struct err err;

	disk_unmount_cancel(&disks->disk_mount.unmounts, id);
	if (!wants_limit || disks->way != DISK_IMAGE || !disk_is_new(disks, id))
		return;
	if (disk_mount_take(&disks->disk_mount, id, &err) < 0)
		log_warning("%s", err.message);
	disk_fill_pool(disks);
}

int disk_reserve(struct disks *disks, const char *name, struct err *err)
{
	switch (disks->way) {
	case DISK_IMAGE:
		return disk_mount_reserve(&disks->disk_mount, name, err);
	case DISK_QUOTA:
		return project_quota_make(disks->storage->pool_fd, name, err);
	case DISK_NONE:
		break;
	}
	return err_set(err, ERR_UNAVAILABLE, "disks have no limit here");
}

int disk_hand_over(struct disks *disks, const char *name, const char *id, struct err *err)
{
	char home[NAME_MAX_LEN];

	if (disks->way != DISK_QUOTA)
		return disk_mount_hand_over(&disks->disk_mount, name, id, err);
	home_name(id, home);
	if (renameat(disks->storage->pool_fd, name, disks->storage->workspaces_fd, home) < 0)
		return err_sys(err, "give %s its disk", id);
	return 0;
}

void disk_unreserve(struct disks *disks, const char *name)
{
	const struct storage *storage = disks->storage;
	struct err err;

	if (disks->way != DISK_QUOTA)
		disk_mount_unreserve(&disks->disk_mount, name);
	else if (discard_quota(storage, storage->pool_fd, name, &err) < 0)
		log_warning("%s", err.message);
}

void disk_mark_range(const struct disks *disks, const char *id, uint32_t base_uid)
{
	disk_image_mark(disks->storage, id, base_uid);
}

/* --- in the child that builds --- */

static int open_image(const struct disks *disks, const char *id, int root_fd, uint64_t limit_bytes,
	struct disk *ret_disk, struct err *err)
{
	auto_fd int home = -1, limit_fd = -1;
	int r;

	if ((r = disk_mount_open_home(&disks->disk_mount, id, root_fd, &home, err)) < 0 ||
		(r = ext4_image_open_limit(home, &limit_fd, err)) < 0 ||
		(r = ext4_image_set_limit(home, limit_fd,
			 limit_bytes ? limit_bytes + KEEPERS_ROOM : EXT4_IMAGE_BYTES, err)) < 0)
		return r;
	*ret_disk = (struct disk){.home_fd = take_fd(&home), .limit_fd = take_fd(&limit_fd)};
	return 0;
}

static int refuse_without_quota(const char *id, struct err *err)
{
	return err_explain(err, ERR_UNAVAILABLE, "wall_missing",
		"mount the file system of the data directory with prjquota, or start sandlotd with "
		"--disk-limits=false",
		"the file system of the disk of %s enforces no project quotas any more", id);
}

/* The root of such a disk is its home. */
static int open_quota(const struct disks *disks, const char *id, int root_fd, uint64_t limit_bytes,
	struct disk *ret_disk, struct err *err)
{
	auto_fd int home = -1;
	char name[NAME_MAX_LEN];
	int r = 0;

	if (limit_bytes > 0 && disks->way != DISK_QUOTA)
		return refuse_without_quota(id, err);
	home_name(id, name);
	if (root_fd < 0)
		r = project_quota_make(disks->storage->workspaces_fd, name, err);
	if (r < 0)
		return r;
	home = root_fd < 0 ? disk_open_root(disks, id) : fcntl(root_fd, F_DUPFD_CLOEXEC, 0);
	if (home < 0)
		return err_sys(err, "open the disk of %s", id);
	r = project_quota_enter(home, err);
	if (r == 0 && disks->way == DISK_QUOTA)
		r = project_quota_set_limit(home, limit_bytes ? limit_bytes + KEEPERS_ROOM : 0,
			PROJECT_QUOTA_FILES + KEEPERS_FILES, err);
	if (r < 0)
		return r;
	*ret_disk = (struct disk){.home_fd = take_fd(&home), .limit_fd = -1};
	return 0;
}

int disk_open(const struct disks *disks, const char *id, int root_fd, uint64_t limit_bytes,
	struct disk *ret_disk, struct err *err)
{
	enum disk_way way = disk_way_of(disks, id);

	*ret_disk = (struct disk){.home_fd = -1, .limit_fd = -1};
	if (root_fd < 0 && (way == DISK_NONE || (limit_bytes == 0 && !disk_exists(disks, id))))
		return 0;
	return way == DISK_QUOTA ? open_quota(disks, id, root_fd, limit_bytes, ret_disk, err)
				 : open_image(disks, id, root_fd, limit_bytes, ret_disk, err);
}

int disk_seal(const struct disk *disk, uint64_t limit_bytes, struct err *err)
{
	if (disk->home_fd < 0)
		return 0;
	if (disk->limit_fd >= 0) /* an image cannot have more inodes temporarily */
		storage_reserve(disk->home_fd);
	if (limit_bytes == 0)
		return 0;
	return disk->limit_fd < 0
		       ? project_quota_set_limit(
				 disk->home_fd, limit_bytes, PROJECT_QUOTA_FILES, err)
		       : ext4_image_set_limit(disk->home_fd, disk->limit_fd, limit_bytes, err);
}

/* --- disks that exist --- */

int disk_open_root(const struct disks *disks, const char *id)
{
	char name[NAME_MAX_LEN];
	int fd = disk_mount_open_root(&disks->disk_mount, id);

	if (fd >= 0)
		return fd;
	home_name(id, name);
	fd = directory_open(disks->storage->workspaces_fd, name);
	/* A reserved disk has the name as it is. No other directory is in the disk pool. */
	return fd < 0 ? directory_open(disks->storage->pool_fd, id) : fd;
}

int disk_open_mounted(const struct disks *disks, const char *id)
{
	char name[NAME_MAX_LEN];

	home_name(id, name);
	return has_quota(disks, id) ? directory_open(disks->storage->workspaces_fd, name)
				    : disk_mount_open_mounted(&disks->disk_mount, id);
}

static uint64_t limit_growth(int home, uint64_t limit_bytes, uint64_t growth_bytes)
{
	struct keeper_stats usage = {.disk_bytes = limit_bytes};

	if (growth_bytes == 0)
		return limit_bytes;
	ext4_image_usage(home, &usage);
	return usage.disk_bytes + growth_bytes < limit_bytes ? usage.disk_bytes + growth_bytes
							     : limit_bytes;
}

uint32_t disk_list_failed(const struct disks *disks, char ids[][KEEPER_ID_LEN + 1], uint32_t max)
{
	return disk_mount_list_failed(&disks->disk_mount, ids, max);
}

int disk_set_limit(const struct disks *disks, const char *id, uint64_t limit_bytes,
	uint64_t growth_bytes, struct err *err)
{
	auto_fd int home = disk_open_mounted(disks, id);
	auto_fd int limit_fd = -1;
	int r;

	if (home < 0)
		return 0; /* directories, which have no limit */
	if (has_quota(disks, id))
		return project_quota_set_limit(home, limit_bytes, PROJECT_QUOTA_FILES, err);
	r = ext4_image_open_limit(home, &limit_fd, err);
	if (r < 0)
		return r;
	limit_bytes =
		limit_growth(home, limit_bytes ? limit_bytes : EXT4_IMAGE_BYTES, growth_bytes);
	return ext4_image_set_limit(home, limit_fd, limit_bytes, err);
}

int disk_usage(const struct disks *disks, const char *id, int home_fd, struct keeper_stats *stats,
	struct err *err)
{
	if (has_quota(disks, id))
		return project_quota_usage(home_fd, stats, err);
	ext4_image_usage(home_fd, stats);
	return 0;
}

int disk_borrow(const struct disks *disks, const char *id, int *ret_home_fd, struct err *err)
{
	return disk_mount_borrow(&disks->disk_mount, id, ret_home_fd, err);
}

int disk_open_tree(const struct disks *disks, const char *id, const char *name,
	bool *ret_is_mounted, int *ret_fd, struct err *err)
{
	auto_fd int home = disk_open_mounted(disks, id);
	bool is_mounted = false;
	int r = 0;

	if (home < 0 && disk_exists(disks, id)) {
		r = disk_mount_open_home(&disks->disk_mount, id, -1, &home, err);
		is_mounted = r == 0;
	}
	if (r == 0)
		r = storage_open_tree(disks->storage, id, home, name, ret_fd, err);
	if (r < 0 && is_mounted)
		disk_unmount_tree(disks, id);
	else if (r == 0)
		*ret_is_mounted = is_mounted;
	return r;
}

void disk_unmount_tree(const struct disks *disks, const char *id)
{
	int r = mount_area_unmount(disks->disk_mount.mounted_fd, id);

	if (r < 0)
		log_warning("the disk of %s stays mounted: %s", id, strerror(-r));
	else
		mount_area_drop_place(disks->disk_mount.mounted_fd, id);
}

int disk_lend(
	const struct disks *disks, const char *id, uid_t uid, int *ret_file_fd, struct err *err)
{
	if (!disk_image_exists(disks->storage, id))
		return 0;
	return disk_image_lend(disks->storage, id, uid, ret_file_fd, err);
}

void disk_give_back(const struct disks *disks, const char *id, int fd)
{
	disk_image_give_back(disks->storage, id, fd);
}

/* --- disks of ended sandboxes --- */

/* Runs in a child. A start of the sandbox waits meanwhile. */
static void empty_trash(const struct disks *disks, const char *id)
{
	auto_fd int home = disk_open_mounted(disks, id);
	struct err err;

	/* The sandbox may be purged before we hold the directory. */
	if (home >= 0 && project_quota_enter(home, &err) == 0 && has_quota(disks, id))
		storage_empty_trash(home);
}

void disk_clear_up(const struct disks *disks, const char *id)
{
	pid_t pid;

	if (!has_quota(disks, id))
		return;
	pid = helpers_fork(disks->helpers, NULL);
	if (pid == 0) {
		helpers_lower_priority();
		empty_trash(disks, id);
		_exit(0);
	}
	if (pid < 0)
		log_error("the trash of %s stays until it starts: %s", id, strerror(errno));
}

int disk_discard(struct disks *disks, const char *id, struct err *err)
{
	const struct storage *storage = disks->storage;
	char name[NAME_MAX_LEN];

	home_name(id, name);
	return has_quota(disks, id) ? discard_quota(storage, storage->workspaces_fd, name, err)
				    : disk_mount_discard(&disks->disk_mount, id, err);
}

void disk_park(struct disks *disks, const char *id)
{
	if (!has_quota(disks, id))
		disk_unmount_park(&disks->disk_mount.unmounts, id);
}

int disk_retire(struct disks *disks)
{
	return disk_unmount_tend(&disks->disk_mount.unmounts);
}

bool disk_reaped(struct disks *disks, pid_t pid, int status)
{
	return disk_unmount_reaped(&disks->disk_mount.unmounts, pid, status);
}

/* --- at the start of the keeper --- */

int disk_start(struct disks *disks, const struct storage *storage, int mount_area_fd,
	struct helpers *helpers, struct err *err)
{
	struct err why;
	int r;

	*disks = (struct disks){.storage = storage, .helpers = helpers};
	r = disk_mount_open(&disks->disk_mount, storage, mount_area_fd, helpers, err);
	if (r < 0)
		return r;
	if (project_quota_try(storage->pool_fd, &why) == 0)
		disks->way = DISK_QUOTA;
	else if (disk_mount_try(&disks->disk_mount, &why) == 0 || why.kind == ERR_NO_SPACE)
		disks->way =
			DISK_IMAGE; /* a full disk prevents the trial, and the way does not change */
	else
		log_warning("the disks of new sandboxes will have no limit: %s", why.message);
	if (disks->way != DISK_NONE) /* images may exist from before there were quotas */
		disk_mount_start(&disks->disk_mount, disks->way == DISK_IMAGE);
	return 0;
}
