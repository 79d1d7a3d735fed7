/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/stock.h"

#include "base/fd.h"
#include "base/log.h"
#include "keeper/image.h"
#include "keeper/shelf.h"

#include <stdio.h>
#include <unistd.h>

/* --- taking --- */

/*
 * Moves the mount of a spare from a place on the shelf to that of `taker`, and its image to a new name.
 * By the keeper and not by its child, which may be killed between the two steps: then the image would be
 * mounted where nobody looks for it.
 */
static int move_spare(struct stock *stock, int from_fd, const char *spare, const char *taker,
	int dirfd, const char *image, struct err *err)
{
	auto_fd int mount = shelf_open_mount(from_fd, spare);
	int spares_fd = stock->storage->spares_fd, r;
	struct err ignored;

	if (mount < 0)
		return err_set(err, ERR_UNAVAILABLE, "spare disk %s is not mounted", spare);
	r = shelf_put_mount(stock->mounted_fd, taker, mount, err);
	if (r < 0)
		return r;
	shelf_drop_place(from_fd, spare);
	if (renameat(spares_fd, spare, dirfd, image) < 0) {
		r = err_sys(err, "give %s its disk", taker);
		(void)!departure_throw_away(&stock->departures, taker, spares_fd, spare, &ignored);
		return r;
	}
	return 0;
}

/* One that nobody has yet becomes the disk of id. */
static int give_spare(
	struct stock *stock, int from_fd, const char *spare, const char *id, struct err *err)
{
	char image[DISK_IMAGE_NAME_MAX];

	disk_image_name(id, image);
	return move_spare(stock, from_fd, spare, id, stock->storage->workspaces_fd, image, err);
}

int stock_take(struct stock *stock, const char *id, struct err *err)
{
	char spare[DISK_IMAGE_NAME_MAX];

	if (!spares_find(&stock->spares, spare))
		return 0;
	return give_spare(stock, stock->spares.ready_fd, spare, id, err);
}

int stock_reserve(struct stock *stock, const char *name, struct err *err)
{
	char spare[DISK_IMAGE_NAME_MAX];

	if (!spares_find(&stock->spares, spare))
		return err_set(err, ERR_UNAVAILABLE, "there is no spare disk");
	return move_spare(
		stock, stock->spares.ready_fd, spare, name, stock->storage->spares_fd, name, err);
}

int stock_hand_over(struct stock *stock, const char *name, const char *id, struct err *err)
{
	return give_spare(stock, stock->mounted_fd, name, id, err);
}

void stock_unreserve(struct stock *stock, const char *name)
{
	int spares_fd = stock->storage->spares_fd;
	struct err err;

	if (departure_throw_away(&stock->departures, name, spares_fd, name, &err) < 0) {
		log_warning("%s", err.message);
		departure_park(&stock->departures, name);
	}
}

int stock_discard(struct stock *stock, const char *id, struct err *err)
{
	int workspaces_fd = stock->storage->workspaces_fd;
	char name[DISK_IMAGE_NAME_MAX];

	disk_image_name(id, name);
	return departure_throw_away(&stock->departures, id, workspaces_fd, name, err);
}

/* --- opening --- */

static int make_for(const struct stock *stock, const char *id, int *ret_mount_fd, struct err *err)
{
	auto_fd int file = -1;
	char name[DISK_IMAGE_NAME_MAX];
	int r = disk_image_make(stock->storage, &file, ret_mount_fd, err);

	disk_image_name(id, name);
	return r < 0 ? r : disk_image_link(file, stock->storage->workspaces_fd, name, err);
}

/* Mounts the image of a sandbox in its place, and makes it if there is none. */
static int mount_root(const struct stock *stock, const char *id, int *ret_fd, struct err *err)
{
	auto_fd int mount = -1;
	int r = disk_image_exists(stock->storage, id)
			? disk_image_mount(stock->storage, id, &mount, err)
			: make_for(stock, id, &mount, err);

	if (r == 0)
		r = shelf_put_mount(stock->mounted_fd, id, mount, err);
	if (r < 0)
		return r;
	/* By its place: before 6.15 only what is mounted somewhere can be cloned. */
	*ret_fd = stock_open_root(stock, id);
	return *ret_fd < 0 ? err_sys(err, "open the disk of %s", id) : 0;
}

int stock_open_root(const struct stock *stock, const char *id)
{
	return shelf_open_mount(stock->mounted_fd, id);
}

int stock_open_home(
	const struct stock *stock, const char *id, int root_fd, int *ret_home_fd, struct err *err)
{
	auto_fd int mounted = -1;

	if (root_fd < 0) {
		int r = mount_root(stock, id, &mounted, err);

		if (r < 0)
			return r;
		root_fd = mounted;
	}
	return disk_image_open_home(root_fd, ret_home_fd, err);
}

int stock_open_mounted(const struct stock *stock, const char *id)
{
	auto_fd int root = stock_open_root(stock, id);
	struct err ignored;
	int home = -1;

	if (root >= 0)
		(void)!disk_image_open_home(root, &home, &ignored);
	return home;
}

int stock_borrow(const struct stock *stock, const char *id, int *ret_home_fd, struct err *err)
{
	auto_fd int mount = -1;
	int r = disk_image_mount(stock->storage, id, &mount, err);

	return r < 0 ? r : disk_image_open_home(mount, ret_home_fd, err);
}

/* --- at the start of the keeper --- */

int stock_try(struct stock *stock, struct err *err)
{
	auto_fd int file = -1, mount = -1, knob = -1;
	int r;

	if ((r = disk_image_make(stock->storage, &file, &mount, err)) < 0 ||
		(r = image_open_knob(mount, &knob, err)) < 0 ||
		(r = image_set_limit(mount, knob, 1 << 20, err)) < 0)
		return r;
	image_usage(mount, &stock->departures.blank);
	return 0;
}

int stock_open(struct stock *stock, const struct storage *storage, int shelf_fd, struct crew *crew,
	struct err *err)
{
	int r;

	*stock = (struct stock){.storage = storage};
	if ((r = shelf_open_section(shelf_fd, "disks", &stock->mounted_fd, err)) < 0 ||
		(r = spares_open(&stock->spares, storage, shelf_fd, crew, err)) < 0 ||
		(r = departure_open(
			 &stock->departures, &stock->spares, shelf_fd, stock->mounted_fd, err)) < 0)
		return r;
	crew_lend(crew, stock->mounted_fd);
	return 0;
}

void stock_start(struct stock *stock, bool makes_spares)
{
	struct crew *crew = stock->spares.crew;

	if (makes_spares)
		spares_start(&stock->spares);
	trimmer_start(&stock->trimmer, stock->storage, stock->mounted_fd, crew);
}
