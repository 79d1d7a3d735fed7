/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that take a while, each in a child process of its own: a slow disk, a hostile tree or a
 * thousand processes hold up that child, never PID 1. The child has the agent's memory as it was at
 * that moment, and no descriptor but its channel.
 */
#pragma once

#include "agent/dialog.h"
#include "agent/oom.h"

#include <stdbool.h>
#include <sys/types.h>

#define HELPER_MAX	 64
#define HELPER_WATCH_MAX 32 /* of them may be watches, which last: other requests find room */

struct helper {
	pid_t pid;
	bool is_watch;
};

struct helper_table {
	struct helper helpers[HELPER_MAX];
	size_t count;
	size_t watches; /* of those */
};

/* What it does, as root of the sandbox with umask 0; what was put is sent when it is done. */
struct helper_task {
	void (*serve)(struct dialog *dialog, const void *arg);
	const void *arg;
	bool is_watch;
};

/* Starts a helper, which has the channel from then on as well. -errno if none can be started. */
int helper_start(struct helper_table *table, const struct oom *oom, const struct helper_task *task,
	int channel) must_check;

/*
 * A child was stopped. If it is a helper it is killed: root of the sandbox may stop one, and the daemon
 * would wait for it.
 */
void helper_stopped(const struct helper_table *table, pid_t pid);

/* A child ended; false if it was no helper. */
bool helper_end(struct helper_table *table, pid_t pid);
