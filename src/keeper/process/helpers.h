/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The children of the keeper that are not sandboxes. They do whatever may take long, so that the
 * loop never waits. They end with the keeper, and have none of its descriptors but those of the
 * data directory and of mounts.
 *
 * A struct helper is long-lived, and replaced when it ends. The other children do one job each and
 * end.
 */
#pragma once

#include "base/err.h"
#include "keeper/process/clone_child.h"

#include <stdint.h>
#include <sys/types.h>

#define HELPERS_SHARED_MAX 32
#define HELPERS_OWN_MAX	   3
#define HELPERS_ASKED_MAX  64 /* children at a time that answer a request each */

struct helper {
	const char *name;
	/* Runs in the child. It reads a byte from wake_fd when there is work, and end of file
	 * when there is no more. */
	void (*work)(const void *arg, int wake_fd);
	/* Runs in the keeper before each child is started; may be NULL. */
	void (*prepare)(const void *arg);
	const void *arg;
	int own_fds[HELPERS_OWN_MAX]; /* descriptors that only this helper has; 0: none */

	pid_t pid; /* 0: it does not run now */
	/* The two ends of the pipe; -1: not made yet. They stay open: the next child reads what
	 * was written while none ran, and their numbers are never used for temporary descriptors
	 * (clone_child.h). */
	int wake_fd, their_fd;
	uint64_t not_before_ms;
	struct helper *next;
};

struct helpers {
	const struct clone_child *child; /* clones them */
	struct helper *first;
	int shared[HELPERS_SHARED_MAX];
	size_t shared_count;
	pid_t asked[HELPERS_ASKED_MAX]; /* those of helpers_fork_asked() that run; 0: none */
};

/* Shares a descriptor with every child that is started from now on. */
void helpers_share_fd(struct helpers *helpers, int fd);

/*
 * As fork(). The child has the shared descriptors and the one that `also` points to (NULL: none),
 * whose number in the child is stored there; it must _exit(). More descriptors would harm: an
 * unmount or the removal of a large file cannot be interrupted, and while a child holds the
 * keeper's listener or lock, a dead keeper would seem to live.
 */
pid_t helpers_fork(const struct helpers *helpers, int *also);

/*
 * The same for a child that answers a request. A daemon that was taken over may ask as often as it likes, so there is a
 * bound; beyond it -EAGAIN, ERR_UNAVAILABLE. -errno if it cannot be started.
 */
pid_t helpers_fork_asked(struct helpers *helpers, int *also, struct err *err) must_check;

/* For children that work ahead or clean up: lets the builds of sandboxes run first. */
void helpers_lower_priority(void);

/*
 * Memory, all zeros, that the keeper and the children that it starts from now on see alike; it is
 * never freed.
 */
void *helpers_new_shared(size_t size);

/* Starts a helper, whose name, work and arg are set; it must outlive helpers. */
void helpers_add(struct helpers *helpers, struct helper *helper);

/* Tells a helper that there is work. */
void helpers_wake(const struct helper *helper);

/* Notes that a child was reaped, if it was a helper. */
void helpers_reaped(struct helpers *helpers, pid_t pid, int status);

/*
 * Starts helpers that do not run, unless that was tried just now; returns in how many ms to call
 * again, -1 for never.
 */
int helpers_tend(struct helpers *helpers);

/* Kills all helpers. */
void helpers_kill(struct helpers *helpers);
