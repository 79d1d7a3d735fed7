/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the keeper clones: its children get none of the descriptors that come and go.
 *
 * There are several for each sandbox. A child with a copy of them all would have to close them all; among a
 * thousand sandboxes that took half a millisecond of every child. So a child begins in the keeper's own table
 * of descriptors, and its first step is to leave that with a copy of the few that always stay open: those
 * with low numbers. What it needs beside them the keeper places among these; and it waits for that step, since
 * until then the table is not its alone.
 *
 * A child that lingered with them would do harm, too: with the keeper's end of somebody's lifeline it would
 * keep that agent alive when the keeper is gone.
 */
#pragma once

#include "base/err.h"

#include <linux/sched.h>
#include <stddef.h>
#include <sys/types.h>

#define OFFSPRING_KEPT_MAX 4

struct offspring {
	int first_fd; /* from here on they come and go; 0: that is not settled yet */
	int null_fd;  /* what is in the places of those that a child keeps, while there is none */
	int told_fd;  /* where a child says that it has left the table */
};

/* When all is open that stays open: descriptors that are opened from now on come and go. */
int offspring_open(struct offspring *offspring, struct err *err) must_check;

/*
 * As clone3(), with none of the flags that share memory. In the child the descriptors that kept points to (-1:
 * none) have other numbers, which it finds there; others from first_fd on it does not have. Before
 * offspring_open it has all, under their own numbers. -1 with errno.
 */
pid_t offspring_clone(
	const struct offspring *offspring, struct clone_args args, int *const kept[], size_t count);
