/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox uses now, and what it may. */
#pragma once

#include "core/engine/sandbox_handle.h"
#include "core/engine/stats_history.h"

struct sandbox_stats {
	struct resources limits;
	uint64_t
		cpu_us; /* since it was started; nothing of one that does not run, as the next three */
	uint64_t memory_bytes, memory_peak_bytes;
	uint64_t pids;
	uint64_t disk_bytes, disk_files; /* also of one that does not run */
	uint64_t disk_files_limit;	 /* 0: its disk has no limit that is enforced */
	uint64_t output_bytes;	     /* of the host's disk, for the kept output of its processes */
	uint64_t rx_bytes, tx_bytes; /* of its egress */
};

/* What it used lately (core/engine/stats_history.h). */
size_t sandbox_stats_history(struct sandbox *sandbox, bool is_coarse, uint32_t since_s,
	struct stats_point *points, size_t max);

int sandbox_stats_read(struct sandbox *sandbox, struct sandbox_stats *ret_stats, struct err *err)
	must_check;

/*
 * The same for the sampler, of one that runs, but what is on its disk is that of the sample before if nothing ran in it
 * since: to ask may cost the driver a process. Of one that has members, a sample of a member asks for it.
 */
int sandbox_stats_sample(struct sandbox *sandbox, struct sandbox_stats *ret_stats, struct err *err)
	must_check;
