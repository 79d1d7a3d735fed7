/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which processors a sandbox runs on.
 *
 * A program that wants to know how many it has asks for its affinity, so a sandbox whose limit is less
 * than the host is bound to as many processors as its limit needs: those to which the fewest others are
 * bound. The agent does that with each command (agent/affinity.h). It is a hint to programs, not a wall:
 * they may ask for others, and the cgroup still holds them to their share.
 */
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

struct cpus {
	cpu_set_t usable; /* by the keeper itself */
	unsigned count;	  /* of these */
	uint32_t bound[CPU_SETSIZE];
};

struct cpus_share {
	unsigned count; /* how many the sandbox is shown */
	bool is_bound;	/* else it has all, and the set says nothing */
	cpu_set_t set;
};

void cpus_init(struct cpus *cpus, const cpu_set_t *usable);

/* As many as a limit in thousandths of a processor needs. To be given back. */
void cpus_take(struct cpus *cpus, uint64_t limit_millis, struct cpus_share *ret_share);

/* A share that was given back already, or is all zeros, is fine. */
void cpus_give_back(struct cpus *cpus, struct cpus_share *share);

/* The set as a list, "2,5"; "" if it is not bound. */
#define CPUS_LIST_MAX (CPU_SETSIZE * 5)
void cpus_list(const struct cpus_share *share, char list[CPUS_LIST_MAX]);
