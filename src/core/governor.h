/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bound on how fast output is taken that no client waits for, and output of terminals. A command that
 * floods its log would else keep the reactor busy, or the kernel's tty layer, and a hundred of them all
 * others waiting; so beyond a rate that no honest command reaches, acknowledgements wait for their turn,
 * and with them the commands.
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

/* Calls go(arg) on the reactor's thread when there is room again, in the order of coming; it returns how many bytes that were. */
void governor_park(struct governor *governor, uint64_t (*go)(void *arg), void *arg);
