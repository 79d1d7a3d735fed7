/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which processors a sandbox runs on.
 *
 * A program that wants to know how many processors it has asks for its affinity. So a sandbox whose
 * limit is less than the host is bound to as many processors as its limit needs: those to which the
 * fewest others are bound. The agent binds each command (agent/process/start/affinity.h). It is a hint to
 * programs, not a wall: they may choose others, and the cgroup still limits their share.
 */
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

struct cpus {
	cpu_set_t usable; /* those that the keeper itself may use */
	unsigned count;	  /* of usable */
	uint32_t bound[CPU_SETSIZE];
};

struct cpus_share {
	unsigned count; /* how many the sandbox is shown */
	bool is_bound;	/* else it has all, and the set is unused */
	cpu_set_t set;
};

void cpus_init(struct cpus *cpus, const cpu_set_t *usable);

/* Takes as many as a limit in thousandths of a processor needs, until they are given back. */
void cpus_take(struct cpus *cpus, uint64_t limit_millis, struct cpus_share *ret_share);

/* Whether a share is as large as one that is taken for this limit. */
bool cpus_suits(const struct cpus *cpus, const struct cpus_share *share, uint64_t limit_millis);

/* A share that was given back already, or is all zeros, is fine. */
void cpus_give_back(struct cpus *cpus, struct cpus_share *share);

/* The set as a list, "2,5"; "" if it is not bound. */
#define CPUS_LIST_MAX (CPU_SETSIZE * 5)
void cpus_list(const struct cpus_share *share, char list[CPUS_LIST_MAX]);
