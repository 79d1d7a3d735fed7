/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/stock.h"

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
#include <sys/sysmacros.h>

#define LIGHT_FILES   256 /* on a disk that is emptied sooner than replaced */
#define LIGHT_BYTES   (16ull << 20)
#define SPARES	      16
#define QUIET_MS      100 /* without a create, before spares are made up to their number */
#define PARKED_US     300000
#define TRIM_EVERY_S  3
#define HOME	      "home" /* in the image: below it ext4 keeps things near each other */
#define NAME_MAX_LEN  (KEEPER_ID_LEN + 8)
#define DIR_FLAGS     (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define PROC_PATH_LEN 96

static void image_name(const char *id, char name[NAME_MAX_LEN])
{
	snprintf(name, NAME_MAX_LEN, "%s.img", id);
}

bool stock_has(const struct stock *stock, const char *id)
{
	char name[NAME_MAX_LEN];

	image_name(id, name);
	return faccessat(stock->storage->workspaces_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* --- directories --- */

static DIR *open_listing(int dirfd)
{
	int fd = openat(dirfd, ".", DIR_FLAGS);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir)
		fd_close(fd);
	return dir;
}

/* NULL at the end, and of a directory that could not be opened. */
static const char *next_name(DIR *dir)
{
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] != '.')
			return entry->d_name;
	}
	return NULL;
}

