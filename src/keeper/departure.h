/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How disks leave that are images. An unmount takes several milliseconds, so nobody waits for one.
 *
 * The disk of a sandbox that ended stays mounted for a moment, for a reset, delete or start that may
 * follow, and for as long as nobody has time for it. Then it moves from disks/<id> of the shelf to leaving/<n>,
 * and a child of its own clears it up and unmounts it. One that was thrown away goes there at once; with little
 * on it, it becomes a spare again.
 *
 * Each has a child of its own, a few at a time, so that one that takes long holds up no other. A child may
 * be killed anywhere: then there is another for the same disk, which goes on where that one was.
 */
#pragma once

#include "base/err.h"
#include "keeper/spares.h"

#include <stdbool.h>
#include <sys/types.h>

/* A disk that is to leave. */
struct departure {
	char id[KEEPER_ID_LEN + 1];
	uint64_t due_us; /* nothing is done before */
	unsigned number; /* of its place, once it was let go; so are these: */
	bool is_discarded;
	unsigned failures; /* how many children did not come to an end with it */
	pid_t pid;	   /* who sees it off; 0: nobody yet */
	struct departure *next;
};

struct departures {
	const struct storage *storage;
	const struct spares *spares;
	struct crew *crew;
	int mounted_fd, leaving_fd; /* on the shelf */
	struct keeper_stats blank;  /* what is in use on a new one */
	struct departure *parked; /* disks of ended sandboxes; of both lists the oldest is first */
	struct departure *leaving;
	size_t child_count;
	unsigned let_go_count; /* ever */
};

/* mounted_fd is where the disks of sandboxes are mounted. */
int departure_open(struct departures *departures, const struct spares *spares, int shelf_fd,
	int mounted_fd, struct err *err) must_check;

/* The sandbox ended: its disk may leave soon. */
void departure_park(struct departures *departures, const char *id);

/* It is wanted again: it does not leave. */
void departure_cancel(struct departures *departures, const char *id);

/* Throws away the disk of id, whose image is dirfd/image, with all that is on it. If that fails the image stays. */
int departure_throw_away(struct departures *departures, const char *id, int dirfd,
	const char *image, struct err *err) must_check;

/* Sees those off whose time has come; in how many ms to call again, -1 for never. */
int departure_tend(struct departures *departures);

/* A child was reaped. If it was one of ours its disk is gone, or departure_tend has another see to it. */
bool departure_reaped(struct departures *departures, pid_t pid, int status);
