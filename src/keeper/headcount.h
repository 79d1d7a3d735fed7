/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a sandbox uses, counted from its processes: for a keeper whose cgroups do not count all of it.
 *
 * Memory that processes share counts for each of them, and nobody remembers a peak. The time of a
 * process that was reaped is in its parent's figures, so what all who live have used, with their
 * children, is what the sandbox has used.
 */
#pragma once

#include "base/err.h"
#include "wire/keeper.h"

#include <sys/types.h>

/* Of the sandbox whose first process is init, which was not reaped yet. */
int headcount_take(pid_t init, struct keeper_stats *ret_stats, struct err *err) must_check;

/* Adds the process that a line of /proc/PID/stat tells of; false if it tells of none. */
bool headcount_add(const char *line, struct keeper_stats *stats);
