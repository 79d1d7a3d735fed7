/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Disks that nobody has yet: a mount takes a millisecond, so a few are mounted ahead.
 *
 * A spare is an image of the same name in spares/ of the data directory and mounted in spares/ of the shelf.
 * A member of the crew, the stocker, makes them; so do, of what was thrown away, the children that see disks
 * off (departure.h). Whoever takes one moves both.
 */
#pragma once

#include "base/err.h"
#include "keeper/crew.h"
#include "keeper/disk_image.h"

#include <stdbool.h>

struct spares {
	const struct storage *storage;
	int ready_fd; /* where they are mounted */
	struct crew *crew;
	struct crew_member stocker;
};

/* Also removes those of a keeper before us. */
int spares_open(struct spares *spares, const struct storage *storage, int shelf_fd,
	struct crew *crew, struct err *err) must_check;

/* Starts the stocker. */
void spares_start(struct spares *spares);

/* Says that they will be wanted. */
void spares_fill_up(const struct spares *spares);

/* The name of one that is mounted; false if there is none. */
bool spares_find(const struct spares *spares, char name[static DISK_IMAGE_NAME_MAX]);

/* Whether no more are wanted. */
bool spares_are_enough(const struct spares *spares);

/* Mounts one for whoever comes, under the name that its image has; ERR_CONFLICT if there are enough. */
int spares_put(const struct spares *spares, int mount_fd, const char *name, struct err *err)
	must_check;
