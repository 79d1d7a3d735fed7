/* SPDX-License-Identifier: Apache-2.0 */
/* One command, for job.c and what it is made of. */
#pragma once

#include "agent/cell_link.h"
#include "agent/job.h"
#include "agent/job_streams.h"
#include "agent/report.h"

struct job {
	struct job *next;
	uint32_t id;
	pid_t pid;
	uint64_t started_us;
	struct job_streams streams;
	struct group group; /* closed when its last process and the main one are gone */
	struct scarcity_counts before;
	bool is_killing;
	bool is_forgotten;
	bool ended;
	bool end_sent;
	bool had_survivors;
	bool none_sent;	       /* that there are no survivors any more */
	struct report_end end; /* as far as it is known */
	struct cell_link cell;
};

/* Has job_tick() called soon. */
void job_try_again_later(struct job_table *table);
