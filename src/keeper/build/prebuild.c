/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/build/prebuild.h"

#include "base/fail_point.h"
#include "base/log.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

void prebuild_release_range(struct prebuilds *prebuilds, uint32_t slot)
{
	struct build_context *context = prebuilds->context;
	uint32_t evicted;

	/* A sandbox that was given up may end after the next in its range has begun. */
	if (slot >= KEEPER_SLOT_COUNT || sandbox_table_runs_in(prebuilds->table, slot) ||
		!range_cache_add(&prebuilds->idle, slot, &evicted))
		return;
	userns_forget(&context->userns, evicted);
	rootfs_forget_range(&context->sources, userns_base(&context->userns.ranges, evicted));
}

/* The network that a member joins; -1: it is no member. */
static int netns_of(const struct prebuilds *prebuilds, const struct keeper_request *request)
{
	const struct sandbox_entry *primary =
		request->primary[0] ? sandbox_table_find(prebuilds->table, request->primary) : NULL;

	return primary ? primary->network.netns_fd : -1;
}

/* Builds the sandbox of a request, on the disk that has the request's id as name. */
static int begin(struct prebuilds *prebuilds, const struct keeper_request *request, bool is_ahead,
	struct sandbox_entry **ret_entry, struct err *err)
{
	struct build_context *context = prebuilds->context;
	struct cpus_share cpus;
	struct build build;
	struct sandbox_entry *entry;
	int r;

	range_cache_remove(&prebuilds->idle, request->slot);
	cgroup_removals_hurry(prebuilds->removals, request->id);
	cpus_take(prebuilds->cpus, request->limits.cpu_millis, &cpus);
	r = build_start(
		context, request, &cpus, is_ahead, netns_of(prebuilds, request), &build, err);
	if (r < 0) {
		cpus_give_back(prebuilds->cpus, &cpus);
		(void)!cgroup_remove(&context->cgroups, request->id);
		prebuild_release_range(prebuilds, request->slot);
		return r;
	}
	entry = sandbox_table_add(prebuilds->table, request->id);
	entry->pid = build.pid;
	entry->lifeline = build.lifeline;
	entry->network = build.network;
	entry->slot = request->slot;
	entry->cpus = cpus;
	entry->profile = request->profile;
	memcpy(entry->hostname, context->hostname, sizeof(entry->hostname));
	snprintf(entry->stack, sizeof(entry->stack), "%s", request->stack);
	entry->limits = request->limits;
	entry->leads_out = request->leads_out;
	entry->has_volumes = request->has_volumes;
	memcpy(entry->primary, request->primary, sizeof(entry->primary));
	entry->has_owner = !is_ahead;
	*ret_entry = entry;
	return 0;
}

/* Its disk is removed when it was reaped. */
static void drop(struct sandbox_entry *entry)
{
	entry->is_dropped = true;
	kill(entry->pid, SIGKILL);
}

void prebuild_drop(struct prebuilds *prebuilds, uint32_t slot)
{
	struct sandbox_entry *entry = sandbox_table_find_ahead(prebuilds->table, slot);

	if (entry)
		drop(entry);
}

void prebuild_drop_stack(struct prebuilds *prebuilds, const char *stack)
{
	for (size_t i = 0; i < prebuilds->table->count; i++) {
		struct sandbox_entry *entry = prebuilds->table->sorted[i];

		if (!entry->has_owner && !entry->is_dropped && entry->pid &&
			strcmp(entry->stack, stack) == 0)
			drop(entry);
	}
}

/* Whether a sandbox is what a request asks for. */
static bool fits(const struct sandbox_entry *entry, const struct keeper_request *request)
{
	return entry->profile == request->profile && entry->leads_out == request->leads_out &&
	       entry->has_volumes == request->has_volumes &&
	       strcmp(entry->stack, request->stack) == 0 &&
	       memcmp(&entry->limits, &request->limits, sizeof(entry->limits)) == 0;
}

