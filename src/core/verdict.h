/* SPDX-License-Identifier: Apache-2.0 */
/* Why a process ended: from what the kernel reported, what was asked for, and what its sandbox does. */
#pragma once

#include "core/process.h"

#define VERDICT_SIGNAL_BASE 128 /* exit codes as a shell has them: this and the signal, */
#define VERDICT_TIMEOUT	    124 /* and of a timeout */

/* What the agent reports beside the wait status. */
struct verdict_facts {
	uint32_t oom_kills;
	uint32_t refused_forks;
	uint32_t flags; /* AGENT_EXITED_* */
};

/* Fills in exit code and termination, in which what was denied is known. On the reactor's thread. */
void verdict_reach(struct process *process, int status, const struct verdict_facts *facts,
	struct process_end *how);
