/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/disk.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "keeper/image.h"
#include "keeper/mounts.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#define LIGHT_FILES   256 /* on a disk that is emptied sooner than replaced */
#define LIGHT_BYTES   (16ull << 20)
#define SPARES	      16
#define QUIET_MS      100 /* without a create, before spares are made up to their number */
#define PARKED_US     300000
#define TRIM_EVERY_S  3
#define KEEPERS_ROOM  (256ull << 10) /* for directories that the keeper makes at each start */
#define HOME	      "home"	     /* in the image: below it ext4 keeps things near each other */
#define NAME_MAX_LEN  (KEEPER_ID_LEN + 8)
#define DIR_FLAGS     (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define PROC_PATH_LEN 96

static void image_name(const char *id, char name[NAME_MAX_LEN])
{
	snprintf(name, NAME_MAX_LEN, "%s.img", id);
}

bool disk_exists(const struct disks *disks, const char *id)
{
	char name[NAME_MAX_LEN];

	image_name(id, name);
	return faccessat(disks->storage->workspaces_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* --- mounts on the shelf --- */

/* Opens the root of what is mounted at parent/name; -1 if nothing is. */
static int open_mount(int parent, const char *name)
{
	auto_fd int fd = openat(parent, name, DIR_FLAGS);
	struct stat here, there;

	if (fd < 0 || fstat(parent, &here) < 0 || fstat(fd, &there) < 0 ||
		here.st_dev == there.st_dev)
		return -1;
	return take_fd(&fd);
}

/* Attaches a mount at parent/name, or moves it there. */
static int put_mount(int mount_fd, int parent, const char *name, struct err *err)
{
	auto_fd int place = -1;

	if (mkdirat(parent, name, 0700) < 0 && errno != EEXIST)
		return err_sys(err, "make a place for disk %s", name);
	place = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (place < 0 || mounts_attach(mount_fd, place) < 0)
		return err_sys(err, "place disk %s", name);
	return 0;
}

static void drop_mount(int parent, const char *name)
{
	char path[PROC_PATH_LEN];

	snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", parent, name);
	if (umount2(path, MNT_DETACH) < 0)
		log_warning("a disk stays mounted: %s", strerror(errno));
	unlinkat(parent, name, AT_REMOVEDIR);
}

static int make_place(int shelf_fd, const char *name, int *ret_fd, struct err *err)
{
	if (mkdirat(shelf_fd, name, 0700) < 0 && errno != EEXIST)
		return err_sys(err, "make %s", name);
	*ret_fd = openat(shelf_fd, name, DIR_FLAGS);
	return *ret_fd < 0 ? err_sys(err, "open %s", name) : 0;
}

static int open_home(int mount_fd, struct err *err)
{
	int fd = openat(mount_fd, HOME, DIR_FLAGS);

	return fd < 0 ? err_sys(err, "open the directory of a disk") : fd;
}

/* --- making --- */

/* A new image, mounted and furnished but nameless. */
static int make_image(
	const struct disks *disks, int *ret_file_fd, int *ret_mount_fd, struct err *err)
{
	auto_fd int file = -1, mount = -1, home = -1;
	int r;

	if ((r = image_make(disks->storage->spares_fd, &file, err)) < 0 ||
		(r = image_mount(file, &mount, err)) < 0)
		return r;
	if (mkdirat(mount, HOME, 0700) < 0)
		return err_sys(err, "make the directory of a disk");
	home = open_home(mount, err);
	if (home < 0)
		return home;
	r = storage_furnish(home, err);
	if (r < 0)
		return r;
	*ret_file_fd = take_fd(&file);
	*ret_mount_fd = take_fd(&mount);
	return 0;
}

static int name_image(int file_fd, int dirfd, const char *name, struct err *err)
{
	char path[PROC_PATH_LEN];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", file_fd);
	if (linkat(AT_FDCWD, path, dirfd, name, AT_SYMLINK_FOLLOW) < 0)
		return err_sys(err, "name image %s", name);
	return 0;
}

/* --- the stocker --- */

/* How many names there are in a directory, and the first of them. */
static unsigned look_into(int dirfd, char first[NAME_MAX_LEN])
{
	int fd = openat(dirfd, ".", DIR_FLAGS);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	unsigned count = 0;

	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] != '.' && count++ == 0)
			snprintf(first, NAME_MAX_LEN, "%s", entry->d_name);
	}
	if (dir)
		closedir(dir);
	else
		fd_close(fd);
	return count;
}

