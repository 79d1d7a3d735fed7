/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/sandbox_stats.h"

#include "keeper/namespace/userns.h"
#include "keeper/stats/kernel_log.h"
#include "keeper/stats/process_count.h"

#include <string.h>

static void note_victim(void *arg, uint32_t uid, const char victim[KERNEL_LOG_VICTIM_MAX])
{
	struct keeper *keeper = arg;

	for (size_t i = 0; i < keeper->table.count; i++) {
		struct sandbox_entry *entry = keeper->table.sorted[i];
		const struct userns_ranges *ranges = &keeper->context.userns.ranges;
		uint32_t base = userns_base(ranges, entry->slot);

		if (entry->has_owner && uid >= base && uid - base < ranges->width)
			memcpy(entry->oom_victim, victim, KERNEL_LOG_VICTIM_MAX);
	}
}

void sandbox_stats_note_victims(struct keeper *keeper)
{
	kernel_log_read(keeper->kernel_log_fd, note_victim, keeper);
}

int sandbox_stats_read(struct keeper *keeper, const struct sandbox_entry *entry,
	struct keeper_stats *ret_stats, struct err *err)
{
	const struct cgroup_tree *cgroups = &keeper->context.cgroups;
	int r;

	if (cgroup_tree_is_real(cgroups))
		r = cgroup_stats(cgroups, entry->group, ret_stats, err);
	else if (entry->pid)
		r = process_count_take(entry->pid, ret_stats, err);
	else
		r = err_set(err, ERR_NOT_FOUND, "sandbox %s has no processes to count", entry->id);
	if (r < 0)
		return r;
	sandbox_stats_note_victims(keeper);
	memcpy(ret_stats->oom_victim, entry->oom_victim, sizeof(ret_stats->oom_victim));
	return 0;
}
