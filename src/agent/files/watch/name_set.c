/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/files/watch/name_set.h"

#include <string.h>

static struct name_entry **find(struct name_set *set, int wd, const char *name)
{
	uint64_t hash = (unsigned)wd;
	struct name_entry **at;

	for (const char *c = name; *c; c++)
		hash = (hash ^ (uint8_t)*c) * 0x100000001b3;
	at = &set->buckets[(hash ^ hash >> 32) % NAME_SET_BUCKETS];
	while (*at && ((*at)->wd != wd || strcmp((*at)->name, name) != 0))
		at = &(*at)->next_in_bucket;
	return at;
}

bool name_set_put(struct name_set *set, int wd, const char *name, uint64_t due_ms)
{
	struct name_entry **at = find(set, wd, name);
	struct name_entry *entry;

	if (*at)
		return true;
	if (set->count == set->max)
		return false;
	entry = mem_new(sizeof(*entry) + strlen(name) + 1);
	entry->wd = wd;
	entry->due_ms = due_ms;
	strcpy(entry->name, name);
	entry->older = set->newest;
	if (set->newest)
		set->newest->newer = entry;
	else
		set->oldest = entry;
	set->newest = entry;
	*at = entry;
	set->count++;
	return true;
}

bool name_set_take(struct name_set *set, int wd, const char *name)
{
	struct name_entry **at = find(set, wd, name);
	struct name_entry *entry = *at;

	if (!entry)
		return false;
	*at = entry->next_in_bucket;
	if (entry->older)
		entry->older->newer = entry->newer;
	else
		set->oldest = entry->newer;
	if (entry->newer)
		entry->newer->older = entry->older;
	else
		set->newest = entry->older;
	set->count--;
	free(entry);
	return true;
}

const struct name_entry *name_set_oldest(const struct name_set *set)
{
	return set->oldest;
}

void name_set_fini(struct name_set *set)
{
	while (set->oldest)
		name_set_take(set, set->oldest->wd, set->oldest->name);
}
