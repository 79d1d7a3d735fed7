/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks over every process that /proc shows, by pid. Those that start or end meanwhile may be met
 * or not; reading a file of one below proc_fd fails once it is gone.
 */
#pragma once

#include "agent/machine/dirents.h"

#include <stdbool.h>
#include <sys/types.h>

struct pid_walk {
	int proc_fd;	  /* /proc, or -1 */
	const char *name; /* of the directory of the present one there */
	pid_t pid;	  /* of the present one */
	char *entries;
	struct dirents dirents;
};

/* Without /proc it finds no process. */
void pid_walk_open(struct pid_walk *walk);

/* Goes to the next one; false if there is none. */
bool pid_walk_next(struct pid_walk *walk);

void pid_walk_close(struct pid_walk *walk);
