/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/cgroup/cpus.h"

#include "base/format.h"

#include <stdio.h>

void cpus_init(struct cpus *cpus, const cpu_set_t *usable)
{
	*cpus = (struct cpus){.usable = *usable, .count = (unsigned)CPU_COUNT(usable)};
}

/* The usable one with the fewest sandboxes that is not in the set yet; -1 if all are. */
static int find_freest(const struct cpus *cpus, const cpu_set_t *set)
{
	int freest = -1;

	for (int i = 0; i < CPU_SETSIZE; i++) {
		if (CPU_ISSET(i, &cpus->usable) && !CPU_ISSET(i, set) &&
			(freest < 0 || cpus->bound[i] < cpus->bound[freest]))
			freest = i;
	}
	return freest;
}

static uint64_t wanted_for(uint64_t limit_millis)
{
	return (limit_millis + 999) / 1000;
}

bool cpus_suits(const struct cpus *cpus, const struct cpus_share *share, uint64_t limit_millis)
{
	uint64_t wanted = wanted_for(limit_millis);

	return share->is_bound ? share->count == wanted && wanted < cpus->count
			       : wanted >= cpus->count;
}

void cpus_take(struct cpus *cpus, uint64_t limit_millis, struct cpus_share *ret_share)
{
	uint64_t wanted = wanted_for(limit_millis);
	struct cpus_share share = {.count = cpus->count, .is_bound = wanted < cpus->count};

	if (share.is_bound) {
		share.count = (unsigned)wanted;
		for (unsigned i = 0; i < share.count; i++) {
			int cpu = find_freest(cpus, &share.set);

			CPU_SET(cpu, &share.set);
			cpus->bound[cpu]++;
		}
	}
	*ret_share = share;
}

void cpus_give_back(struct cpus *cpus, struct cpus_share *share)
{
	for (int i = 0; share->is_bound && i < CPU_SETSIZE; i++) {
		if (CPU_ISSET(i, &share->set))
			cpus->bound[i]--;
	}
	share->is_bound = false;
}

void cpus_list(const struct cpus_share *share, char list[CPUS_LIST_MAX])
{
	size_t len = 0;

	list[0] = '\0';
	for (int i = 0; share->is_bound && i < CPU_SETSIZE; i++) {
		if (CPU_ISSET(i, &share->set))
			len = format_append(list, CPUS_LIST_MAX, len, "%s%d", len ? "," : "", i);
	}
}
