/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How disks leave that are images. An unmount takes several milliseconds, so nobody waits for one.
 *
 * The disk of a sandbox that ended stays mounted for a moment, for a reset, delete or start that may
 * follow. Then it moves from disks/<id> of the shelf to leaving/<n>, and a child clears it up and unmounts
 * it. One that was thrown away goes there at once; with little on it, it becomes a spare again.
 */
#pragma once

#include "base/err.h"
#include "keeper/spares.h"

#include <stdbool.h>

#define DEPARTURE_PARKED_MAX 32

struct departures {
	const struct storage *storage;
	const struct spares *spares;
	struct crew *crew;
	int mounted_fd, leaving_fd; /* on the shelf */
	struct keeper_stats blank;  /* what is in use on a new one */
	struct departure_leaving {
		char id[KEEPER_ID_LEN + 1];
		unsigned number;
		bool is_discarded;
	} leaving[DEPARTURE_PARKED_MAX]; /* let go, but nobody unmounts them yet */
	size_t leaving_count;
	unsigned left; /* how many were let go, ever */
	struct departure_parked {
		char id[KEEPER_ID_LEN + 1];
		uint64_t until_us;
	} parked[DEPARTURE_PARKED_MAX]; /* disks of ended sandboxes, the oldest first */
	size_t parked_count;
};

/* mounted_fd is where the disks of sandboxes are mounted. */
int departure_open(struct departures *departures, const struct spares *spares, int shelf_fd,
	int mounted_fd, struct err *err) must_check;

/* The sandbox ended: its disk may leave soon. */
void departure_park(struct departures *departures, const char *id);

/* It is wanted again: it does not leave. */
void departure_cancel(struct departures *departures, const char *id);

/* Throws away the disk of id, whose image is dirfd/image, with all that is on it. */
int departure_throw_away(struct departures *departures, const char *id, int dirfd,
	const char *image, struct err *err) must_check;

/* Sees those off whose time has come; in how many ms to call again, -1 for never. */
int departure_tend(struct departures *departures);
