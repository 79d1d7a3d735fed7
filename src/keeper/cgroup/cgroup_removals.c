/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/cgroup/cgroup_removals.h"

#include "base/clock.h"
#include "base/fail_point.h"
#include "base/log.h"

#include <stdio.h>
#include <string.h>

/* By then whoever ended the sandbox has his answer, as a rule, and asks for nothing else yet. */
#define DELAY_US 1000
#define RETRY_US 5000
/* More than these do not wait for another turn: a turn may end many sandboxes, and groups cost the kernel memory. */
#define WAITING_MAX 16

struct cgroup_removal {
	struct cgroup_removal *next;
	char id[KEEPER_ID_LEN + 1];
	uint64_t due_us;
};

static int remove_groups(const struct cgroup_tree *tree, const char *id)
{
	int r = cgroup_remove(tree, id);

	fail_point("kill.groups_removed");
	if (r < 0)
		log_debug("the cgroups of %s stay for now: %s", id, strerror(-r));
	return r;
}

static void drop(struct cgroup_removal **link)
{
	struct cgroup_removal *removal = *link;

	*link = removal->next;
	free(removal);
}

/* Tries it once; what cannot be removed is due again later. */
static void try_remove(struct cgroup_removal **link, const struct cgroup_tree *tree)
{
	struct cgroup_removal *removal = *link;

	if (remove_groups(tree, removal->id) < 0)
		removal->due_us = clock_steady_us() + RETRY_US;
	else
		drop(link);
}

void cgroup_removals_add(struct cgroup_removals *removals, const char *id)
{
	struct cgroup_removal **link = &removals->first, *removal;

	while (*link && strcmp((*link)->id, id) != 0)
		link = &(*link)->next;
	if (*link)
		return;
	removal = *link = mem_new(sizeof(*removal));
	snprintf(removal->id, sizeof(removal->id), "%s", id);
	removal->due_us = clock_steady_us() + DELAY_US;
}

void cgroup_removals_hurry(struct cgroup_removals *removals, const char *id)
{
	for (struct cgroup_removal **link = &removals->first; *link; link = &(*link)->next) {
		if (strcmp((*link)->id, id) == 0) {
			(void)!remove_groups(removals->tree, id);
			drop(link);
			return;
		}
	}
}

/* The first that is due; *link is NULL if none is. */
static struct cgroup_removal **find_due(struct cgroup_removals *removals, uint64_t now_us)
{
	struct cgroup_removal **link = &removals->first;

	while (*link && (*link)->due_us > now_us)
		link = &(*link)->next;
	return link;
}

static bool are_many(const struct cgroup_removals *removals)
{
	size_t count = 0;

	for (const struct cgroup_removal *at = removals->first; at && count <= WAITING_MAX;
		at = at->next)
		count++;
	return count > WAITING_MAX;
}

int cgroup_removals_tend(struct cgroup_removals *removals)
{
	uint64_t now_us = clock_steady_us(), soonest_us = UINT64_MAX;
	struct cgroup_removal **link;

	do {
		link = find_due(removals, now_us);
		if (*link)
			try_remove(link, removals->tree);
	} while (are_many(removals) && *find_due(removals, now_us));
	for (const struct cgroup_removal *at = removals->first; at; at = at->next)
		soonest_us = at->due_us < soonest_us ? at->due_us : soonest_us;
	if (soonest_us == UINT64_MAX)
		return -1;
	return soonest_us <= now_us ? 0 : (int)((soonest_us - now_us) / 1000 + 1);
}

void cgroup_removals_finish(struct cgroup_removals *removals)
{
	while (removals->first) {
		struct cgroup_removal *removal = removals->first;
		int r = cgroup_remove(removals->tree, removal->id);

		if (r < 0)
			log_warning("the cgroups of %s stay: %s", removal->id, strerror(-r));
		drop(&removals->first);
	}
}
