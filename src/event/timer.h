/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A timer of an event loop: calls its function once, each time that it was set. It also counts the time
 * that the machine sleeps. Any thread may use it; a timer is closed and released as a watch is
 * (event_loop.h).
 */
#pragma once

#include "event/event_loop.h"

struct timer;

/* It is not set yet; `release` may be NULL. */
struct timer *timer_open(
	struct event_loop *loop, void (*expired)(void *arg), void (*release)(void *arg), void *arg);

/* Sets it, or moves it, to ms from now. */
void timer_set(struct timer *timer, uint64_t ms);

/* Until it is set again it does not expire. */
void timer_stop(struct timer *timer);

/* NULL is fine. */
void timer_close(struct timer *timer);
