/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts what a sandbox uses from its processes: for a keeper whose cgroups do not count all of it.
 *
 * Memory that processes share counts for each of them, and there is no peak. The time of a process
 * that was reaped is in its parent's count, so the time of all living processes and their children
 * is that of the sandbox.
 */
#pragma once

#include "base/err.h"
#include "wire/keeper.h"

#include <sys/types.h>

/* Counts the sandbox whose first process is init, which was not reaped yet. */
int process_count_take(pid_t init, struct keeper_stats *ret_stats, struct err *err) must_check;

/* Adds the process of a line of /proc/PID/stat; false if the line cannot be parsed. */
bool process_count_add(const char *line, struct keeper_stats *stats);
