/* SPDX-License-Identifier: Apache-2.0 */
/* Why a process ended: from what the kernel reported, what was asked for, and what its sandbox does. */
#pragma once

#include "core/process/process_events.h"

struct process;

#define EXIT_REASON_SIGNAL_BASE 128 /* exit codes as a shell has them: this and the signal, */
#define EXIT_REASON_TIMEOUT	124 /* and of a timeout */

/* What the agent reports beside the wait status. */
struct exit_reason_facts {
	uint32_t oom_kills;
	uint32_t refused_forks;
	uint32_t flags; /* AGENT_EXITED_* */
};

/* Fills in exit code and termination, in which what was denied is known. On the event loop's thread. */
void exit_reason_reach(struct process *process, int status, const struct exit_reason_facts *facts,
	struct process_end *how);

/* The detail of one that took too long. */
void exit_reason_describe_timeout(const struct process *process, struct process_end *how);
