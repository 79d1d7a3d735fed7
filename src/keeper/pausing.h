/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Freezing and thawing sandboxes. The kernel needs a moment for it, and for ever if a process does not
 * stop; the loop does not wait but looks again, soon at first and then ever later. A file of a cgroup
 * can be polled, but the kernel tells of its changes only every 10 ms.
 */
#pragma once

#include "keeper/office.h"

/* conn is answered when it has happened, or has not within two seconds; then a freeze is undone. */
void pausing_begin(struct keeper *keeper, struct held *held, bool freeze, int conn);

/* The sandbox has ended meanwhile. */
void pausing_abandon(struct keeper *keeper, struct held *held);

/* Looks at all that are on their way; in how many us to look again, -1 if there are none. */
int64_t pausing_tend(struct keeper *keeper);
