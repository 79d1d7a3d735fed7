/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/departure.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "keeper/image.h"
#include "keeper/shelf.h"
#include "keeper/trash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define LIGHT_FILES  256 /* on a disk that is emptied sooner than replaced */
#define LIGHT_BYTES  (16ull << 20)
#define PARKED_US    300000
#define RETRY_US     1000000
#define CHILDREN_MAX 8
/* Who ended in the middle of clearing up so often will always end there. What stays is removed at the next
 * start of the sandbox. */
#define CLEAR_UP_TRIES 3

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
static bool reuse_or_forsake(const struct departures *departures, int root, bool may_reuse)
{
	auto_fd int home = -1;
	char name[DISK_IMAGE_NAME_MAX];
	struct err err;

	if (may_reuse && disk_image_open_home(root, &home, &err) == 0 &&
		recycle(departures, root, home) == 0)
		return true;
	image_forsake(root);
	used_name(root, name);
	unlinkat(departures->storage->spares_fd, name, 0);
	return false;
}

/* Removes what was thrown away on the disk. Who wants to mount it meanwhile waits. */
static void clear_up(
	const struct departures *departures, const struct departure *departure, int root)
{
	auto_fd int home = -1;
	struct err err;

	if (disk_image_open_home(root, &home, &err) < 0)
		return;
	storage_empty_bins(home);
	disk_image_give_back(departures->storage, departure->id, home);
}

/*
 * Whatever somebody before us has done of it. A place without a mount is one whose disk is a spare by now, or
 * was unmounted.
 */
static int leave(
	const struct departures *departures, const struct departure *departure, const char *place)
{
	auto_fd int root = shelf_open_mount(departures->leaving_fd, place);
	bool clears_up = departure->failures < CLEAR_UP_TRIES;
	bool is_mounted = root != -ENOENT;
	int r;

	if (root >= 0 && departure->is_discarded)
		is_mounted = !reuse_or_forsake(departures, root, clears_up);
	else if (root >= 0 && clears_up)
		clear_up(departures, departure, root);
	fd_close(take_fd(&root));
	if (is_mounted && (r = shelf_unmount(departures->leaving_fd, place)) < 0) {
		log_warning("the disk of %s stays mounted: %s", departure->id, strerror(-r));
		return r;
	}
	shelf_drop_place(departures->leaving_fd, place);
	return 0;
}

/* --- in the keeper --- */

static struct departure *add(struct departure **list, const char *id)
{
	struct departure *departure = mem_new(sizeof(*departure));

	while (*list)
		list = &(*list)->next;
	*list = departure;
	snprintf(departure->id, sizeof(departure->id), "%s", id);
	return departure;
}

/* Takes the one that *link points to off its list. */
static void drop(struct departure **link)
{
	struct departure *departure = *link;

	*link = departure->next;
	free(departure);
}

void departure_cancel(struct departures *departures, const char *id)
{
	struct departure **link = &departures->parked;

	while (*link && strcmp((*link)->id, id) != 0)
		link = &(*link)->next;
	if (*link)
		drop(link);
}

void departure_park(struct departures *departures, const char *id)
{
	departure_cancel(departures, id);
	add(&departures->parked, id)->due_us = clock_steady_us() + PARKED_US;
}

static void place_name(unsigned number, char name[static DISK_IMAGE_NAME_MAX])
{
	snprintf(name, DISK_IMAGE_NAME_MAX, "%u", number);
}

/* From here on a start of that sandbox mounts its disk, whose root is open, anew, as soon as it can have it. */
static int let_go(struct departures *departures, const char *id, int root,
	struct departure **ret_departure, struct err *err)
{
	unsigned number = departures->let_go_count++;
	struct departure *departure;
	char place[DISK_IMAGE_NAME_MAX];
	int r;

	place_name(number, place);
	r = shelf_put_mount(departures->leaving_fd, place, root, err);
	if (r < 0)
		return r;
	shelf_drop_place(departures->mounted_fd, id);
	departure = add(&departures->leaving, id);
	departure->number = number;
	*ret_departure = departure;
	return 0;
}

