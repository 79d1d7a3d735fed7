/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox uses, and whom the kernel killed in it for want of memory. */
#pragma once

#include "keeper/office.h"

int figures_read(struct keeper *keeper, const struct held *held, struct keeper_stats *ret_stats,
	struct err *err) must_check;

/*
 * Sees whom the kernel has killed by now. Before a uid range may get another sandbox: the kernel's log
 * names only uids, and what it says of the last one must not be told to the next.
 */
void figures_note_victims(struct keeper *keeper);