static unsigned look_at_spares(const struct disks *disks, char first[NAME_MAX_LEN])
{
	return look_into(disks->ready_fd, first);
}

/* Places one for whoever comes, unless there are enough: several of our children make them. */
static int put_spare(const struct disks *disks, int mount_fd, const char *name, struct err *err)
{
	auto_fd int door = openat(disks->ready_fd, ".", DIR_FLAGS);
	char first[NAME_MAX_LEN];

	if (door < 0 || flock(door, LOCK_EX) < 0)
		return err_sys(err, "lock the spare disks");
	if (look_at_spares(disks, first) >= SPARES)
		return err_set(err, ERR_CONFLICT, "there are enough spare disks");
	return put_mount(mount_fd, disks->ready_fd, name, err);
}

/* Named first and mounted then: who finds the mount finds the name. */
static int add_spare(const struct disks *disks, const char *name, struct err *err)
{
	auto_fd int file = -1, mount = -1;
	int r;

	if ((r = make_image(disks, &file, &mount, err)) < 0 ||
		(r = name_image(file, disks->storage->spares_fd, name, err)) < 0)
		return r;
	r = put_spare(disks, mount, name, err);
	if (r < 0)
		unlinkat(disks->storage->spares_fd, name, 0);
	return r;
}

/* Waits until it is needed: while there are enough, whoever is being built is not disturbed. */
static bool await_need(const struct disks *disks, int pokes)
{
	struct pollfd poked = {.fd = pokes, .events = POLLIN};
	char bytes[64], name[NAME_MAX_LEN];
	bool goes_on;

	do
		goes_on = read(pokes, bytes, sizeof(bytes)) > 0;
	while (goes_on && look_at_spares(disks, name) >= SPARES / 2 &&
		poll(&poked, 1, QUIET_MS) > 0);
	return goes_on;
}

static void run_stocker(const void *arg, int pokes)
{
	const struct disks *disks = arg;
	char name[NAME_MAX_LEN];
	unsigned made = 0;
	struct err err;

	while (await_need(disks, pokes)) {
		while (look_at_spares(disks, name) < SPARES) {
			snprintf(name, sizeof(name), "%d-%u", getpid(), ++made);
			if (add_spare(disks, name, &err) == 0)
				continue;
			if (err.kind != ERR_CONFLICT)
				log_warning("no spare disk: %s", err.message);
			break;
		}
	}
}

void disk_stock(const struct disks *disks)
{
	if (disks->can_make)
		crew_poke(&disks->stocker);
}

/* --- leaving --- */