/* Gives the sandbox that is held in its uid range to a request; NULL if it does not fit. */
static struct sandbox_entry *take_over(
	struct prebuilds *prebuilds, const struct keeper_request *request)
{
	struct sandbox_entry *entry = sandbox_table_find_ahead(prebuilds->table, request->slot);
	struct disks *disks = &prebuilds->context->disks;
	struct err err;

	if (!entry || !fits(entry, request) || !disk_is_new(disks, request->id))
		return NULL;
	if (disk_hand_over(disks, entry->id, request->id, &err) < 0) {
		log_warning("%s", err.message);
		return NULL;
	}
	entry->has_owner = true;
	fail_point("build.ahead_handed_over");
	sandbox_table_rename(prebuilds->table, entry, request->id);
	return entry;
}

int prebuild_give(struct prebuilds *prebuilds, const struct keeper_request *request,
	struct sandbox_entry **ret_entry, struct err *err)
{
	struct build_context *context = prebuilds->context;
	bool is_member = request->primary[0];
	struct sandbox_entry *entry = is_member ? NULL : take_over(prebuilds, request);
	struct err unnamed;
	int r;

	if (is_member) {
		r = begin(prebuilds, request, false, &entry, err);
		if (r < 0)
			return r;
	} else if (!entry) {
		/* The keeper never runs two sandboxes in one uid range, whatever the daemon
		 * believes. */
		if (sandbox_table_find_slot(prebuilds->table, request->slot))
			return err_set(err, ERR_CONFLICT, "a sandbox runs in uid range %u already",
				request->slot);
		prebuild_drop(prebuilds, request->slot);
		disk_claim(&context->disks, request->id, request->limits.disk_bytes > 0);
		r = begin(prebuilds, request, false, &entry, err);
		if (r < 0) {
			disk_park(&context->disks, request->id);
			return r;
		}
	}
	if (!is_member)
		disk_mark_range(&context->disks, request->id,
			userns_base(&context->userns.ranges, request->slot));
	/* One whose first process is gone already is reaped and reported as any other. */
	if (strcmp(entry->hostname, request->hostname) != 0 &&
		build_set_hostname(context, entry->pid, request->hostname, &unnamed) < 0)
		log_warning("sandbox %s: %s", request->id, unnamed.message);
	cgroup_name_owner(&context->cgroups, entry->group, entry->id);
	isolation_check_describe(&context->isolation, request,
		disk_way_of(&context->disks, is_member ? request->primary : request->id),
		&entry->walls);
	*ret_entry = entry;
	return 0;
}

int prebuild_order(
	struct prebuilds *prebuilds, const struct keeper_request *request, struct err *err)
{
	struct sandbox_entry *entry = sandbox_table_find_ahead(prebuilds->table, request->slot);
	struct disks *disks = &prebuilds->context->disks;
	struct keeper_request own = *request;
	int r;

	if (request->limits.disk_bytes == 0)
		return err_set(err, ERR_INVALID, "a sandbox without a disk is not built ahead");
	if (entry && !fits(entry, request))
		drop(entry);
	if (sandbox_table_runs_in(prebuilds->table, request->slot))
		return 0;
	/* A name that no client gave: it has a character that ids have not. */
	snprintf(own.id, sizeof(own.id), "ahead-%020u", ++prebuilds->ahead_count);
	r = disk_reserve(disks, own.id, err);
	if (r < 0)
		return r;
	r = begin(prebuilds, &own, true, &entry, err);
	if (r < 0)
		disk_unreserve(disks, own.id);
	disk_fill_pool(disks);
	return r;
}

void prebuild_forget(struct prebuilds *prebuilds, struct sandbox_entry *entry)
{
	if (entry->err.kind != ERR_NONE)
		log_warning("what was built ahead failed: %s", entry->err.message);
	disk_unreserve(&prebuilds->context->disks, entry->id);
	sandbox_table_remove(prebuilds->table, entry);
}
