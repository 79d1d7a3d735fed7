/* SPDX-License-Identifier: Apache-2.0 */
#include "model/sandbox/memory_pressure.h"

#include <string.h>

static int compare_owners(const void *a, const void *b)
{
	const struct owner *one = &((const struct memory_user *)a)->owner;
	const struct owner *other = &((const struct memory_user *)b)->owner;
	int difference = strcmp(one->organization, other->organization);

	return difference ? difference : strcmp(one->user, other->user);
}

void memory_pressure_sort(struct memory_user *users, size_t count)
{
	qsort(users, count, sizeof(*users), compare_owners);
}

/* The sandboxes of one owner, who stand together. */
struct owner_group {
	size_t first, end;
	uint64_t bytes;
};

static struct owner_group group_at(const struct memory_user *users, size_t count, size_t first)
{
	struct owner_group group = {.first = first, .end = first};

	while (group.end < count && compare_owners(&users[first], &users[group.end]) == 0)
		group.bytes += users[group.end++].bytes;
	return group;
}

static bool goes_before(const struct memory_user *one, const struct memory_user *other)
{
	if (one->is_idle != other->is_idle)
		return one->is_idle;
	return one->is_idle ? one->idle_ms > other->idle_ms : one->bytes > other->bytes;
}

/* The one of a group that goes first; the group's end if none may. */
static size_t first_of(
	const struct memory_user *users, struct owner_group group, bool may_stop_busy)
{
	size_t chosen = group.end;

	for (size_t i = group.first; i < group.end; i++) {
		if (!users[i].is_idle && !may_stop_busy)
			continue;
		if (chosen == group.end || goes_before(&users[i], &users[chosen]))
			chosen = i;
	}
	return chosen;
}

bool memory_pressure_choose(const struct memory_user *users, size_t count, uint64_t available_bytes,
	uint64_t reserve_bytes, struct memory_choice *ret_choice)
{
	uint64_t missing = reserve_bytes - available_bytes, total = 0, share, most = 0;
	bool is_found = false;
	size_t owners = 0;
	struct owner_group group;

	if (available_bytes >= reserve_bytes || count == 0)
		return false;
	for (size_t i = 0; i < count; i = group.end) {
		group = group_at(users, count, i);
		total += group.bytes;
		owners++;
	}
	share = total > missing ? (total - missing) / owners : 0;
	for (size_t i = 0; i < count; i = group.end) {
		size_t chosen;

		group = group_at(users, count, i);
		chosen = first_of(users, group, total >= missing && group.bytes > share);
		if (chosen == group.end || (is_found && group.bytes <= most))
			continue;
		is_found = true;
		most = group.bytes;
		*ret_choice = (struct memory_choice){
			.index = chosen, .owner_bytes = group.bytes, .share_bytes = share};
	}
	return is_found;
}