void disk_give_back(const struct disks *disks, const char *id, int fd)
{
	char name[NAME_MAX_LEN];
	auto_fd int file = -1;

	image_name(id, name);
	file = openat(disks->storage->workspaces_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (file >= 0)
		image_trim(file, fd);
}

/* The name of a disk that was thrown away, among the spares. */
static void used_name(const char *id, char name[NAME_MAX_LEN])
{
	snprintf(name, NAME_MAX_LEN, "used-%s", id);
}

/* Whether it is sooner emptied than replaced. */
static bool is_light(const struct disks *disks, int home)
{
	struct keeper_stats usage = {0};

	image_usage(home, &usage);
	return usage.disk_files > 0 && usage.disk_files <= disks->blank.disk_files + LIGHT_FILES &&
	       usage.disk_bytes <= disks->blank.disk_bytes + LIGHT_BYTES;
}

/*
 * Makes a disk that was thrown away a spare again. Whoever gets it finds what a new one has: all else was
 * removed, and ext4 shows nobody a block that it has not written. It is counted, to be sure.
 */
static int recycle(const struct disks *disks, const char *id, int root, int home)
{
	char name[NAME_MAX_LEN];
	struct keeper_stats usage = {0};
	struct err err;
	int r;

	if (look_at_spares(disks, name) >= SPARES || !is_light(disks, home))
		return -EBUSY;
	r = storage_refurnish(home, &err);
	image_usage(home, &usage);
	if (r < 0 || usage.disk_files != disks->blank.disk_files)
		return -ENOTEMPTY;
	used_name(id, name);
	return put_spare(disks, root, name, &err);
}

/* A disk that was thrown away becomes a spare again, or nothing more is written to it; which. */
static bool reuse_or_forsake(const struct disks *disks, const char *id, int root, int home)
{
	char name[NAME_MAX_LEN];

	if (home >= 0 && recycle(disks, id, root, home) == 0)
		return true;
	image_forsake(root);
	used_name(id, name);
	unlinkat(disks->storage->spares_fd, name, 0);
	return false;
}

/* Removes what was thrown away on the disk, and unmounts. Who wants to mount it meanwhile waits. */
static void leave(const struct disks *disks, const struct disk_leaving *leaving)
{
	char name[NAME_MAX_LEN];
	bool is_spare = false;
	int root, home;

	snprintf(name, sizeof(name), "%u", leaving->number);
	root = open_mount(disks->leaving_fd, name);
	home = root < 0 ? -1 : openat(root, HOME, DIR_FLAGS);
	if (leaving->is_discarded && root >= 0) {
		is_spare = reuse_or_forsake(disks, leaving->id, root, home);
	} else if (home >= 0) {
		storage_empty_bins(home);
		disk_give_back(disks, leaving->id, home);
	}
	fd_close(home);
	fd_close(root);
	if (is_spare)
		unlinkat(disks->leaving_fd, name, AT_REMOVEDIR);
	else
		drop_mount(disks->leaving_fd, name);
}

/* A child clears up and unmounts all that were let go since the last one. */
static void start_leaving(struct disks *disks)
{
	pid_t pid;

	if (disks->leaving_count == 0)
		return;
	pid = crew_fork(disks->crew, -1);
	if (pid == 0) {
		crew_give_way();
		for (size_t i = 0; i < disks->leaving_count; i++)
			leave(disks, &disks->leaving[i]);
		_exit(0);
	}
	if (pid < 0)
		log_error("no child to unmount disks: %s", strerror(errno));
	else
		disks->leaving_count = 0;
}

/*
 * From here on a start of that sandbox mounts its disk anew, as soon as it can have it. False if it stays
 * where it is, and somebody has to try again.
 */
static bool let_go(struct disks *disks, const char *id)
{
	auto_fd int root = open_mount(disks->mounted_fd, id);
	struct disk_leaving *leaving;
	char name[NAME_MAX_LEN];
	struct err err;

	if (disks->leaving_count == DISK_PARKED_MAX)
		start_leaving(disks);
	if (root < 0)
		return true;
	if (disks->leaving_count == DISK_PARKED_MAX)
		return false;
	leaving = &disks->leaving[disks->leaving_count];
	*leaving = (struct disk_leaving){
		.number = disks->left++, .is_discarded = !disk_exists(disks, id)};
	snprintf(leaving->id, sizeof(leaving->id), "%s", id);
	snprintf(name, sizeof(name), "%u", leaving->number);
	if (put_mount(root, disks->leaving_fd, name, &err) < 0) {
		log_warning("%s", err.message);
		return false;
	}
	unlinkat(disks->mounted_fd, id, AT_REMOVEDIR);
	disks->leaving_count++;
	return true;
}

/* --- the trimmer --- */

/* Looks after disks that have been in use for a while. */
static void run_trimmer(const void *arg, int pokes)
{
	const struct disks *disks = arg;

	(void)pokes;
	for (;;) {
		int fd = openat(disks->mounted_fd, ".", DIR_FLAGS);
		DIR *dir = fd < 0 ? NULL : fdopendir(fd);
		struct dirent *entry;

		while (dir && (entry = readdir(dir))) {
			auto_fd int home = disk_open_mounted(disks, entry->d_name);

			if (home < 0)
				continue;
			image_go_direct(home);
			disk_give_back(disks, entry->d_name, home);
		}
		if (dir)
			closedir(dir);
		sleep(TRIM_EVERY_S);
	}
}

/* --- taking and opening --- */

static void unpark(struct disks *disks, size_t i)
{
	disks->parked_count--;
	memmove(&disks->parked[i], &disks->parked[i + 1],
		(disks->parked_count - i) * sizeof(disks->parked[0]));
}

static void forget_parked(struct disks *disks, const char *id)
{
	for (size_t i = 0; i < disks->parked_count; i++) {
		if (strcmp(disks->parked[i].id, id) == 0) {
			unpark(disks, i);
			return;
		}
	}
}

static bool has_directories(const struct disks *disks, const char *id)
{
	return faccessat(disks->storage->workspaces_fd, id, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

bool disk_is_new(const struct disks *disks, const char *id)
{
	return !disk_exists(disks, id) && !has_directories(disks, id);
}

/* Throws an image away: to where the child that empties it finds it, if it is mounted. */
static int throw_away(
	struct disks *disks, const char *id, int dirfd, const char *image, struct err *err)
{
	auto_fd int root = open_mount(disks->mounted_fd, id);
	char name[NAME_MAX_LEN];

	forget_parked(disks, id);
	if (root < 0)
		return storage_discard(disks->storage, dirfd, image, err);
	used_name(id, name);
	if (renameat(dirfd, image, disks->storage->spares_fd, name) < 0 && errno != ENOENT)
		return err_sys(err, "throw away the disk of %s", id);
	if (!let_go(disks, id))
		disk_park(disks, id);
	return 0;
}

/*
 * Moves the mount of a spare from a place on the shelf to that of `taker`, and its image to a new name.
 * By the keeper and not by its child, which may be killed between the two steps: then the image would be
 * mounted where nobody looks for it.
 */
static int move_spare(struct disks *disks, int from_fd, const char *spare, const char *taker,
	int dirfd, const char *image, struct err *err)
{
	auto_fd int mount = open_mount(from_fd, spare);
	int r;

	if (mount < 0)
		return err_set(err, ERR_UNAVAILABLE, "spare disk %s is not mounted", spare);
	r = put_mount(mount, disks->mounted_fd, taker, err);
	if (r < 0)
		return r;
	unlinkat(from_fd, spare, AT_REMOVEDIR);
	if (renameat(disks->storage->spares_fd, spare, dirfd, image) < 0) {
		struct err ignored;

		r = err_sys(err, "give %s its disk", taker);
		(void)!throw_away(disks, taker, disks->storage->spares_fd, spare, &ignored);
		return r;
	}
	return 0;
}

/* One that nobody has yet becomes the disk of id. */
static int give_spare(
	struct disks *disks, int from_fd, const char *spare, const char *id, struct err *err)
{
	char image[NAME_MAX_LEN];

	image_name(id, image);
	return move_spare(
		disks, from_fd, spare, id, disks->storage->workspaces_fd, image, err);
}

int disk_reserve(struct disks *disks, const char *name, struct err *err)
{
	char spare[NAME_MAX_LEN];

	if (!disks->can_make || look_at_spares(disks, spare) == 0)
		return err_set(err, ERR_UNAVAILABLE, "there is no spare disk");
	return move_spare(
		disks, disks->ready_fd, spare, name, disks->storage->spares_fd, name, err);
}

int disk_hand_over(struct disks *disks, const char *name, const char *id, struct err *err)
{
	return give_spare(disks, disks->mounted_fd, name, id, err);
}

void disk_unreserve(struct disks *disks, const char *name)
{
	struct err err;

	if (throw_away(disks, name, disks->storage->spares_fd, name, &err) < 0)
		log_warning("%s", err.message);
}

void disk_claim(struct disks *disks, const char *id, bool wants_limit)
{
	char spare[NAME_MAX_LEN];
	struct err err;

	forget_parked(disks, id);
	if (!wants_limit || !disks->can_make || !disk_is_new(disks, id))
		return;
	if (look_at_spares(disks, spare) > 0 &&
		give_spare(disks, disks->ready_fd, spare, id, &err) < 0)
		log_warning("%s", err.message);
	disk_stock(disks);
}

static int open_image(const struct disks *disks, const char *id, int *ret_mount_fd, struct err *err)
{
	char name[NAME_MAX_LEN];
	auto_fd int file = -1;

	image_name(id, name);
	file = openat(disks->storage->workspaces_fd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (file < 0)
		return err_sys(err, "open the disk of %s", id);
	return image_mount(file, ret_mount_fd, err);
}

static int make_for(const struct disks *disks, const char *id, int *ret_mount_fd, struct err *err)
{
	auto_fd int file = -1;
	char name[NAME_MAX_LEN];
	int r = make_image(disks, &file, ret_mount_fd, err);

	image_name(id, name);
	return r < 0 ? r : name_image(file, disks->storage->workspaces_fd, name, err);
}

/* Mounts the disk in its place and opens its root. -ENOENT: it is to have directories. */
static int mount_root(
	const struct disks *disks, const char *id, bool may_make, int *ret_fd, struct err *err)
{
	auto_fd int mount = -1;
	int r;

	if (disk_exists(disks, id))
		r = open_image(disks, id, &mount, err);
	else if (may_make && disks->can_make && !has_directories(disks, id))
		r = make_for(disks, id, &mount, err);
	else
		return -ENOENT;
	if (r == 0)
		r = put_mount(mount, disks->mounted_fd, id, err);
	if (r < 0)
		return r;
	/* By its place: before 6.15 only what is mounted somewhere can be cloned. */
	*ret_fd = disk_open_root(disks, id);
	return *ret_fd < 0 ? err_sys(err, "open the disk of %s", id) : 0;
}

int disk_open_root(const struct disks *disks, const char *id)
{
	return open_mount(disks->mounted_fd, id);
}

int disk_open(const struct disks *disks, const char *id, int root_fd, uint64_t limit_bytes,
	struct disk *ret_disk, struct err *err)
{
	auto_fd int mounted = -1, home = -1, knob = -1;
	int r = 0;

	*ret_disk = (struct disk){.home_fd = -1, .knob_fd = -1};
	if (root_fd < 0) {
		r = mount_root(disks, id, limit_bytes > 0, &mounted, err);
		if (r < 0)
			return r == -ENOENT ? 0 : r;
		root_fd = mounted;
	}
	home = open_home(root_fd, err);
	if (home < 0)
		return home;
	if ((r = image_open_knob(home, &knob, err)) < 0 ||
		(r = image_set_limit(home, knob,
			 limit_bytes ? limit_bytes + KEEPERS_ROOM : IMAGE_BYTES, err)) < 0)
		return r;
	*ret_disk = (struct disk){.home_fd = take_fd(&home), .knob_fd = take_fd(&knob)};
	return 0;
}

int disk_seal(const struct disk *disk, uint64_t limit_bytes, struct err *err)
{
	if (disk->home_fd < 0)
		return 0;
	storage_reserve(disk->home_fd);
	if (limit_bytes == 0)
		return 0;
	return image_set_limit(disk->home_fd, disk->knob_fd, limit_bytes, err);
}

int disk_open_mounted(const struct disks *disks, const char *id)
{
	auto_fd int root = open_mount(disks->mounted_fd, id);

	return root < 0 ? -1 : openat(root, HOME, DIR_FLAGS);
}

int disk_set_limit(const struct disks *disks, const char *id, uint64_t limit_bytes, struct err *err)
{
	auto_fd int home = disk_open_mounted(disks, id);
	auto_fd int knob = -1;
	int r;

	if (home < 0)
		return 0; /* directories, which have no limit */
	r = image_open_knob(home, &knob, err);
	return r < 0 ? r : image_set_limit(home, knob, limit_bytes, err);
}

int disk_borrow(const struct disks *disks, const char *id, int *ret_home_fd, struct err *err)
{
	auto_fd int mount = -1;
	int r = open_image(disks, id, &mount, err);

	if (r < 0)
		return r;
	r = open_home(mount, err);
	if (r < 0)
		return r;
	*ret_home_fd = r;
	return 0;
}

/* --- ended sandboxes --- */

int disk_discard(struct disks *disks, const char *id, struct err *err)
{
	char name[NAME_MAX_LEN];

	image_name(id, name);
	return throw_away(disks, id, disks->storage->workspaces_fd, name, err);
}

void disk_park(struct disks *disks, const char *id)
{
	struct disk_parked *parked;

	forget_parked(disks, id);
	if (disks->parked_count == DISK_PARKED_MAX) {
		if (!let_go(disks, disks->parked[0].id))
			log_error("the disk of %s stays mounted", disks->parked[0].id);
		unpark(disks, 0);
	}
	parked = &disks->parked[disks->parked_count++];
	snprintf(parked->id, sizeof(parked->id), "%s", id);
	parked->until_us = clock_steady_us() + PARKED_US;
}

int disk_retire(struct disks *disks)
{
	uint64_t now = clock_steady_us();

	while (disks->parked_count > 0 && disks->parked[0].until_us <= now) {
		struct disk_parked parked = disks->parked[0];

		unpark(disks, 0);
		if (!let_go(disks, parked.id))
			disk_park(disks, parked.id);
	}
	start_leaving(disks);
	if (disks->leaving_count > 0) /* there was no child for them */
		return PARKED_US / 1000;
	return disks->parked_count == 0 ? -1 : (int)((disks->parked[0].until_us - now) / 1000 + 1);
}

/* --- at the start of the keeper --- */

/* Those of a keeper before us, which nobody has mounted any more. */
static void remove_old_spares(const struct storage *storage)
{
	char name[NAME_MAX_LEN];

	while (look_into(storage->spares_fd, name) > 0) {
		if (unlinkat(storage->spares_fd, name, 0) < 0)
			return;
	}
}

/* Makes one and sets its limit: whatever a disk needs is then known to work. */
static int try_one(struct disks *disks, struct err *err)
{
	auto_fd int file = -1, mount = -1, knob = -1;
	int r;

	if ((r = make_image(disks, &file, &mount, err)) < 0 ||
		(r = image_open_knob(mount, &knob, err)) < 0 ||
		(r = image_set_limit(mount, knob, 1 << 20, err)) < 0)
		return r;
	image_usage(mount, &disks->blank);
	return 0;
}

int disk_start(struct disks *disks, const struct storage *storage, int shelf_fd, struct crew *crew,
	struct err *err)
{
	struct err why;
	int r;

	*disks = (struct disks){.storage = storage,
		.crew = crew,
		.stocker = {.name = "stocker", .work = run_stocker, .arg = disks},
		.trimmer = {.name = "trimmer", .work = run_trimmer, .arg = disks}};
	if ((r = make_place(shelf_fd, "disks", &disks->mounted_fd, err)) < 0 ||
		(r = make_place(shelf_fd, "spares", &disks->ready_fd, err)) < 0 ||
		(r = make_place(shelf_fd, "leaving", &disks->leaving_fd, err)) < 0)
		return r;
	crew_lend(crew, disks->mounted_fd);
	crew_lend(crew, disks->ready_fd);
	crew_lend(crew, disks->leaving_fd);
	remove_old_spares(storage);
	disks->can_make = try_one(disks, &why) == 0;
	if (!disks->can_make) {
		log_warning("the disks of new sandboxes will have no limit: %s", why.message);
		return 0;
	}
	crew_join(crew, &disks->stocker);
	crew_join(crew, &disks->trimmer);
	return 0;
}
