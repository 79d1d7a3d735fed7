/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the daemon is told of commands, but for their output: one frame each (wire/agent.h). Nothing is told
 * while no daemon is attached; where that matters, the answer says whether it was.
 */
#pragma once

#include "agent/denial.h"
#include "agent/scarcity.h"
#include "agent/uplink.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* How a command ended. */
struct report_end {
	uint32_t wait_status;
	uint64_t cpu_us;
	uint64_t peak_bytes;
	uint64_t duration_us;
	struct scarcity_counts during; /* of the sandbox, while it ran */
	uint32_t flags;		       /* AGENT_EXITED_* */
	struct denial_list denied;
};

void report_started(struct uplink *link, uint32_t id, pid_t pid);

/* It never ran; stage is an enum agent_stage. */
void report_failed(struct uplink *link, uint32_t id, int stage, int errnum);

/* How much of its input came, and how much of that it, or nobody, has taken. */
void report_input(struct uplink *link, uint32_t id, uint64_t taken, uint64_t received);

bool report_exited(
	struct uplink *link, uint32_t id, uint64_t output_bytes, const struct report_end *end);

/* How many processes are left of it. */
bool report_survivors(struct uplink *link, uint32_t id, uint32_t count);
