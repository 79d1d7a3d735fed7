/* SPDX-License-Identifier: Apache-2.0 */
/* The end of sandboxes: kills and reaps them and removes what they leave. */
#pragma once

#include "keeper/keeper.h"

/* Kills a sandbox, if it lives; its end arrives as SIGCHLD. */
void reap_kill(const struct sandbox_entry *entry);

/*
 * Answers the connection that waits for the end of a sandbox that was reaped, and has its cgroups
 * removed (cgroup_removals.h); the entry may be gone afterwards. While a process in them is still
 * dying it sets keeper->unclean, and reap_retry() is due.
 */
void reap_finish(struct keeper *keeper, struct sandbox_entry *entry);
void reap_retry(struct keeper *keeper);

/*
 * Reaps children that have ended: sandboxes or helpers. `first` is one of them, the others are
 * looked for.
 */
void reap_reap(struct keeper *keeper, pid_t first);
