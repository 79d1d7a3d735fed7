/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/disk.h"

#include "base/fd.h"
#include "base/log.h"
#include "keeper/directory.h"
#include "keeper/disk_image.h"
#include "keeper/image.h"
#include "keeper/project_quota.h"
#include "keeper/trash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define KEEPERS_ROOM  (256ull << 10) /* for directories that the keeper makes at each start */
#define KEEPERS_FILES 32
#define NAME_MAX_LEN  (KEEPER_ID_LEN + 8)

/* --- which way --- */

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
	return trash_discard(storage, dirfd, name, err);
}

/* --- before a build --- */

void disk_stock(const struct disks *disks)
{
	if (disks->way == DISK_IMAGE)
		spares_fill_up(&disks->stock.spares);
}

void disk_claim(struct disks *disks, const char *id, bool wants_limit)
{
	struct err err;

	departure_cancel(&disks->stock.departures, id);
	if (!wants_limit || disks->way != DISK_IMAGE || !disk_is_new(disks, id))
		return;
	if (stock_take(&disks->stock, id, &err) < 0)
		log_warning("%s", err.message);
	disk_stock(disks);
}

int disk_reserve(struct disks *disks, const char *name, struct err *err)
{
	switch (disks->way) {
	case DISK_IMAGE:
		return stock_reserve(&disks->stock, name, err);
	case DISK_QUOTA:
		return project_quota_make(disks->storage->spares_fd, name, err);
	case DISK_NONE:
		break;
	}
	return err_set(err, ERR_UNAVAILABLE, "disks have no limit here");
}

int disk_hand_over(struct disks *disks, const char *name, const char *id, struct err *err)
{
	char home[NAME_MAX_LEN];

	if (disks->way != DISK_QUOTA)
		return stock_hand_over(&disks->stock, name, id, err);
	home_name(id, home);
	if (renameat(disks->storage->spares_fd, name, disks->storage->workspaces_fd, home) < 0)
		return err_sys(err, "give %s its disk", id);
	return 0;
}

void disk_unreserve(struct disks *disks, const char *name)
{
	const struct storage *storage = disks->storage;
	struct err err;

	if (disks->way != DISK_QUOTA)
		stock_unreserve(&disks->stock, name);
	else if (discard_quota(storage, storage->spares_fd, name, &err) < 0)
		log_warning("%s", err.message);
}

/* --- in the child that builds --- */

static int open_image(const struct disks *disks, const char *id, int root_fd, uint64_t limit_bytes,
	struct disk *ret_disk, struct err *err)
{
	auto_fd int home = -1, knob = -1;
	int r;

	if ((r = stock_open_home(&disks->stock, id, root_fd, &home, err)) < 0 ||
		(r = image_open_knob(home, &knob, err)) < 0 ||
		(r = image_set_limit(home, knob,
			 limit_bytes ? limit_bytes + KEEPERS_ROOM : IMAGE_BYTES, err)) < 0)
		return r;
	*ret_disk = (struct disk){.home_fd = take_fd(&home), .knob_fd = take_fd(&knob)};
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
	*ret_disk = (struct disk){.home_fd = take_fd(&home), .knob_fd = -1};
	return 0;
}

int disk_open(const struct disks *disks, const char *id, int root_fd, uint64_t limit_bytes,
	struct disk *ret_disk, struct err *err)
{
	enum disk_way way = disk_way_of(disks, id);

	*ret_disk = (struct disk){.home_fd = -1, .knob_fd = -1};
	if (root_fd < 0 && (way == DISK_NONE || (limit_bytes == 0 && !disk_exists(disks, id))))
		return 0;
	return way == DISK_QUOTA ? open_quota(disks, id, root_fd, limit_bytes, ret_disk, err)
				 : open_image(disks, id, root_fd, limit_bytes, ret_disk, err);
}

int disk_seal(const struct disk *disk, uint64_t limit_bytes, struct err *err)
{
	if (disk->home_fd < 0)
		return 0;
	if (disk->knob_fd >= 0) /* an image cannot have more inodes for a moment */
		storage_reserve(disk->home_fd);
	if (limit_bytes == 0)
		return 0;
	return disk->knob_fd < 0 ? project_quota_set_limit(
					   disk->home_fd, limit_bytes, PROJECT_QUOTA_FILES, err)
				 : image_set_limit(disk->home_fd, disk->knob_fd, limit_bytes, err);
}