static void close_listing(DIR *dir)
{
	if (dir)
		closedir(dir);
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
	if (place < 0 || mounts_attach(mount_fd, place) < 0) {
		int r = err_sys(err, "place disk %s", name);

		unlinkat(parent, name, AT_REMOVEDIR);
		return r;
	}
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
	const struct stock *stock, int *ret_file_fd, int *ret_mount_fd, struct err *err)
{
	auto_fd int file = -1, mount = -1, home = -1;
	int r;

	if ((r = image_make(stock->storage->spares_fd, &file, err)) < 0 ||
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

static unsigned count_spares(const struct stock *stock)
{
	DIR *dir = open_listing(stock->ready_fd);
	unsigned count = 0;

	while (next_name(dir))
		count++;
	close_listing(dir);
	return count;
}

/* A place without a mount is one that somebody is about to fill, or was killed before that. */
static bool find_spare(const struct stock *stock, char name[NAME_MAX_LEN])
{
	DIR *dir = open_listing(stock->ready_fd);
	const char *next;
	bool is_found = false;

	while (!is_found && (next = next_name(dir))) {
		auto_fd int mount = open_mount(stock->ready_fd, next);

		is_found = mount >= 0;
		snprintf(name, NAME_MAX_LEN, "%s", next);
	}
	close_listing(dir);
	return is_found;
}

/* Places one for whoever comes, unless there are enough: several of our children make them. */
static int put_spare(const struct stock *stock, int mount_fd, const char *name, struct err *err)
{
	auto_fd int door = openat(stock->ready_fd, ".", DIR_FLAGS);

	if (door < 0 || flock(door, LOCK_EX) < 0)
		return err_sys(err, "lock the spare disks");
	if (count_spares(stock) >= SPARES)
		return err_set(err, ERR_CONFLICT, "there are enough spare disks");
	return put_mount(mount_fd, stock->ready_fd, name, err);
}

/* Named first and mounted then: who finds the mount finds the name. */
static int add_spare(const struct stock *stock, const char *name, struct err *err)
{
	auto_fd int file = -1, mount = -1;
	int r;

	if ((r = make_image(stock, &file, &mount, err)) < 0 ||
		(r = name_image(file, stock->storage->spares_fd, name, err)) < 0)
		return r;
	r = put_spare(stock, mount, name, err);
	if (r < 0)
		unlinkat(stock->storage->spares_fd, name, 0);
	return r;
}

/* Waits until it is needed: while there are enough, whoever is being built is not disturbed. */
static bool await_need(const struct stock *stock, int pokes)
{
	struct pollfd poked = {.fd = pokes, .events = POLLIN};
	char bytes[64];
	bool goes_on;

	do
		goes_on = read(pokes, bytes, sizeof(bytes)) > 0;
	while (goes_on && count_spares(stock) >= SPARES / 2 && poll(&poked, 1, QUIET_MS) > 0);
	return goes_on;
}

static void run_stocker(const void *arg, int pokes)
{
	const struct stock *stock = arg;
	char name[NAME_MAX_LEN];
	unsigned made = 0;
	struct err err;

	while (await_need(stock, pokes)) {
		while (count_spares(stock) < SPARES) {
			snprintf(name, sizeof(name), "%d-%u", getpid(), ++made);
			if (add_spare(stock, name, &err) == 0)
				continue;
			if (err.kind != ERR_CONFLICT)
				log_warning("no spare disk: %s", err.message);
			break;
		}
	}
}

void stock_fill_up(const struct stock *stock)
{
	crew_poke(&stock->stocker);
}

/* --- leaving --- */

void stock_give_back(const struct stock *stock, const char *id, int fd)
{
	char name[NAME_MAX_LEN];
	auto_fd int file = -1;

	image_name(id, name);
	file = openat(stock->storage->workspaces_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (file >= 0)
		image_trim(file, fd);
}

/* The name of a disk that was thrown away, among the spares: by its device, which it has alone while mounted. */
static void used_name(int root, char name[NAME_MAX_LEN])
{
	struct stat st = {0};

	fstat(root, &st);
	snprintf(name, NAME_MAX_LEN, "used-%u", minor(st.st_dev));
}

/*
 * Whether it takes little of the host: the tables of files that it had once stay, as far as the kernel has
 * written them.
 */
static bool is_lean(const struct stock *stock, const char *name, int home)
{
	auto_fd int file =
		openat(stock->storage->spares_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	return file >= 0 && !image_is_bloated(file, home);
}

/* Whether it is sooner emptied than replaced. */
static bool is_light(const struct stock *stock, int home)
{
	struct keeper_stats usage = {0};

	image_usage(home, &usage);
	return usage.disk_files > 0 && usage.disk_files <= stock->blank.disk_files + LIGHT_FILES &&
	       usage.disk_bytes <= stock->blank.disk_bytes + LIGHT_BYTES;
}

/*
 * Makes a disk that was thrown away a spare again. Whoever gets it finds what a new one has: all else was
 * removed, and ext4 shows nobody a block that it has not written. It is counted, to be sure.
 */
static int recycle(const struct stock *stock, int root, int home)
{
	char name[NAME_MAX_LEN];
	struct keeper_stats usage = {0};
	struct err err;
	int r;

	used_name(root, name);
	if (count_spares(stock) >= SPARES || !is_light(stock, home) || !is_lean(stock, name, home))
		return -EBUSY;
	r = storage_refurnish(home, &err);
	image_usage(home, &usage);
	if (r < 0 || usage.disk_files != stock->blank.disk_files ||
		usage.disk_bytes > stock->blank.disk_bytes)
		return -ENOTEMPTY;
	return put_spare(stock, root, name, &err);
}

/* A disk that was thrown away becomes a spare again, or nothing more is written to it; which. */
static bool reuse_or_forsake(const struct stock *stock, int root, int home)
{
	char name[NAME_MAX_LEN];

	if (home >= 0 && recycle(stock, root, home) == 0)
		return true;
	image_forsake(root);
	used_name(root, name);
	unlinkat(stock->storage->spares_fd, name, 0);
	return false;
}

/* Removes what was thrown away on the disk, and unmounts. Who wants to mount it meanwhile waits. */
static void leave(const struct stock *stock, const struct stock_leaving *leaving)
{
	char name[NAME_MAX_LEN];
	bool is_spare = false;
	int root, home;

	snprintf(name, sizeof(name), "%u", leaving->number);
	root = open_mount(stock->leaving_fd, name);
	home = root < 0 ? -1 : openat(root, HOME, DIR_FLAGS);
	if (leaving->is_discarded && root >= 0) {
		is_spare = reuse_or_forsake(stock, root, home);
	} else if (home >= 0) {
		storage_empty_bins(home);
		stock_give_back(stock, leaving->id, home);
	}
	fd_close(home);
	fd_close(root);
	if (is_spare)
		unlinkat(stock->leaving_fd, name, AT_REMOVEDIR);
	else
		drop_mount(stock->leaving_fd, name);
}

/* A child clears up and unmounts all that were let go since the last one. */
static void start_leaving(struct stock *stock)
{
	pid_t pid;

	if (stock->leaving_count == 0)
		return;
	pid = crew_fork(stock->crew, -1);
	if (pid == 0) {
		crew_give_way();
		for (size_t i = 0; i < stock->leaving_count; i++)
			leave(stock, &stock->leaving[i]);
		_exit(0);
	}
	if (pid < 0)
		log_error("no child to unmount disks: %s", strerror(errno));
	else
		stock->leaving_count = 0;
}

/*
 * From here on a start of that sandbox mounts its disk anew, as soon as it can have it. False if it stays
 * where it is, and somebody has to try again.
 */
static bool let_go(struct stock *stock, const char *id)
{
	auto_fd int root = open_mount(stock->mounted_fd, id);
	struct stock_leaving *leaving;
	char name[NAME_MAX_LEN];
	struct err err;

	if (stock->leaving_count == STOCK_PARKED_MAX)
		start_leaving(stock);
	if (root < 0)
		return true;
	if (stock->leaving_count == STOCK_PARKED_MAX)
		return false;
	leaving = &stock->leaving[stock->leaving_count];
	*leaving = (struct stock_leaving){
		.number = stock->left++, .is_discarded = !stock_has(stock, id)};
	snprintf(leaving->id, sizeof(leaving->id), "%s", id);
	snprintf(name, sizeof(name), "%u", leaving->number);
	if (put_mount(root, stock->leaving_fd, name, &err) < 0) {
		log_warning("%s", err.message);
		return false;
	}
	unlinkat(stock->mounted_fd, id, AT_REMOVEDIR);
	stock->leaving_count++;
	return true;
}

/* --- the trimmer --- */

/* Looks after disks that have been in use for a while. */
static void run_trimmer(const void *arg, int pokes)
{
	const struct stock *stock = arg;

	(void)pokes;
	for (;;) {
		DIR *dir = open_listing(stock->mounted_fd);
		const char *id;

		while ((id = next_name(dir))) {
			auto_fd int home = stock_open_mounted(stock, id);

			if (home < 0)
				continue;
			image_go_direct(home);
			stock_give_back(stock, id, home);
		}
		close_listing(dir);
		sleep(TRIM_EVERY_S);
	}
}

/* --- taking and opening --- */

static void unpark(struct stock *stock, size_t i)
{
	stock->parked_count--;
	memmove(&stock->parked[i], &stock->parked[i + 1],
		(stock->parked_count - i) * sizeof(stock->parked[0]));
}

static void forget_parked(struct stock *stock, const char *id)
{
	for (size_t i = 0; i < stock->parked_count; i++) {
		if (strcmp(stock->parked[i].id, id) == 0) {
			unpark(stock, i);
			return;
		}
	}
}

/* Throws an image away: to where the child that empties it finds it, if it is mounted. */
static int throw_away(
	struct stock *stock, const char *id, int dirfd, const char *image, struct err *err)
{
	auto_fd int root = open_mount(stock->mounted_fd, id);
	char name[NAME_MAX_LEN];

	forget_parked(stock, id);
	if (root < 0)
		return storage_discard(stock->storage, dirfd, image, err);
	used_name(root, name);
	if (renameat(dirfd, image, stock->storage->spares_fd, name) < 0 && errno != ENOENT)
		return err_sys(err, "throw away the disk of %s", id);
	if (!let_go(stock, id))
		stock_park(stock, id);
	return 0;
}

/*
 * Moves the mount of a spare from a place on the shelf to that of `taker`, and its image to a new name.
 * By the keeper and not by its child, which may be killed between the two steps: then the image would be
 * mounted where nobody looks for it.
 */
static int move_spare(struct stock *stock, int from_fd, const char *spare, const char *taker,
	int dirfd, const char *image, struct err *err)
{
	auto_fd int mount = open_mount(from_fd, spare);
	int r;

	if (mount < 0)
		return err_set(err, ERR_UNAVAILABLE, "spare disk %s is not mounted", spare);
	r = put_mount(mount, stock->mounted_fd, taker, err);
	if (r < 0)
		return r;
	unlinkat(from_fd, spare, AT_REMOVEDIR);
	if (renameat(stock->storage->spares_fd, spare, dirfd, image) < 0) {
		struct err ignored;

		r = err_sys(err, "give %s its disk", taker);
		(void)!throw_away(stock, taker, stock->storage->spares_fd, spare, &ignored);
		return r;
	}
	return 0;
}

/* One that nobody has yet becomes the disk of id. */
static int give_spare(
	struct stock *stock, int from_fd, const char *spare, const char *id, struct err *err)
{
	char image[NAME_MAX_LEN];

	image_name(id, image);
	return move_spare(stock, from_fd, spare, id, stock->storage->workspaces_fd, image, err);
}

int stock_reserve(struct stock *stock, const char *name, struct err *err)
{
	char spare[NAME_MAX_LEN];

	if (!find_spare(stock, spare))
		return err_set(err, ERR_UNAVAILABLE, "there is no spare disk");
	return move_spare(
		stock, stock->ready_fd, spare, name, stock->storage->spares_fd, name, err);
}

int stock_hand_over(struct stock *stock, const char *name, const char *id, struct err *err)
{
	return give_spare(stock, stock->mounted_fd, name, id, err);
}

void stock_unreserve(struct stock *stock, const char *name)
{
	struct err err;

	if (throw_away(stock, name, stock->storage->spares_fd, name, &err) < 0)
		log_warning("%s", err.message);
}

void stock_keep(struct stock *stock, const char *id)
{
	forget_parked(stock, id);
}

int stock_take(struct stock *stock, const char *id, struct err *err)
{
	char spare[NAME_MAX_LEN];

	return find_spare(stock, spare) ? give_spare(stock, stock->ready_fd, spare, id, err) : 0;
}

static int open_image(const struct stock *stock, const char *id, int *ret_mount_fd, struct err *err)
{
	char name[NAME_MAX_LEN];
	auto_fd int file = -1;

	image_name(id, name);
	file = openat(stock->storage->workspaces_fd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (file < 0)
		return err_sys(err, "open the disk of %s", id);
	return image_mount(file, ret_mount_fd, err);
}

static int make_for(const struct stock *stock, const char *id, int *ret_mount_fd, struct err *err)
{
	auto_fd int file = -1;
	char name[NAME_MAX_LEN];
	int r = make_image(stock, &file, ret_mount_fd, err);

	image_name(id, name);
	return r < 0 ? r : name_image(file, stock->storage->workspaces_fd, name, err);
}

/* Mounts the image of a sandbox in its place, and makes it if there is none. */
static int mount_root(const struct stock *stock, const char *id, int *ret_fd, struct err *err)
{
	auto_fd int mount = -1;
	int r = stock_has(stock, id) ? open_image(stock, id, &mount, err)
				     : make_for(stock, id, &mount, err);

	if (r == 0)
		r = put_mount(mount, stock->mounted_fd, id, err);
	if (r < 0)
		return r;
	/* By its place: before 6.15 only what is mounted somewhere can be cloned. */
	*ret_fd = stock_open_root(stock, id);
	return *ret_fd < 0 ? err_sys(err, "open the disk of %s", id) : 0;
}

int stock_open_root(const struct stock *stock, const char *id)
{
	return open_mount(stock->mounted_fd, id);
}

int stock_open_home(
	const struct stock *stock, const char *id, int root_fd, int *ret_home_fd, struct err *err)
{
	auto_fd int mounted = -1;
	int r;

	if (root_fd < 0) {
		r = mount_root(stock, id, &mounted, err);
		if (r < 0)
			return r;
		root_fd = mounted;
	}
	r = open_home(root_fd, err);
	if (r < 0)
		return r;
	*ret_home_fd = r;
	return 0;
}

int stock_open_mounted(const struct stock *stock, const char *id)
{
	auto_fd int root = open_mount(stock->mounted_fd, id);

	return root < 0 ? -1 : openat(root, HOME, DIR_FLAGS);
}

int stock_borrow(const struct stock *stock, const char *id, int *ret_home_fd, struct err *err)
{
	auto_fd int mount = -1;
	int r = open_image(stock, id, &mount, err);

	if (r < 0)
		return r;
	r = open_home(mount, err);
	if (r < 0)
		return r;
	*ret_home_fd = r;
	return 0;
}

/* --- ended sandboxes --- */

int stock_discard(struct stock *stock, const char *id, struct err *err)
{
	char name[NAME_MAX_LEN];

	image_name(id, name);
	return throw_away(stock, id, stock->storage->workspaces_fd, name, err);
}

void stock_park(struct stock *stock, const char *id)
{
	struct stock_parked *parked;

	forget_parked(stock, id);
	if (stock->parked_count == STOCK_PARKED_MAX) {
		if (!let_go(stock, stock->parked[0].id))
			log_error("the disk of %s stays mounted", stock->parked[0].id);
		unpark(stock, 0);
	}
	parked = &stock->parked[stock->parked_count++];
	snprintf(parked->id, sizeof(parked->id), "%s", id);
	parked->until_us = clock_steady_us() + PARKED_US;
}

int stock_retire(struct stock *stock)
{
	uint64_t now = clock_steady_us();

	while (stock->parked_count > 0 && stock->parked[0].until_us <= now) {
		struct stock_parked parked = stock->parked[0];

		unpark(stock, 0);
		if (!let_go(stock, parked.id))
			stock_park(stock, parked.id);
	}
	start_leaving(stock);
	if (stock->leaving_count > 0) /* there was no child for them */
		return PARKED_US / 1000;
	return stock->parked_count == 0 ? -1 : (int)((stock->parked[0].until_us - now) / 1000 + 1);
}

/* --- at the start of the keeper --- */

/* Those of a keeper before us, which nobody has mounted any more. */
static void remove_old_spares(const struct storage *storage)
{
	DIR *dir = open_listing(storage->spares_fd);
	const char *name;
	struct err err;

	while ((name = next_name(dir))) {
		if (storage_discard(storage, storage->spares_fd, name, &err) < 0)
			log_warning("an old spare disk stays: %s", err.message);
	}
	close_listing(dir);
}

int stock_try(struct stock *stock, struct err *err)
{
	auto_fd int file = -1, mount = -1, knob = -1;
	int r;

	if ((r = make_image(stock, &file, &mount, err)) < 0 ||
		(r = image_open_knob(mount, &knob, err)) < 0 ||
		(r = image_set_limit(mount, knob, 1 << 20, err)) < 0)
		return r;
	image_usage(mount, &stock->blank);
	return 0;
}

int stock_open(struct stock *stock, const struct storage *storage, int shelf_fd, struct crew *crew,
	struct err *err)
{
	int r;

	*stock = (struct stock){.storage = storage,
		.crew = crew,
		.stocker = {.name = "stocker", .work = run_stocker, .arg = stock},
		.trimmer = {.name = "trimmer", .work = run_trimmer, .arg = stock}};
	if ((r = make_place(shelf_fd, "disks", &stock->mounted_fd, err)) < 0 ||
		(r = make_place(shelf_fd, "spares", &stock->ready_fd, err)) < 0 ||
		(r = make_place(shelf_fd, "leaving", &stock->leaving_fd, err)) < 0)
		return r;
	crew_lend(crew, stock->mounted_fd);
	crew_lend(crew, stock->ready_fd);
	crew_lend(crew, stock->leaving_fd);
	remove_old_spares(storage);
	return 0;
}

void stock_start(struct stock *stock, bool makes_spares)
{
	if (makes_spares)
		crew_join(stock->crew, &stock->stocker);
	crew_join(stock->crew, &stock->trimmer);
}
