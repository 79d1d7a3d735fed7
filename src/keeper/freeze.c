/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/freeze.h"

#include "base/clock.h"
#include "base/fail_point.h"
#include "keeper/sandbox/reply.h"

#define TIMEOUT_US    2000000
#define FIRST_LOOK_US 20

static void conclude(
	struct keeper *keeper, struct sandbox_entry *entry, int result, const struct err *err)
{
	if (entry->freeze.waiter >= 0)
		reply_result(entry->freeze.waiter, result, err);
	entry->freeze.waiter = -1;
	entry->freeze.is_pending = false;
	keeper->freeze_count--;
}

void freeze_abandon(struct keeper *keeper, struct sandbox_entry *entry)
{
	struct err err;

	if (entry->freeze.is_pending)
		conclude(keeper, entry,
			err_set(&err, ERR_NOT_FOUND, "sandbox %s does not run", entry->id), &err);
}

/* Answers if the sandbox is frozen or thawed as asked, or if the time for it is over. */
static void look(struct keeper *keeper, struct sandbox_entry *entry, uint64_t now_us)
{
	const struct cgroup_tree *cgroups = &keeper->context.cgroups;
	struct err err = {0}, ignored;
	int r = cgroup_is_frozen(cgroups, entry->group, &err);

	if (r == entry->freeze.wants_frozen)
		r = 0;
	else if (r >= 0 && now_us - entry->freeze.since_us < TIMEOUT_US)
		return;
	else if (r >= 0)
		r = err_set(&err, ERR_TIMEOUT, "sandbox %s did not %s within %d s", entry->id,
			entry->freeze.wants_frozen ? "freeze" : "thaw", TIMEOUT_US / 1000000);
	if (r < 0 && entry->freeze.wants_frozen)
		(void)!cgroup_freeze(cgroups, entry->group, false, &ignored);
	conclude(keeper, entry, r, &err);
}

void freeze_begin(struct keeper *keeper, struct sandbox_entry *entry, bool freeze, int conn)
{
	struct err err = {0};
	int r;

	/* An earlier daemon asked for it: the last request counts. */
	if (entry->freeze.is_pending)
		conclude(keeper, entry,
			err_set(&err, ERR_CONFLICT, "something else was asked of sandbox %s",
				entry->id),
			&err);
	r = cgroup_freeze(&keeper->context.cgroups, entry->group, freeze, &err);
	if (r < 0) {
		reply_result(conn, r, &err);
		return;
	}
	fail_point("pause.freezer_written");
	entry->freeze.is_pending = true;
	entry->freeze.wants_frozen = freeze;
	entry->freeze.since_us = clock_steady_us();
	entry->freeze.waiter = conn;
	keeper->freeze_count++;
	look(keeper, entry, entry->freeze.since_us);
}

int64_t freeze_tend(struct keeper *keeper)
{
	uint64_t now_us = clock_steady_us(), soonest_us = TIMEOUT_US;

	for (size_t i = 0; keeper->freeze_count > 0 && i < keeper->table.count; i++) {
		struct sandbox_entry *entry = keeper->table.sorted[i];
		uint64_t next_us = FIRST_LOOK_US + (now_us - entry->freeze.since_us) / 4;

		if (entry->freeze.is_pending)
			look(keeper, entry, now_us);
		if (entry->freeze.is_pending && next_us < soonest_us)
			soonest_us = next_us;
	}
	return keeper->freeze_count > 0 ? (int64_t)soonest_us : -1;
}
