/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/sandbox/sandbox_table.h"

#include "base/fd.h"

#include <string.h>

/* The index of the first entry whose id is not less than id. */
static size_t lower_bound(const struct sandbox_table *table, const char *id)
{
	size_t low = 0, high = table->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(table->sorted[middle]->id, id) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct sandbox_entry *sandbox_table_find(const struct sandbox_table *table, const char *id)
{
	size_t at = lower_bound(table, id);

	if (at == table->count || strcmp(table->sorted[at]->id, id) != 0)
		return NULL;
	return table->sorted[at];
}

struct sandbox_entry *sandbox_table_find_pid(const struct sandbox_table *table, pid_t pid)
{
	for (size_t i = 0; i < table->count; i++) {
		if (table->sorted[i]->pid == pid)
			return table->sorted[i];
	}
	return NULL;
}

struct sandbox_entry *sandbox_table_find_slot(const struct sandbox_table *table, uint32_t slot)
{
	for (size_t i = 0; i < table->count; i++) {
		struct sandbox_entry *entry = table->sorted[i];

		if (entry->slot == slot && entry->pid && entry->has_owner && !entry->primary[0])
			return entry;
	}
	return NULL;
}

struct sandbox_entry *sandbox_table_find_ahead(const struct sandbox_table *table, uint32_t slot)
{
	for (size_t i = 0; i < table->count; i++) {
		struct sandbox_entry *entry = table->sorted[i];

		if (!entry->has_owner && !entry->is_dropped && entry->pid &&
			(entry->slot == slot || slot == KEEPER_SLOT_COUNT))
			return entry;
	}
	return NULL;
}

bool sandbox_table_runs_in(const struct sandbox_table *table, uint32_t slot)
{
	for (size_t i = 0; i < table->count; i++) {
		if (table->sorted[i]->slot == slot && table->sorted[i]->pid)
			return true;
	}
	return false;
}

size_t sandbox_table_visit_members(const struct sandbox_table *table, const char *primary,
	void (*visit)(const struct sandbox_entry *entry))
{
	size_t count = 0;

	for (size_t i = 0; i < table->count; i++) {
		const struct sandbox_entry *entry = table->sorted[i];

		if (!entry->pid || strcmp(entry->primary, primary) != 0)
			continue;
		count++;
		if (visit)
			visit(entry);
	}
	return count;
}

static void insert(struct sandbox_table *table, struct sandbox_entry *entry)
{
	size_t at = lower_bound(table, entry->id);

	memmove(&table->sorted[at + 1], &table->sorted[at],
		(table->count - at) * sizeof(struct sandbox_entry *));
	table->sorted[at] = entry;
	table->count++;
}

static void take_out(struct sandbox_table *table, const struct sandbox_entry *entry)
{
	size_t at = lower_bound(table, entry->id);

	table->count--;
	memmove(&table->sorted[at], &table->sorted[at + 1],
		(table->count - at) * sizeof(struct sandbox_entry *));
}

struct sandbox_entry *sandbox_table_add(struct sandbox_table *table, const char *id)
{
	struct sandbox_entry *entry = mem_new(sizeof(*entry));

	if (table->count == table->cap) {
		table->cap = table->cap ? table->cap * 2 : 64;
		table->sorted = realloc(table->sorted, table->cap * sizeof(struct sandbox_entry *));
		if (!table->sorted)
			abort();
	}
	memcpy(entry->id, id, sizeof(entry->id));
	memcpy(entry->group, id, sizeof(entry->group));
	entry->has_owner = true;
	insert(table, entry);
	entry->lifeline = entry->kill_waiter = entry->freeze.waiter = -1;
	entry->network = NETWORK_NONE;
	return entry;
}

void sandbox_table_release(struct sandbox_entry *entry)
{
	fd_close(take_fd(&entry->lifeline));
	network_release(&entry->network);
}

void sandbox_table_rename(struct sandbox_table *table, struct sandbox_entry *entry, const char *id)
{
	take_out(table, entry);
	memcpy(entry->id, id, sizeof(entry->id));
	insert(table, entry);
}

void sandbox_table_remove(struct sandbox_table *table, struct sandbox_entry *entry)
{
	take_out(table, entry);
	sandbox_table_release(entry);
	free(entry);
}

uint32_t sandbox_table_list(const struct sandbox_table *table, const char *after,
	char ids[][KEEPER_ID_LEN + 1], uint32_t max)
{
	uint32_t count = 0;

	for (size_t i = lower_bound(table, after); i < table->count && count < max; i++) {
		if (table->sorted[i]->has_owner && strcmp(table->sorted[i]->id, after) != 0)
			memcpy(ids[count++], table->sorted[i]->id, sizeof(ids[0]));
	}
	return count;
}
