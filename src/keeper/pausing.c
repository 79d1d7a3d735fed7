/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/pausing.h"

#include "base/clock.h"
#include "keeper/reply.h"

#define TIMEOUT_US    2000000
#define FIRST_LOOK_US 20

static void conclude(struct keeper *keeper, struct held *held, int result, const struct err *err)
{
	if (held->pause.waiter >= 0)
		reply_result(held->pause.waiter, result, err);
	held->pause.waiter = -1;
	held->pause.is_pending = false;
	keeper->pausing--;
}

void pausing_abandon(struct keeper *keeper, struct held *held)
{
	struct err err;

	if (held->pause.is_pending)
		conclude(keeper, held,
			err_set(&err, ERR_NOT_FOUND, "sandbox %s does not run", held->id), &err);
}

/* Whether it is as was asked for, or never will be. */
static void look(struct keeper *keeper, struct held *held, uint64_t now_us)
{
	const struct cgroup_tree *cgroups = &keeper->context.cgroups;
	struct err err = {0}, ignored;
	int r = cgroup_is_frozen(cgroups, held->group, &err);

	if (r == held->pause.wants_frozen)
		r = 0;
	else if (r >= 0 && now_us - held->pause.since_us < TIMEOUT_US)
		return;
	else if (r >= 0)
		r = err_set(&err, ERR_TIMEOUT, "sandbox %s did not %s within %d s", held->id,
			held->pause.wants_frozen ? "freeze" : "thaw", TIMEOUT_US / 1000000);
	if (r < 0 && held->pause.wants_frozen)
		(void)!cgroup_freeze(cgroups, held->group, false, &ignored);
	conclude(keeper, held, r, &err);
}

void pausing_begin(struct keeper *keeper, struct held *held, bool freeze, int conn)
{
	struct err err = {0};
	int r;

	/* Of a daemon before this one: what is asked for last counts. */
	if (held->pause.is_pending)
		conclude(keeper, held,
			err_set(&err, ERR_CONFLICT, "something else was asked of sandbox %s",
				held->id),
			&err);
	r = cgroup_freeze(&keeper->context.cgroups, held->group, freeze, &err);
	if (r < 0) {
		reply_result(conn, r, &err);
		return;
	}
	held->pause.is_pending = true;
	held->pause.wants_frozen = freeze;
	held->pause.since_us = clock_steady_us();
	held->pause.waiter = conn;
	keeper->pausing++;
	look(keeper, held, held->pause.since_us);
}

int64_t pausing_tend(struct keeper *keeper)
{
	uint64_t now_us = clock_steady_us(), soonest_us = TIMEOUT_US;

	for (size_t i = 0; keeper->pausing > 0 && i < keeper->roster.count; i++) {
		struct held *held = keeper->roster.sorted[i];
		uint64_t next_us = FIRST_LOOK_US + (now_us - held->pause.since_us) / 4;

		if (held->pause.is_pending)
			look(keeper, held, now_us);
		if (held->pause.is_pending && next_us < soonest_us)
			soonest_us = next_us;
	}
	return keeper->pausing > 0 ? (int64_t)soonest_us : -1;
}
