/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports commands to the daemon, but for their output: one frame each (wire/agent.h). A report is
 * dropped while no daemon is attached; where that matters, the function returns whether it was
 * sent.
 */
#pragma once

#include "agent/link/daemon_link.h"
#include "agent/process/denied_syscall.h"
#include "agent/process/limit_hits.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* How a command ended. */
struct report_end {
	uint32_t wait_status;
	uint64_t cpu_us;
	uint64_t peak_bytes;
	uint64_t duration_us;
	struct limit_hits_counts during; /* of the whole sandbox, while the command ran */
	uint32_t flags;			 /* AGENT_EXITED_* */
	struct denied_syscall_list denied;
};

/* Answers AGENT_USAGE. */
void report_used(struct daemon_link *link, uint32_t id, uint64_t cpu_us);

void report_started(struct daemon_link *link, uint32_t id, pid_t pid);

/* Reports that the command never ran; stage is an enum agent_stage. */
void report_failed(struct daemon_link *link, uint32_t id, int stage, int errnum);

/* Reports how much input came, and how much of that the command has taken or was dropped. */
void report_input(struct daemon_link *link, uint32_t id, uint64_t taken, uint64_t received);

bool report_exited(
	struct daemon_link *link, uint32_t id, uint64_t output_bytes, const struct report_end *end);

/* Reports how many processes are left of a command. */
bool report_survivors(struct daemon_link *link, uint32_t id, uint32_t count);
