/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/departure.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "keeper/image.h"
#include "keeper/shelf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define LIGHT_FILES 256 /* on a disk that is emptied sooner than replaced */
#define LIGHT_BYTES (16ull << 20)
#define PARKED_US   300000

int departure_open(struct departures *departures, const struct spares *spares, int shelf_fd,
	int mounted_fd, struct err *err)
{
	int r;

	*departures = (struct departures){.storage = spares->storage,
		.spares = spares,
		.crew = spares->crew,
		.mounted_fd = mounted_fd};
	r = shelf_open_section(shelf_fd, "leaving", &departures->leaving_fd, err);
	if (r == 0)
		crew_lend(departures->crew, departures->leaving_fd);
	return r;
}

/* The name of a disk that was thrown away, among the spares: by its device, which it has alone while mounted. */
static void used_name(int root, char name[static DISK_IMAGE_NAME_MAX])
{
	struct stat st = {0};

	fstat(root, &st);
	snprintf(name, DISK_IMAGE_NAME_MAX, "used-%u", minor(st.st_dev));
}

/* --- in the child --- */

/*
 * Whether it takes little of the host: the tables of files that it had once stay, as far as the kernel has
 * written them.
 */
static bool is_lean(const struct departures *departures, const char *name, int home)
{
	auto_fd int file =
		openat(departures->storage->spares_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	return file >= 0 && !image_is_bloated(file, home);
}

/* Whether it is sooner emptied than replaced. */
static bool is_light(const struct departures *departures, int home)
{
	const struct keeper_stats *blank = &departures->blank;
	struct keeper_stats usage = {0};

	image_usage(home, &usage);
	return usage.disk_files > 0 && usage.disk_files <= blank->disk_files + LIGHT_FILES &&
	       usage.disk_bytes <= blank->disk_bytes + LIGHT_BYTES;
}

/*
 * Makes a disk that was thrown away a spare again. Whoever gets it finds what a new one has: all else was
 * removed, and ext4 shows nobody a block that it has not written. It is counted, to be sure.
 */
static int recycle(const struct departures *departures, int root, int home)
{
	const struct keeper_stats *blank = &departures->blank;
	char name[DISK_IMAGE_NAME_MAX];
	struct keeper_stats usage = {0};
	struct err err;
	int r;

	used_name(root, name);
	if (spares_are_enough(departures->spares) || !is_light(departures, home) ||
		!is_lean(departures, name, home))
		return -EBUSY;
	r = storage_refurnish(home, &err);
	image_usage(home, &usage);
	if (r < 0 || usage.disk_files != blank->disk_files || usage.disk_bytes > blank->disk_bytes)
		return -ENOTEMPTY;
	return spares_put(departures->spares, root, name, &err);
}

/* A disk that was thrown away becomes a spare again, or nothing more is written to it; which. */
static bool reuse_or_forsake(const struct departures *departures, int root, int home)
{
	char name[DISK_IMAGE_NAME_MAX];

	if (home >= 0 && recycle(departures, root, home) == 0)
		return true;
	image_forsake(root);
	used_name(root, name);
	unlinkat(departures->storage->spares_fd, name, 0);
	return false;
}

/* Removes what was thrown away on the disk, and unmounts. Who wants to mount it meanwhile waits. */
static void leave(const struct departures *departures, const struct departure_leaving *leaving)
{
	char name[DISK_IMAGE_NAME_MAX];
	bool is_spare = false;
	int root, home = -1;
	struct err ignored;

	snprintf(name, sizeof(name), "%u", leaving->number);
	root = shelf_open_mount(departures->leaving_fd, name);
	if (root >= 0)
		(void)!disk_image_open_home(root, &home, &ignored);
	if (leaving->is_discarded && root >= 0) {
		is_spare = reuse_or_forsake(departures, root, home);
	} else if (home >= 0) {
		storage_empty_bins(home);
		disk_image_give_back(departures->storage, leaving->id, home);
	}
	fd_close(home);
	fd_close(root);
	if (is_spare)
		shelf_drop_place(departures->leaving_fd, name);
	else
		shelf_drop_mount(departures->leaving_fd, name);
}

/* A child clears up and unmounts all that were let go since the last one. */
static void start_leaving(struct departures *departures)
{
	pid_t pid;

	if (departures->leaving_count == 0)
		return;
	pid = crew_fork(departures->crew, -1);
	if (pid == 0) {
		crew_give_way();
		for (size_t i = 0; i < departures->leaving_count; i++)
			leave(departures, &departures->leaving[i]);
		_exit(0);
	}
	if (pid < 0)
		log_error("no child to unmount disks: %s", strerror(errno));
	else
		departures->leaving_count = 0;
}

/* --- in the keeper --- */

/*
 * From here on a start of that sandbox mounts its disk anew, as soon as it can have it. False if it stays
 * where it is, and somebody has to try again.
 */
static bool let_go(struct departures *departures, const char *id)
{
	auto_fd int root = shelf_open_mount(departures->mounted_fd, id);
	struct departure_leaving *leaving;
	char name[DISK_IMAGE_NAME_MAX];
	struct err err;

	if (departures->leaving_count == DEPARTURE_PARKED_MAX)
		start_leaving(departures);
	if (root < 0)
		return true;
	if (departures->leaving_count == DEPARTURE_PARKED_MAX)
		return false;
	leaving = &departures->leaving[departures->leaving_count];
	*leaving = (struct departure_leaving){.number = departures->left++,
		.is_discarded = !disk_image_exists(departures->storage, id)};
	snprintf(leaving->id, sizeof(leaving->id), "%s", id);
	snprintf(name, sizeof(name), "%u", leaving->number);
	if (shelf_put_mount(departures->leaving_fd, name, root, &err) < 0) {
		log_warning("%s", err.message);
		return false;
	}
	shelf_drop_place(departures->mounted_fd, id);
	departures->leaving_count++;
	return true;
}

static void unpark(struct departures *departures, size_t i)
{
	departures->parked_count--;
	memmove(&departures->parked[i], &departures->parked[i + 1],
		(departures->parked_count - i) * sizeof(departures->parked[0]));
}

void departure_cancel(struct departures *departures, const char *id)
{
	for (size_t i = 0; i < departures->parked_count; i++) {
		if (strcmp(departures->parked[i].id, id) == 0) {
			unpark(departures, i);
			return;
		}
	}
}

void departure_park(struct departures *departures, const char *id)
{
	struct departure_parked *parked;

	departure_cancel(departures, id);
	if (departures->parked_count == DEPARTURE_PARKED_MAX) {
		if (!let_go(departures, departures->parked[0].id))
			log_error("the disk of %s stays mounted", departures->parked[0].id);
		unpark(departures, 0);
	}
	parked = &departures->parked[departures->parked_count++];
	snprintf(parked->id, sizeof(parked->id), "%s", id);
	parked->until_us = clock_steady_us() + PARKED_US;
}

/* If it is mounted, its image goes to where the child that empties it finds it. */
int departure_throw_away(struct departures *departures, const char *id, int dirfd,
	const char *image, struct err *err)
{
	auto_fd int root = shelf_open_mount(departures->mounted_fd, id);
	const struct storage *storage = departures->storage;
	char name[DISK_IMAGE_NAME_MAX];

	departure_cancel(departures, id);
	if (root < 0)
		return storage_discard(storage, dirfd, image, err);
	used_name(root, name);
	if (renameat(dirfd, image, storage->spares_fd, name) < 0 && errno != ENOENT)
		return err_sys(err, "throw away the disk of %s", id);
	if (!let_go(departures, id))
		departure_park(departures, id);
	return 0;
}

int departure_tend(struct departures *departures)
{
	uint64_t now = clock_steady_us();

	while (departures->parked_count > 0 && departures->parked[0].until_us <= now) {
		struct departure_parked parked = departures->parked[0];

		unpark(departures, 0);
		if (!let_go(departures, parked.id))
			departure_park(departures, parked.id);
	}
	start_leaving(departures);
	if (departures->leaving_count > 0) /* there was no child for them */
		return PARKED_US / 1000;
	return departures->parked_count == 0
		       ? -1
		       : (int)((departures->parked[0].until_us - now) / 1000 + 1);
}
