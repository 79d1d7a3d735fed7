/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/disk/disk_unmount.h"

#include "base/clock.h"
#include "base/fail_point.h"
#include "base/fd.h"
#include "base/log.h"
#include "keeper/disk/ext4_image.h"
#include "keeper/disk/trash.h"
#include "keeper/mount/mount_area.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define LIGHT_FILES  256 /* a disk with no more files than this is emptied faster than replaced */
#define LIGHT_BYTES  (16ull << 20)
#define PARKED_US    300000
#define RETRY_US     1000000
#define CHILDREN_MAX 8
/*
 * A child that ended so often while emptying the trash will always end there. What stays is removed
 * at the next start of the sandbox.
 */
#define CLEAR_UP_TRIES 3

int disk_unmount_open(struct disk_unmounts *unmounts, const struct disk_pool *disk_pool,
	int mount_area_fd, int mounted_fd, struct err *err)
{
	int r;

	*unmounts = (struct disk_unmounts){.storage = disk_pool->storage,
		.disk_pool = disk_pool,
		.helpers = disk_pool->helpers,
		.mounted_fd = mounted_fd};
	r = mount_area_open_section(mount_area_fd, "unmounting", &unmounts->unmounting_fd, err);
	if (r == 0)
		helpers_share_fd(unmounts->helpers, unmounts->unmounting_fd);
	return r;
}

/*
 * The name of a discarded disk in spares/: by its device number, which no other disk has while it
 * is mounted.
 */
static void used_name(int root, char name[static DISK_IMAGE_NAME_MAX])
{
	struct stat st = {0};

	fstat(root, &st);
	snprintf(name, DISK_IMAGE_NAME_MAX, DISK_POOL_USED "%u", minor(st.st_dev));
}

/* --- in the child --- */

/* Whether it is emptied faster than replaced. */
static bool is_light(const struct disk_unmounts *unmounts, int home)
{
	const struct keeper_stats *blank = &unmounts->blank;
	struct keeper_stats usage = {0};

	ext4_image_usage(home, &usage);
	return usage.disk_files > 0 && usage.disk_files <= blank->disk_files + LIGHT_FILES &&
	       usage.disk_bytes <= blank->disk_bytes + LIGHT_BYTES;
}

/*
 * Puts a discarded disk back into the pool. Its next owner finds what a new one has: all else was
 * removed, and the files are counted, to be sure. The empty state is on the host's disk before the
 * pool has it: else a crash of the host, or a failure of ext4, would bring the files of the last
 * owner back for the next. Its free blocks are holes then: ext4 shows a block that it could not
 * write as it was.
 */
