/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs each request that takes a while in a child process of its own: a slow disk, a hostile tree
 * or a thousand processes hold up that child, never PID 1. The child has a copy of the agent's
 * memory, and no descriptor but its channel.
 */
#pragma once

#include "agent/files/helper_io.h"
#include "agent/machine/oom_score.h"

#include <stdbool.h>
#include <sys/types.h>

#define HELPER_MAX	 64
#define HELPER_WATCH_MAX 32 /* of them may be watches, which last: the rest is for other requests */

struct helper {
	pid_t pid;
	bool is_watch;
};

struct helper_table {
	struct helper helpers[HELPER_MAX];
	size_t count;
	size_t watches; /* of those */
};

/* What a helper does, as root of the sandbox with umask 0; what it put is sent when it is done. */
struct helper_task {
	void (*serve)(struct helper_io *helper_io, const void *arg);
	const void *arg;
	bool is_watch;
};

/* Starts a helper, which gets a copy of the channel. -errno if none can be started. */
int helper_start(struct helper_table *table, const struct oom_score *oom,
	const struct helper_task *task, int channel) must_check;

/*
 * Called when a child was stopped. Kills it if it is a helper: root of the sandbox may stop one,
 * and the daemon would wait for it.
 */
void helper_stopped(const struct helper_table *table, pid_t pid);

/* Notes that a child ended; false if it was no helper. */
bool helper_end(struct helper_table *table, pid_t pid);
