/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits the rate of output that no client waits for, and of output of terminals. Commands that
 * flood their logs would keep the event loop or the kernel's tty layer busy, and all others
 * waiting. So beyond a rate that no honest command reaches, acknowledgements wait for their turn,
 * and with them the commands. The sandboxes take turns, however many of their commands flood. The
 * more commands wait, the lower the rate of all of them together: each switch between them costs
 * the processors too, and a crowd of floods would take these from everybody else.
 */
#pragma once

#include "event/timer.h"

#include <stdbool.h>

struct output_rate;

struct output_rate *output_rate_open(struct event_loop *loop);
void output_rate_close(struct output_rate *rate);

/* Whether so many bytes may be acknowledged now; if so, they are counted. */
bool output_rate_allows(struct output_rate *rate, uint64_t bytes);

/*
 * Calls go(arg) on the event loop's thread when there is room again; go returns how many bytes it
 * acknowledged. Those with the same `of`, which is only compared, are called in order of arrival,
 * and take turns with those of others.
 */
void output_rate_park(
	struct output_rate *rate, const void *of, uint64_t (*go)(void *arg), void *arg);
