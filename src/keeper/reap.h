/* SPDX-License-Identifier: Apache-2.0 */
/* The end of sandboxes: kills and reaps them and removes what they leave. */
#pragma once

#include "keeper/keeper.h"

/* Kills a sandbox, if it lives; its end arrives as SIGCHLD. */
void reap_kill(const struct sandbox_entry *entry);

/*
 * Removes the cgroups of a sandbox that was reaped, and then answers the connection that waits for
 * its end; the entry may be gone afterwards. If the cgroups cannot be removed yet it sets
 * keeper->unclean, and reap_retry() is due.
 */
void reap_finish(struct keeper *keeper, struct sandbox_entry *entry);
void reap_retry(struct keeper *keeper);

/*
 * Reaps children that have ended: sandboxes or helpers. `first` is one of them, the others are
 * looked for.
 */
void reap_reap(struct keeper *keeper, pid_t first);
