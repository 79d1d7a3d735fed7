/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Freezes and thaws sandboxes. The kernel needs a moment for it, and never finishes if a process
 * does not stop; the loop does not wait but looks again, soon at first and then ever later. A file
 * of a cgroup can be polled, but the kernel reports its changes only every 10 ms.
 */
#pragma once

#include "keeper/keeper.h"

/* Answers conn when it has happened, or has not within two seconds; then a freeze is undone. */
void freeze_begin(struct keeper *keeper, struct sandbox_entry *entry, bool freeze, int conn);

/* Answers the waiting connection that the sandbox has ended. */
void freeze_abandon(struct keeper *keeper, struct sandbox_entry *entry);

/*
 * Looks at all sandboxes that freeze or thaw; returns in how many us to look again, -1 if there are
 * none.
 */
int64_t freeze_tend(struct keeper *keeper);