/* --- those that exist --- */

int disk_open_root(const struct disks *disks, const char *id)
{
	char name[NAME_MAX_LEN];
	int fd = stock_open_root(&disks->stock, id);

	if (fd >= 0)
		return fd;
	home_name(id, name);
	fd = directory_open(disks->storage->workspaces_fd, name);
	/* One that is reserved has the name by itself. Nothing else among the spares is a directory. */
	return fd < 0 ? directory_open(disks->storage->spares_fd, id) : fd;
}

int disk_open_mounted(const struct disks *disks, const char *id)
{
	char name[NAME_MAX_LEN];

	home_name(id, name);
	return has_quota(disks, id) ? directory_open(disks->storage->workspaces_fd, name)
				    : stock_open_mounted(&disks->stock, id);
}

int disk_set_limit(const struct disks *disks, const char *id, uint64_t limit_bytes, struct err *err)
{
	auto_fd int home = disk_open_mounted(disks, id);
	auto_fd int knob = -1;
	int r;

	if (home < 0)
		return 0; /* directories, which have no limit */
	if (has_quota(disks, id))
		return project_quota_set_limit(home, limit_bytes, PROJECT_QUOTA_FILES, err);
	r = image_open_knob(home, &knob, err);
	return r < 0 ? r
		     : image_set_limit(home, knob, limit_bytes ? limit_bytes : IMAGE_BYTES, err);
}

int disk_usage(const struct disks *disks, const char *id, int home_fd, struct keeper_stats *stats,
	struct err *err)
{
	if (has_quota(disks, id))
		return project_quota_usage(home_fd, stats, err);
	image_usage(home_fd, stats);
	return 0;
}

int disk_borrow(const struct disks *disks, const char *id, int *ret_home_fd, struct err *err)
{
	return stock_borrow(&disks->stock, id, ret_home_fd, err);
}

void disk_give_back(const struct disks *disks, const char *id, int fd)
{
	disk_image_give_back(disks->storage, id, fd);
}

/* --- ended sandboxes --- */

/* In a child. Who starts the sandbox meanwhile waits. */
static void empty_bins(const struct disks *disks, const char *id)
{
	auto_fd int home = disk_open_mounted(disks, id);
	struct err err;

	/* It may be purged before it is ours. */
	if (home >= 0 && project_quota_enter(home, &err) == 0 && has_quota(disks, id))
		storage_empty_bins(home);
}

void disk_clear_up(const struct disks *disks, const char *id)
{
	pid_t pid;

	if (!has_quota(disks, id))
		return;
	pid = crew_fork(disks->crew, NULL);
	if (pid == 0) {
		crew_give_way();
		empty_bins(disks, id);
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
				    : stock_discard(&disks->stock, id, err);
}

void disk_park(struct disks *disks, const char *id)
{
	if (!has_quota(disks, id))
		departure_park(&disks->stock.departures, id);
}

int disk_retire(struct disks *disks)
{
	return departure_tend(&disks->stock.departures);
}

bool disk_reaped(struct disks *disks, pid_t pid, int status)
{
	return departure_reaped(&disks->stock.departures, pid, status);
}

/* --- at the start of the keeper --- */

int disk_start(struct disks *disks, const struct storage *storage, int shelf_fd, struct crew *crew,
	struct err *err)
{
	struct err why;
	int r;

	*disks = (struct disks){.storage = storage, .crew = crew};
	r = stock_open(&disks->stock, storage, shelf_fd, crew, err);
	if (r < 0)
		return r;
	if (project_quota_try(storage->spares_fd, &why) == 0)
		disks->way = DISK_QUOTA;
	else if (stock_try(&disks->stock, &why) == 0)
		disks->way = DISK_IMAGE;
	else
		log_warning("the disks of new sandboxes will have no limit: %s", why.message);
	if (disks->way != DISK_NONE) /* there may be images from before there were quotas */
		stock_start(&disks->stock, disks->way == DISK_IMAGE);
	return 0;
}
