/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/figures.h"

#include "keeper/headcount.h"
#include "keeper/kernel_log.h"
#include "keeper/userns.h"

#include <string.h>

static void note_victim(void *arg, uint32_t uid, const char victim[KERNEL_LOG_VICTIM_MAX])
{
	struct keeper *keeper = arg;

	for (size_t i = 0; i < keeper->roster.count; i++) {
		struct held *held = keeper->roster.sorted[i];
		const struct userns_ranges *ranges = &keeper->context.userns.ranges;
		uint32_t base = userns_base(ranges, held->slot);

		if (held->has_owner && uid >= base && uid - base < ranges->width)
			memcpy(held->oom_victim, victim, KERNEL_LOG_VICTIM_MAX);
	}
}

void figures_note_victims(struct keeper *keeper)
{
	kernel_log_read(keeper->kernel_log_fd, note_victim, keeper);
}

int figures_read(struct keeper *keeper, const struct held *held, struct keeper_stats *ret_stats,
	struct err *err)
{
	const struct cgroup_tree *cgroups = &keeper->context.cgroups;
	int r;

	if (cgroup_tree_is_real(cgroups))
		r = cgroup_stats(cgroups, held->group, ret_stats, err);
	else if (held->pid)
		r = headcount_take(held->pid, ret_stats, err);
	else
		r = err_set(err, ERR_NOT_FOUND, "sandbox %s has no processes to count", held->id);
	if (r < 0)
		return r;
	figures_note_victims(keeper);
	memcpy(ret_stats->oom_victim, held->oom_victim, sizeof(ret_stats->oom_victim));
	return 0;
}