/*
 * If it is mounted, its image goes to where the child that empties it finds it. Not before the mount: a new
 * sandbox of the same id must not find that without the image.
 */
int departure_throw_away(struct departures *departures, const char *id, int dirfd,
	const char *image, struct err *err)
{
	auto_fd int root = shelf_open_mount(departures->mounted_fd, id);
	const struct storage *storage = departures->storage;
	struct departure *departure;
	char name[DISK_IMAGE_NAME_MAX];
	int r;

	if (root == -ENOENT)
		return trash_discard(storage, dirfd, image, err);
	if (root < 0)
		return err_from(err, root, "open the disk of %s", id);
	r = let_go(departures, id, root, &departure, err);
	if (r < 0)
		return r;
	departure_cancel(departures, id);
	used_name(root, name);
	if (renameat(dirfd, image, storage->spares_fd, name) < 0 && errno != ENOENT)
		return err_sys(err, "throw away the disk of %s", id);
	departure->is_discarded = true;
	return 0;
}

/* Starts a child that sees one off. */
static void see_off(struct departures *departures, struct departure *departure)
{
	char place[DISK_IMAGE_NAME_MAX];
	pid_t pid = crew_fork(departures->crew, NULL);

	place_name(departure->number, place);
	if (pid == 0) {
		crew_give_way();
		_exit(leave(departures, departure, place) < 0);
	}
	departure->due_us = clock_steady_us() + RETRY_US;
	if (pid < 0) {
		log_error("no child to unmount a disk: %s", strerror(errno));
		return;
	}
	departure->pid = pid;
	departures->child_count++;
}

bool departure_reaped(struct departures *departures, pid_t pid, int status)
{
	struct departure **link = &departures->leaving;

	while (*link && (*link)->pid != pid)
		link = &(*link)->next;
	if (!*link)
		return false;
	departures->child_count--;
	(*link)->pid = 0;
	if (status == 0) {
		drop(link);
		return true;
	}
	log_warning("who unmounts the disk of %s ended with status %d; there will be another",
		(*link)->id, status);
	(*link)->failures++;
	return true;
}

static void let_go_or_park(struct departures *departures, const char *id)
{
	auto_fd int root = shelf_open_mount(departures->mounted_fd, id);
	struct departure *departure;
	struct err err;
	int r;

	if (root == -ENOENT)
		return;
	r = root < 0 ? err_from(&err, root, "open the disk of %s", id)
		     : let_go(departures, id, root, &departure, &err);
	if (r < 0) {
		log_warning("%s", err.message);
		departure_park(departures, id);
	}
}

static bool has_room(const struct departures *departures)
{
	size_t count = 0;

	for (const struct departure *at = departures->leaving; at && count < CHILDREN_MAX;
		at = at->next)
		count++;
	return count < CHILDREN_MAX;
}

/* No more than are seen off at once: whoever wants one back that was let go waits until it is unmounted. */
static void let_go_of_parked(struct departures *departures, uint64_t now_us)
{
	while (departures->parked && departures->parked->due_us <= now_us && has_room(departures)) {
		char id[KEEPER_ID_LEN + 1];

		memcpy(id, departures->parked->id, sizeof(id));
		drop(&departures->parked);
		let_go_or_park(departures, id);
	}
}

int departure_tend(struct departures *departures)
{
	uint64_t now_us = clock_steady_us(), soonest_us = UINT64_MAX;

	let_go_of_parked(departures, now_us);
	if (departures->parked && departures->parked->due_us > now_us)
		soonest_us = departures->parked->due_us;
	for (struct departure *departure = departures->leaving;
		departure && departures->child_count < CHILDREN_MAX; departure = departure->next) {
		if (!departure->pid && departure->due_us <= now_us)
			see_off(departures, departure);
		if (!departure->pid && departure->due_us < soonest_us)
			soonest_us = departure->due_us;
	}
	/* Where there is no child to be had, the end of one calls us. */
	return soonest_us == UINT64_MAX ? -1 : (int)((soonest_us - now_us) / 1000 + 1);
}
