/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cell: the view that one isolated command has of a sandbox that runs. It has a pid namespace below the
 * sandbox's, a mount namespace that is a copy of the sandbox's with a read-only system and a /tmp, /proc,
 * /dev/shm and /dev/pts of its own, and an ipc namespace. Everything else is the sandbox's: users, network,
 * control groups, filter, workspace. So it ends with the sandbox, freezes with it and counts against its
 * limits, and the keeper need not remember it.
 *
 * Its PID 1 is the agent in another role, the warden (agent/warden.h).
 */
#pragma once

#include "keeper/build.h"
#include "keeper/roster.h"

/*
 * Starts one. *ret_sock is for the sandbox's agent. First of all a struct err comes there: of kind ERR_NONE
 * once the cell is built, with the listener of its filter beside it; else why it could not be.
 */
int cell_start(const struct build_context *context, const struct held *held, int *ret_sock,
	struct err *err) must_check;
