/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The disks that are images: those of sandboxes, mounted where a build finds them.
 *
 *   workspaces/<id>.img          the image, as long as the workspace lives (disk_image.h)
 *   spares/<n>                   images that nobody has yet (spares.h)
 *   on the shelf (shelf.h):      disks/<id>, spares/<n>: where they are mounted; leaving/<n> (departure.h)
 *
 * A mount takes a millisecond and an unmount several, so neither is ever waited for where it shows: a build
 * takes a spare by a rename and a move of its mount, and disks leave when nobody needs them any more.
 *
 * All mounts are in the keeper's namespace and in those of sandboxes, so however the keeper ends they go
 * with it.
 */
#pragma once

#include "base/err.h"
#include "keeper/crew.h"
#include "keeper/departure.h"
#include "keeper/spares.h"
#include "keeper/storage.h"
#include "keeper/trimmer.h"

#include <stdbool.h>

struct stock {
	const struct storage *storage;
	int mounted_fd; /* on the shelf: disks */
	struct spares spares;
	struct departures departures;
	struct trimmer trimmer;
};

/* Also removes the spares of a keeper before us. */
int stock_open(struct stock *stock, const struct storage *storage, int shelf_fd, struct crew *crew,
	struct err *err) must_check;

/* Makes an image and sets its limit: whatever a disk needs is then known to work. */
int stock_try(struct stock *stock, struct err *err) must_check;

/* Starts the helpers. */
void stock_start(struct stock *stock, bool makes_spares);

/* Makes a spare the disk of a new one, if there is a spare. */
int stock_take(struct stock *stock, const char *id, struct err *err) must_check;

/* As those of disk.h. */
int stock_reserve(struct stock *stock, const char *name, struct err *err) must_check;
int stock_hand_over(struct stock *stock, const char *name, const char *id, struct err *err)
	must_check;
void stock_unreserve(struct stock *stock, const char *name);

/* The root of the disk of a sandbox, as shelf_open_mount. */
int stock_open_root(const struct stock *stock, const char *id);

/*
 * In a child: opens the home of a sandbox. Unless root_fd is its root, the image is mounted, and made if
 * there is none.
 */
int stock_open_home(const struct stock *stock, const char *id, int root_fd, int *ret_home_fd,
	struct err *err) must_check;

/* The home of one that is mounted; -1 if it is not. */
int stock_open_mounted(const struct stock *stock, const char *id);

/* The same of one that is not; mounted until the descriptor is closed. Slow: for children only. */
int stock_borrow(const struct stock *stock, const char *id, int *ret_home_fd, struct err *err)
	must_check;

/* Throws an image away, with all that is on it. */
int stock_discard(struct stock *stock, const char *id, struct err *err) must_check;
