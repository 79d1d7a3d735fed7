/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A clock that rings once, on the reactor's thread. It counts the time that the machine sleeps as well.
 * Closing it from any thread is safe: after alarm_close() it does not ring, and `release` runs on the
 * reactor's thread once no call can be under way.
 */
#pragma once

#include "core/reactor.h"

struct alarm;

int alarm_open(struct reactor *reactor, uint64_t ms, void (*ring)(void *arg),
	void (*release)(void *arg), void *arg, struct alarm **ret_alarm, struct err *err)
	must_check;

/* Rings once more, ms from now; from within `ring`. */
void alarm_set(struct alarm *alarm, uint64_t ms);

/* NULL is fine. */
void alarm_close(struct alarm *alarm);
