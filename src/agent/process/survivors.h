/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes that descend from a command: signals all of them together, and reports to the
 * daemon how many are left when the main process has ended. What takes more than one try (killing,
 * removing a cgroup) is repeated at the table's tick.
 *
 * They are in the command's cgroup. Where there are no cgroups their session identifies them, as
 * far as they stay in it.
 */
#pragma once

#include "agent/process/process_table.h"

void survivors_signal(struct process_table *table, struct process *process, int signal);

/*
 * Called after the main process ended: reports how many are left, and closes the cgroup when none
 * is. False if the command is done too; then the caller frees it.
 */
bool survivors_look(struct process_table *table, struct process *process) must_check;

/* Repeats what failed before; false as above. */
bool survivors_try_again(struct process_table *table, struct process *process) must_check;

/* Reports how many are left; to a new daemon once more. */
void survivors_tell(struct process_table *table, struct process *process, uint32_t count);

/*
 * Reports that none is left, if that is so and was not reported yet; the exit is reported before.
 */
void survivors_tell_none(struct process_table *table, struct process *process);

/* Closes an empty cgroup. */
void survivors_close(struct process_table *table, struct process *process);
