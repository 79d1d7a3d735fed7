/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An isolated command runs in a running sandbox with a view of its own: a pid namespace below the
 * sandbox's, a copy of the sandbox's mount namespace with a read-only system and with its own /tmp,
 * /proc, /dev/shm and /dev/pts, and an ipc namespace. It shares everything else with the sandbox:
 * users, network, control groups, filter, workspace. So it ends and freezes with the sandbox and
 * counts against its limits, and the keeper need not remember it.
 *
 * Its PID 1 is the agent in another role, the isolated init (agent/process/start/isolated_init.h).
 */
#pragma once

#include "keeper/build/build.h"
#include "keeper/sandbox/sandbox_table.h"

/*
 * Starts one. The daemon passes *ret_sock on to the sandbox's agent. The first message there is a
 * struct err: of kind ERR_NONE once the isolated command is built, with the listener of its filter
 * beside it; else it says why the build failed.
 */
int isolated_exec_start(const struct build_context *context, const struct sandbox_entry *entry,
	int *ret_sock, struct err *err) must_check;
