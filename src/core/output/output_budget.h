/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bound on what is kept of all output of one sandbox. The logs of its processes (core/output/output_log.h) are files
 * of one directory; this knows what they take together, those of ended processes too, and makes room before one
 * of them would exceed the bound.
 *
 * What goes first is the output of the process that was started first, of those that are only remembered; a mark
 * stays in its place, by which readers see that there was something. Then the oldest file of the log that takes
 * the most. If there is nothing to remove, the new bytes are left out, which readers see as a cut. A command
 * neither waits nor fails for that.
 *
 * While the host's disk has less left than its reserve, the logs of a sandbox together do not grow beyond what they
 * have then (or OUTPUT_BUDGET_FLOOR, so that who follows a command still sees what it writes).
 */
#pragma once

#include "base/err.h"
#include "base/mem.h"

#include <stdbool.h>
#include <stdint.h>

struct output_log;

#define OUTPUT_BUDGET_FLOOR (256u << 10)

struct output_budget;

/* Reads what is in the directory dir_fd, of which it keeps nothing open: there is one for each sandbox. Counted. */
int output_budget_open(int dir_fd, uint64_t max_bytes, uint64_t disk_reserve,
	struct output_budget **ret_budget, struct err *err) must_check;
struct output_budget *output_budget_ref(struct output_budget *budget);
void output_budget_unref(struct output_budget *budget);

/* Another bound; what is above it goes with the next bytes. */
void output_budget_set_max(struct output_budget *budget, uint64_t max_bytes);

/* What all logs take on disk, in blocks. */
uint64_t output_budget_used(struct output_budget *budget);

/*
 * Removes all files of a process from the directory. A log that is still open appends nothing more.
 */
void output_budget_remove(struct output_budget *budget, int dir_fd, uint32_t process);

/* --- for output_log.c; all logs of a budget are appended to by one thread, but come and go on any --- */

void output_budget_join(struct output_budget *budget, struct output_log *log);
void output_budget_leave(struct output_budget *budget, struct output_log *log);

/* The files of a log take more, or less. */
void output_budget_charge(struct output_budget *budget, int64_t bytes);

/* Makes room for what a log is about to write. Whether there is. The appender's thread. */
bool output_budget_reserve(struct output_budget *budget, struct output_log *log, uint64_t bytes)
	must_check;
