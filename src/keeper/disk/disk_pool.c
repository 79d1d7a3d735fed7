/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/disk/disk_pool.h"

#include "base/fail_point.h"
#include "base/fd.h"
#include "base/log.h"
#include "keeper/disk/trash.h"
#include "keeper/mount/directory.h"
#include "keeper/mount/mount_area.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define QUIET_MS 100 /* without a create, before the pool is filled completely */

static unsigned count(const struct disk_pool *disk_pool)
{
	DIR *list = directory_list(disk_pool->ready_fd);
	unsigned found = 0;

	while (directory_next(list))
		found++;
	directory_end(list);
	return found;
}

bool disk_pool_are_enough(const struct disk_pool *disk_pool)
{
	return count(disk_pool) >= *disk_pool->wanted;
}

bool disk_pool_find(const struct disk_pool *disk_pool, char name[static DISK_IMAGE_NAME_MAX])
{
	DIR *list = directory_list(disk_pool->ready_fd);
	const struct dirent *entry;
	bool is_found = false;

	while (!is_found && (entry = directory_next(list))) {
		auto_fd int mount = mount_area_open_mount(disk_pool->ready_fd, entry->d_name);

		is_found = mount >= 0;
		snprintf(name, DISK_IMAGE_NAME_MAX, "%s", entry->d_name);
	}
	directory_end(list);
	return is_found;
}

/* Counts and mounts under a lock: several children of the keeper put disks into the pool. */
int disk_pool_put(
	const struct disk_pool *disk_pool, int mount_fd, const char *name, struct err *err)
{
	auto_fd int door = directory_open(disk_pool->ready_fd, ".");

	if (door < 0 || flock(door, LOCK_EX) < 0)
		return err_sys(err, "lock the disk pool");
	if (disk_pool_are_enough(disk_pool))
		return err_set(err, ERR_CONFLICT, "the disk pool is full");
	return mount_area_put_mount(disk_pool->ready_fd, name, mount_fd, err);
}

/* --- the disk pool helper --- */

/* Names the image first and mounts it then: a mount always has a name. */
static int add(const struct disk_pool *disk_pool, const char *name, struct err *err)
{
	int pool_fd = disk_pool->storage->pool_fd, r;
	auto_fd int file = -1, mount = -1;

	if ((r = disk_image_make(disk_pool->storage, &file, &mount, err)) < 0 ||
		(r = disk_image_link(file, pool_fd, name, err)) < 0)
		return r;
	fail_point("disk.pool_disk_linked");
	r = disk_pool_put(disk_pool, mount, name, err);
	if (r < 0)
		unlinkat(pool_fd, name, 0);
	return r;
}

/*
 * Counts the images of the pool: those that are mounted there, and used ones that will be when they
 * are emptied (disk_unmount.h). Other images are those of sandboxes that are built ahead.
 */
static unsigned count_images(const struct disk_pool *disk_pool)
{
	DIR *list = directory_list(disk_pool->storage->pool_fd);
	const struct dirent *entry;
	unsigned found = 0;

	while ((entry = directory_next(list)))
		found += isdigit((unsigned char)entry->d_name[0]) ||
			 strncmp(entry->d_name, DISK_POOL_USED, strlen(DISK_POOL_USED)) == 0;
	directory_end(list);
	return found;
}

/* Waits until disks are needed: while there are enough, it does not slow down builds. */
static bool await_need(const struct disk_pool *disk_pool, int wake_fd)
{
	struct pollfd poked = {.fd = wake_fd, .events = POLLIN};
	char bytes[64];
	bool goes_on;

	do
		goes_on = read(wake_fd, bytes, sizeof(bytes)) > 0;
	while (goes_on && count_images(disk_pool) >= *disk_pool->wanted / 2 &&
		poll(&poked, 1, QUIET_MS) > 0);
	return goes_on;
}

static void run_helper(const void *arg, int wake_fd)
{
	const struct disk_pool *disk_pool = arg;
	char name[DISK_IMAGE_NAME_MAX];
	unsigned made = 0;
	struct err err;

	while (await_need(disk_pool, wake_fd)) {
		while (count_images(disk_pool) < *disk_pool->wanted) {
			snprintf(name, sizeof(name), "%d-%u", getpid(), ++made);
			if (add(disk_pool, name, &err) == 0)
				continue;
			if (err.kind != ERR_CONFLICT)
				log_warning("the disk pool is not filled: %s", err.message);
			break;
		}
	}
}

/*
 * Removes images that a disk pool helper named and did not mount, because it ended. The keeper does
 * it before it starts the next one: no process makes or moves a pool disk meanwhile, and only names
 * that the helper gives begin with a digit.
 */
static void remove_unmounted(const void *arg)
{
	const struct disk_pool *disk_pool = arg;
	DIR *list = directory_list(disk_pool->storage->pool_fd);
	const struct dirent *entry;

	while ((entry = directory_next(list))) {
		auto_fd int mount = mount_area_open_mount(disk_pool->ready_fd, entry->d_name);

		if (isdigit((unsigned char)entry->d_name[0]) && mount == -ENOENT)
			unlinkat(disk_pool->storage->pool_fd, entry->d_name, 0);
	}
	directory_end(list);
}

void disk_pool_keep(struct disk_pool *disk_pool, unsigned count)
{
	*disk_pool->wanted = count;
	disk_pool_fill_up(disk_pool);
}

void disk_pool_fill_up(const struct disk_pool *disk_pool)
{
	helpers_wake(&disk_pool->helper);
}

void disk_pool_start(struct disk_pool *disk_pool)
{
	helpers_add(disk_pool->helpers, &disk_pool->helper);
}

/* --- at the start of the keeper --- */

/* Removes the images of an earlier keeper, which are mounted no more. */
static void remove_old(const struct storage *storage)
{
	DIR *list = directory_list(storage->pool_fd);
	const struct dirent *entry;
	struct err err;

	while ((entry = directory_next(list))) {
		if (trash_discard(&storage->trash, storage->pool_fd, entry->d_name, &err) < 0)
			log_warning("an old disk of the pool stays: %s", err.message);
	}
	directory_end(list);
}

int disk_pool_open(struct disk_pool *disk_pool, const struct storage *storage, int mount_area_fd,
	struct helpers *helpers, struct err *err)
{
	int r;

	*disk_pool = (struct disk_pool){.storage = storage,
		.helpers = helpers,
		.wanted = helpers_new_shared(sizeof(*disk_pool->wanted)),
		.helper = {.name = "disk pool helper",
			.work = run_helper,
			.prepare = remove_unmounted,
			.arg = disk_pool}};
	r = mount_area_open_section(mount_area_fd, "spares", &disk_pool->ready_fd, err);
	if (r < 0)
		return r;
	helpers_share_fd(helpers, disk_pool->ready_fd);
	remove_old(storage);
	return 0;
}
