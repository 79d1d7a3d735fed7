/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clock by which the database keeps the times of sandboxes, processes, quotas and idempotency keys: the wall clock
 * without its steps. It began as the wall clock and goes on with the clock that nobody sets (base/clock.h), over
 * restarts of the daemon too. So times in the database can be compared and added to, whatever is done to the wall
 * clock; for people they are translated. Suspended time counts; so does the time that the machine is off, as far as the
 * wall clock knows it. It never goes back.
 *
 * What is agreed on with the world outside has the wall clock itself: tokens, links of previews, the audit log.
 */
#pragma once

#include "store/store.h"

/* Now. */
int64_t store_clock_ms(const struct store *store);

/* What the wall clock showed, or will show, at that time, as it is set now. */
int64_t store_clock_to_wall(const struct store *store, int64_t ms);

/* Looks at how the wall clock is set, and writes down how far time has come; every second or so, from one thread. */
int store_clock_follow(struct store *store, struct err *err) must_check;
