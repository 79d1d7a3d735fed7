/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The children of the keeper that are no sandboxes: whatever may take long is theirs, so that the loop
 * never waits. All are started in one way: they end with the keeper, and have none of its descriptors but
 * those that files are reached by.
 *
 * A member of the crew stays, and is replaced when it ends. The others, one for each job, just end.
 */
#pragma once

#include "base/err.h"
#include "keeper/offspring.h"

#include <stdint.h>
#include <sys/types.h>

#define CREW_LENT_MAX  16
#define CREW_TOOLS_MAX 3

struct crew_member {
	const char *name;
	/* In the child. A byte can be read from `pokes` when there is work, and its end when there is no
	 * more. */
	void (*work)(const void *arg, int pokes);
	const void *arg;
	int tools[CREW_TOOLS_MAX]; /* descriptors that only it has, and no other child; 0: none */

	pid_t pid; /* 0: there is none now */
	/* The two ends of the pipe; -1: not made yet. They stay: what it is told while there is none the next
	 * one hears, and their numbers never become those of descriptors that come and go (offspring.h). */
	int pokes_fd, their_fd;
	uint64_t not_before_ms;
	struct crew_member *next;
};

struct crew {
	const struct offspring *offspring; /* how they are cloned */
	struct crew_member *first;
	int lent[CREW_LENT_MAX];
	size_t lent_count;
};

/* Every child that is started from now on has this descriptor. */
void crew_lend(struct crew *crew, int fd);

/*
 * As fork(). The child has, beside what is lent, the descriptor that also points to (NULL: none), where it
 * finds the number that it has there; and is to _exit(). To hold more would harm: an unmount or the removal of
 * a large file cannot be interrupted, and a child that holds the keeper's listener or lock meanwhile would be
 * taken for a keeper that is dead already.
 */
pid_t crew_fork(const struct crew *crew, int *also);

/* Whoever waits for a sandbox comes first: for children that work ahead or clear up. */
void crew_give_way(void);

/* Starts a member, of which name, work and arg are set; it must outlive the crew. */
void crew_join(struct crew *crew, struct crew_member *member);

/* Tells a member that there is work. */
void crew_poke(const struct crew_member *member);

/* A child was reaped; if it was a member it is missing from now on. */
void crew_reaped(struct crew *crew, pid_t pid, int status);

/* Starts those that are missing, if it was not tried just now; in how many ms to call again, -1 for never. */
int crew_tend(struct crew *crew);

/* Ends all members. */
void crew_dismiss(struct crew *crew);
