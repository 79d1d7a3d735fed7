/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/birth.h"

#include "base/log.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

/* Requests come in any order; but then it waits for one that never comes. */
#define PASSED_OVER_MAX 4

/* Builds it as asked for, on the disk that it finds under the request's id. */
static int begin(struct births *births, const struct keeper_request *request, bool is_ahead,
	struct held **ret_held, struct err *err)
{
	struct build_context *context = births->context;
	struct cpus_share cpus;
	struct build build;
	struct held *held;
	int r;

	cpus_take(births->cpus, request->limits.cpu_millis, &cpus);
	r = build_start(context, request, &cpus, is_ahead, &build, err);
	if (r < 0) {
		cpus_give_back(births->cpus, &cpus);
		(void)!cgroup_remove(&context->cgroups, request->id);
		return r;
	}
	held = roster_add(births->roster, request->id);
	held->pid = build.pid;
	held->lifeline = build.lifeline;
	held->network = build.network;
	held->slot = request->slot;
	held->cpus = cpus;
	held->profile = request->profile;
	held->limits = request->limits;
	held->has_owner = !is_ahead;
	*ret_held = held;
	return 0;
}

static void give_up(struct births *births)
{
	/* What it leaves is removed when it was reaped. */
	if (births->ahead->pid)
		kill(births->ahead->pid, SIGKILL);
	births->ahead = NULL;
}

/* Whether who wants the one would be content with the other. */
static bool is_alike(const struct keeper_request *a, const struct keeper_request *b)
{
	return a->profile == b->profile && a->leads_out == b->leads_out &&
	       strcmp(a->hostname, b->hostname) == 0 &&
	       memcmp(&a->limits, &b->limits, sizeof(a->limits)) == 0;
}

static bool fits(const struct births *births, const struct keeper_request *request)
{
	return births->ahead && births->ahead->pid && births->plan.slot == request->slot &&
	       is_alike(&births->plan, request) &&
	       disk_is_new(&births->context->disks, request->id);
}

/* Makes the one that was begun the one that is asked for; NULL if it does not fit. */
static struct held *take_over(struct births *births, const struct keeper_request *request)
{
	struct held *held = births->ahead;
	struct err err;

	if (!fits(births, request))
		return NULL;
	if (disk_hand_over(&births->context->disks, held->id, request->id, &err) < 0) {
		log_warning("%s", err.message);
		give_up(births);
		return NULL;
	}
	births->ahead = NULL;
	held->has_owner = true;
	roster_rename(births->roster, held, request->id);
	return held;
}

int birth_give(struct births *births, const struct keeper_request *request, struct held **ret_held,
	struct err *err)
{
	struct build_context *context = births->context;
	struct held *held = take_over(births, request);
	int r;

	if (!held) {
		/* One uid range, one sandbox, whatever the daemon believes. */
		if (roster_find_slot(births->roster, request->slot))
			return err_set(err, ERR_CONFLICT, "a sandbox runs in uid range %u already",
				request->slot);
		if (births->ahead && births->ahead->slot == request->slot)
			give_up(births);
		disk_claim(&context->disks, request->id, request->limits.disk_bytes > 0);
		r = begin(births, request, false, &held, err);
		if (r < 0) {
			disk_park(&context->disks, request->id);
			return r;
		}
	}
	fence_describe(
		&context->fence, request, disk_way_of(&context->disks, request->id), &held->walls);
	*ret_held = held;
	return 0;
}

static void begin_ahead(struct births *births, const struct keeper_request *last)
{
	struct keeper_request *plan = &births->plan;
	struct disks *disks = &births->context->disks;
	struct err err;

	/* The request of nobody. Its id has a character that those of requests have not. */
	*plan = *last;
	plan->slot = last->next_slot;
	snprintf(plan->id, sizeof(plan->id), "ahead-%020u", ++births->ahead_count);
	births->passed_over = 0;
	if (disk_reserve(disks, plan->id, &err) < 0) {
		log_debug("nothing is built ahead: %s", err.message);
		return;
	}
	if (begin(births, plan, true, &births->ahead, &err) < 0) {
		log_warning("nothing is built ahead: %s", err.message);
		disk_unreserve(disks, plan->id);
		return;
	}
	disk_stock(disks);
}

/* Of requests that overtake each other the later may name what the earlier has taken by now. */
static bool is_free(const struct births *births, uint32_t slot)
{
	return slot < KEEPER_SLOT_COUNT && !roster_find_slot(births->roster, slot);
}

void birth_prepare(struct births *births, const struct keeper_request *last)
{
	/* Where all differ, what is built ahead would only be thrown away. */
	bool is_likely = births->last.kind == 0 || is_alike(&births->last, last);
	struct err err;

	births->last = *last;
	if (births->ahead && ++births->passed_over > PASSED_OVER_MAX)
		give_up(births);
	if (!births->ahead && is_likely && last->limits.disk_bytes > 0 &&
		is_free(births, last->next_slot))
		begin_ahead(births, last);
	if (userns_prepare(&births->context->userns, last->next_slot, &err) < 0)
		log_debug("no user namespace is made ahead: %s", err.message);
}

void birth_forget(struct births *births, struct held *held)
{
	if (births->ahead == held)
		births->ahead = NULL;
	if (held->err.kind != ERR_NONE)
		log_warning("what was built ahead failed: %s", held->err.message);
	disk_unreserve(&births->context->disks, held->id);
	roster_remove(births->roster, held);
}
