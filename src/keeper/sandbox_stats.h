/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox uses, and which process the kernel killed in it because memory ran out. */
#pragma once

#include "keeper/keeper.h"

int sandbox_stats_read(struct keeper *keeper, const struct sandbox_entry *entry,
	struct keeper_stats *ret_stats, struct err *err) must_check;

/*
 * Reads which processes the kernel has killed by now. Call it before a uid range may get another
 * sandbox: the kernel's log names only uids, and the victim of the last sandbox must not be told to
 * the next.
 */
void sandbox_stats_note_victims(struct keeper *keeper);
