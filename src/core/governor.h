/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bound on how fast output is taken that no client waits for. A command that floods its log would else
 * keep the reactor busy, and a hundred of them all others waiting; so beyond a rate that no honest command
 * reaches, acknowledgements wait for their turn, and with them the commands.
 *
 * For the reactor's thread alone, but for opening and closing.
 */
#pragma once

#include "core/alarm.h"

#include <stdbool.h>

struct governor;

int governor_open(struct reactor *reactor, struct governor **ret_governor, struct err *err)
	must_check;
void governor_close(struct governor *governor);

/* Whether so many bytes may be acknowledged now; they count then. */
bool governor_allows(struct governor *governor, uint64_t bytes);

/* Calls go(arg) when there is room again, in the order of coming. */
void governor_park(struct governor *governor, void (*go)(void *arg), void *arg);
