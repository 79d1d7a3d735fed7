/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File requests, each in a child process of its own: a slow disk or a hostile tree holds up that
 * child, never PID 1. The child keeps nothing of the agent but the request and its channel.
 */
#pragma once

#include "agent/oom.h"
#include "agent/payload.h"

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

/*
 * Starts a helper for request, which answers on channel; where none can be started, the reason is
 * the answer. Channel is closed in any case.
 */
void helper_start(struct helper_table *table, const struct oom *oom,
	const struct payload_file *request, int channel);

/*
 * A child was stopped. If it is a helper it is killed: root of the sandbox may stop one, and the daemon
 * would wait for it.
 */
void helper_stopped(const struct helper_table *table, pid_t pid);

/* A child ended; false if it was no helper. */
bool helper_end(struct helper_table *table, pid_t pid);
