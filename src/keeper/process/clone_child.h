/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clones the keeper's children without its temporary descriptors.
 *
 * The keeper has several of these for each sandbox. A child with a copy of all would have to close
 * all; with a thousand sandboxes that took each child half a millisecond. So a child starts in the
 * keeper's own table of descriptors, and its first step is to leave that with a copy of the few
 * that always stay open: those with low numbers. The keeper places what the child needs besides
 * among these; and it waits for that step, since until then both share the table.
 *
 * A child that kept them would also do harm: with the keeper's end of a sandbox's lifeline it would
 * keep that agent alive after the keeper is gone.
 */
#pragma once

#include "base/err.h"

#include <linux/sched.h>
#include <stddef.h>
#include <sys/types.h>

#define CLONE_CHILD_KEPT_MAX 4

struct clone_child {
	int first_fd; /* descriptors from here on are temporary; 0: not known yet */
	/* open at the numbers that a child's own descriptors get, while there is no child */
	int null_fd;
	int told_fd; /* a child writes here once it has a table of its own */
};

/*
 * Call it when all permanent descriptors are open: those that are opened from now on are temporary.
 */
int clone_child_open(struct clone_child *child, struct err *err) must_check;

/*
 * As clone3(), with none of the flags that share memory. In the child the descriptors that kept
 * points to (-1: none) have other numbers, which are stored there; it has no others from first_fd
 * on. Before clone_child_open it has all, under their own numbers. -1 with errno.
 */
pid_t clone_child_clone(
	const struct clone_child *child, struct clone_args args, int *const kept[], size_t count);