static int recycle(const struct disk_unmounts *unmounts, int root, int home)
{
	const struct keeper_stats *blank = &unmounts->blank;
	char name[DISK_IMAGE_NAME_MAX];
	struct keeper_stats usage = {0};
	auto_fd int file = -1;
	struct err err;
	int r;

	if (disk_pool_are_enough(unmounts->disk_pool) || !is_light(unmounts, home) ||
		!disk_image_maps_no_range(home))
		return -EBUSY;
	used_name(root, name);
	file = openat(unmounts->storage->pool_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (file < 0)
		return -errno;
	r = storage_reset_home(home, &err);
	fail_point("disk.refurnished");
	ext4_image_usage(home, &usage);
	if (r < 0 || usage.disk_files != blank->disk_files || usage.disk_bytes > blank->disk_bytes)
		return -ENOTEMPTY;
	r = ext4_image_trim(file, home);
	if (r < 0)
		return r;
	/* The tables of inodes that it had once stay, as far as the kernel has written them. */
	if (ext4_image_is_bloated(file, home))
		return -EFBIG;
	return disk_pool_put(unmounts->disk_pool, root, name, &err);
}

/*
 * Puts a discarded disk back into the pool (true), or makes sure that nothing more is written to it
 * (false).
 */
static bool reuse_or_shutdown(const struct disk_unmounts *unmounts, int root, bool may_reuse)
{
	auto_fd int home = -1;
	char name[DISK_IMAGE_NAME_MAX];
	struct err err;

	if (may_reuse && disk_image_open_home(root, &home, &err) == 0 &&
		recycle(unmounts, root, home) == 0)
		return true;
	ext4_image_shutdown(root);
	used_name(root, name);
	unlinkat(unmounts->storage->pool_fd, name, 0);
	return false;
}

/* Empties the trash of the disk. A start that wants to mount it waits meanwhile. */
static void clear_up(
	const struct disk_unmounts *unmounts, const struct disk_unmount *unmount, int root)
{
	auto_fd int home = -1;
	struct err err;

	if (disk_image_open_home(root, &home, &err) < 0)
		return;
	storage_empty_trash(home);
	disk_image_give_back(unmounts->storage, unmount->id, home);
}

/*
 * Continues where an earlier child of the same disk ended. A place without a mount belongs to a
 * disk that is in the pool by now, or was unmounted.
 */
static int clear_and_unmount(
	const struct disk_unmounts *unmounts, const struct disk_unmount *unmount, const char *place)
{
	auto_fd int root = mount_area_open_mount(unmounts->unmounting_fd, place);
	bool clears_up = unmount->failures < CLEAR_UP_TRIES;
	bool is_mounted = root != -ENOENT;
	int r;

	if (root >= 0 && unmount->is_discarded)
		is_mounted = !reuse_or_shutdown(unmounts, root, clears_up);
	else if (root >= 0 && clears_up)
		clear_up(unmounts, unmount, root);
	fd_close(take_fd(&root));
	fail_point("disk.cleared_up");
	if (is_mounted && (r = mount_area_unmount(unmounts->unmounting_fd, place)) < 0) {
		log_warning("the disk of %s stays mounted: %s", unmount->id, strerror(-r));
		return r;
	}
	fail_point("disk.unmounted");
	mount_area_drop_place(unmounts->unmounting_fd, place);
	return 0;
}

/* --- in the keeper --- */

static struct disk_unmount *add(struct disk_unmount **list, const char *id)
{
	struct disk_unmount *unmount = mem_new(sizeof(*unmount));

	while (*list)
		list = &(*list)->next;
	*list = unmount;
	snprintf(unmount->id, sizeof(unmount->id), "%s", id);
	return unmount;
}

/* Removes the entry that *link points to from its list. */
static void drop(struct disk_unmount **link)
{
	struct disk_unmount *unmount = *link;

	*link = unmount->next;
	free(unmount);
}

void disk_unmount_cancel(struct disk_unmounts *unmounts, const char *id)
{
	struct disk_unmount **link = &unmounts->waiting;

	while (*link && strcmp((*link)->id, id) != 0)
		link = &(*link)->next;
	if (*link)
		drop(link);
}

void disk_unmount_park(struct disk_unmounts *unmounts, const char *id)
{
	disk_unmount_cancel(unmounts, id);
	add(&unmounts->waiting, id)->due_us = clock_steady_us() + PARKED_US;
}

static void place_name(unsigned number, char name[static DISK_IMAGE_NAME_MAX])
{
	snprintf(name, DISK_IMAGE_NAME_MAX, "%u", number);
}

/*
 * Moves the disk, whose root is open, to unmounting/. From here on a start of that sandbox mounts
 * it anew, as soon as it is unmounted.
 */
static int move_aside(struct disk_unmounts *unmounts, const char *id, int root,
	struct disk_unmount **ret_unmount, struct err *err)
{
	unsigned number = unmounts->moved_count++;
	struct disk_unmount *unmount;
	char place[DISK_IMAGE_NAME_MAX];
	int r;

	place_name(number, place);
	r = mount_area_put_mount(unmounts->unmounting_fd, place, root, err);
	if (r < 0)
		return r;
	mount_area_drop_place(unmounts->mounted_fd, id);
	unmount = add(&unmounts->unmounting, id);
	unmount->number = number;
	*ret_unmount = unmount;
	return 0;
}

/*
 * If it is mounted, the image moves to spares/, where the child that empties it finds it. The mount
 * moves first: a new sandbox of the same id must not find the mount without the image.
 */
int disk_unmount_discard(struct disk_unmounts *unmounts, const char *id, int dirfd,
	const char *image, struct err *err)
{
	auto_fd int root = mount_area_open_mount(unmounts->mounted_fd, id);
	const struct storage *storage = unmounts->storage;
	struct disk_unmount *unmount;
	char name[DISK_IMAGE_NAME_MAX];
	int r;

	if (root == -ENOENT)
		return trash_discard(&storage->trash, dirfd, image, err);
	if (root < 0)
		return err_from(err, root, "open the disk of %s", id);
	r = move_aside(unmounts, id, root, &unmount, err);
	if (r < 0)
		return r;
	disk_unmount_cancel(unmounts, id);
	used_name(root, name);
	fail_point("disk.let_go");
	if (renameat(dirfd, image, storage->pool_fd, name) < 0 && errno != ENOENT)
		return err_sys(err, "discard the disk of %s", id);
	unmount->is_discarded = true;
	fail_point("disk.thrown_away");
	return 0;
}

/* Starts a child that unmounts the disk. */
static void start_child(struct disk_unmounts *unmounts, struct disk_unmount *unmount)
{
	char place[DISK_IMAGE_NAME_MAX];
	pid_t pid = helpers_fork(unmounts->helpers, NULL);

	place_name(unmount->number, place);
	if (pid == 0) {
		helpers_lower_priority();
		_exit(clear_and_unmount(unmounts, unmount, place) < 0);
	}
	unmount->due_us = clock_steady_us() + RETRY_US;
	if (pid < 0) {
		log_error("no child to unmount a disk: %s", strerror(errno));
		return;
	}
	unmount->pid = pid;
	unmounts->child_count++;
}

bool disk_unmount_reaped(struct disk_unmounts *unmounts, pid_t pid, int status)
{
	struct disk_unmount **link = &unmounts->unmounting;

	while (*link && (*link)->pid != pid)
		link = &(*link)->next;
	if (!*link)
		return false;
	unmounts->child_count--;
	(*link)->pid = 0;
	if (status == 0) {
		if ((*link)->is_discarded) /* and perhaps not used again */
			disk_pool_fill_up(unmounts->disk_pool);
		drop(link);
		return true;
	}
	log_warning("the child that unmounts the disk of %s ended with status %d; there will be "
		    "another",
		(*link)->id, status);
	(*link)->failures++;
	return true;
}

static void move_aside_or_park(struct disk_unmounts *unmounts, const char *id)
{
	auto_fd int root = mount_area_open_mount(unmounts->mounted_fd, id);
	struct disk_unmount *unmount;
	struct err err;
	int r;

	if (root == -ENOENT)
		return;
	r = root < 0 ? err_from(&err, root, "open the disk of %s", id)
		     : move_aside(unmounts, id, root, &unmount, &err);
	if (r < 0) {
		log_warning("%s", err.message);
		disk_unmount_park(unmounts, id);
	}
}

static bool has_room(const struct disk_unmounts *unmounts)
{
	size_t count = 0;

	for (const struct disk_unmount *at = unmounts->unmounting; at && count < CHILDREN_MAX;
		at = at->next)
		count++;
	return count < CHILDREN_MAX;
}

/*
 * Moves no more disks than can be unmounted at once: a start that wants its disk back after the
 * move waits until it is unmounted.
 */
static void move_parked_aside(struct disk_unmounts *unmounts, uint64_t now_us)
{
	while (unmounts->waiting && unmounts->waiting->due_us <= now_us && has_room(unmounts)) {
		char id[KEEPER_ID_LEN + 1];

		memcpy(id, unmounts->waiting->id, sizeof(id));
		drop(&unmounts->waiting);
		move_aside_or_park(unmounts, id);
	}
}

int disk_unmount_tend(struct disk_unmounts *unmounts)
{
	uint64_t now_us = clock_steady_us(), soonest_us = UINT64_MAX;

	move_parked_aside(unmounts, now_us);
	if (unmounts->waiting && unmounts->waiting->due_us > now_us)
		soonest_us = unmounts->waiting->due_us;
	for (struct disk_unmount *unmount = unmounts->unmounting;
		unmount && unmounts->child_count < CHILDREN_MAX; unmount = unmount->next) {
		if (!unmount->pid && unmount->due_us <= now_us)
			start_child(unmounts, unmount);
		if (!unmount->pid && unmount->due_us < soonest_us)
			soonest_us = unmount->due_us;
	}
	/* If all children are busy, the end of one calls us. */
	return soonest_us == UINT64_MAX ? -1 : (int)((soonest_us - now_us) / 1000 + 1);
}
