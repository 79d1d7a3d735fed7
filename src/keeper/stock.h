/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The disks that are images (image.h): those of sandboxes, mounted where a build finds them, and spares.
 *
 *   workspaces/<id>.img          the image, as long as the workspace lives
 *   spares/<n>                   images that nobody has yet
 *   on the shelf (rootfs.h):     disks/<id>, spares/<n>: where they are mounted; leaving/<n>
 *
 * A mount takes a millisecond and an unmount several, so neither is ever waited for where it shows. A
 * child, the stocker, keeps a few spares mounted; a build takes one by a rename and a move of its mount.
 * The disk of one that ended stays mounted for a moment, for a reset, delete or start that may follow;
 * then a child clears it up and unmounts it, or, if it was thrown away with little on it, makes it a spare.
 *
 * Images are sparse and larger than their limits, so a third child, the trimmer, sees to it that none
 * takes more of the host than it holds.
 *
 * All mounts are in the keeper's namespace and in those of sandboxes, so however the keeper ends they go
 * with it. The root of a disk is that of its image; its home, in there, holds all that a sandbox has.
 */
#pragma once

#include "base/err.h"
#include "keeper/crew.h"
#include "keeper/storage.h"

#include <stdbool.h>
#include <sys/types.h>

#define STOCK_PARKED_MAX 32

struct stock {
	const struct storage *storage;
	int mounted_fd, ready_fd, leaving_fd; /* on the shelf: disks, spares, leaving */
	struct keeper_stats blank;	      /* what is in use on a new one */
	struct crew *crew;
	struct crew_member stocker, trimmer;
	struct stock_leaving {
		char id[KEEPER_ID_LEN + 1];
		unsigned number;
		bool is_discarded;
	} leaving[STOCK_PARKED_MAX]; /* let go, but nobody unmounts them yet */
	size_t leaving_count;
	unsigned left; /* how many were let go, ever */
	struct stock_parked {
		char id[KEEPER_ID_LEN + 1];
		uint64_t until_us;
	} parked[STOCK_PARKED_MAX]; /* disks of ended sandboxes, the oldest first */
	size_t parked_count;
};

/* Also removes the spares of a keeper before us. */
int stock_open(struct stock *stock, const struct storage *storage, int shelf_fd, struct crew *crew,
	struct err *err) must_check;

/* Makes an image and sets its limit: whatever a disk needs is then known to work. */
int stock_try(struct stock *stock, struct err *err) must_check;

/* Starts the helpers. */
void stock_start(struct stock *stock, bool makes_spares);

/* Says that spares will be wanted. */
void stock_fill_up(const struct stock *stock);

/* Whether a sandbox has an image, mounted or not. */
bool stock_has(const struct stock *stock, const char *id);

/* Before a build: keeps the image of an old sandbox from leaving. */
void stock_keep(struct stock *stock, const char *id);

/* Makes a spare the disk of a new one, if there is a spare. */
int stock_take(struct stock *stock, const char *id, struct err *err) must_check;

/* As those of disk.h. */
int stock_reserve(struct stock *stock, const char *name, struct err *err) must_check;
int stock_hand_over(struct stock *stock, const char *name, const char *id, struct err *err)
	must_check;
void stock_unreserve(struct stock *stock, const char *name);

/* The root of the disk of a sandbox, if it is mounted; else -1. */
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

/* Gives the host back what is free in an image, of which fd is any directory. For children. */
void stock_give_back(const struct stock *stock, const char *id, int fd);

/* Throws an image away, with all that is on it. */
int stock_discard(struct stock *stock, const char *id, struct err *err) must_check;

/* The sandbox ended: its image may leave soon. */
void stock_park(struct stock *stock, const char *id);

/* Unmounts those whose time has come, in a child; in how many ms to call again, -1 for never. */
int stock_retire(struct stock *stock);
