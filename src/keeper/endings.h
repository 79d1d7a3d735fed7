/* SPDX-License-Identifier: Apache-2.0 */
/* The end of sandboxes: killed or by themselves, reaped, and what is left of them removed. */
#pragma once

#include "keeper/office.h"

/* Kills it, if it lives; its end arrives as SIGCHLD. */
void endings_kill(const struct held *held);

/*
 * Removes the groups of one that was reaped, and then tells whoever waits for its end; held may be gone
 * afterwards. If they cannot be removed yet it sets keeper->unclean, and endings_retry() is due.
 */
void endings_finish(struct keeper *keeper, struct held *held);
void endings_retry(struct keeper *keeper);

/* Some children have ended: sandboxes, or helpers of ours. One of them is `first`, the others are looked for. */
void endings_reap(struct keeper *keeper, pid_t first);
