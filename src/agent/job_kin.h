/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whoever came of a command: all of them are signalled together, and when the main process has ended the daemon
 * is told how many are left. What takes more than one try (killing, removing a group) is tried again at the
 * table's tick.
 *
 * They are in the command's control group. Where there are no groups they are known by their session, as far as
 * they stay in it.
 */
#pragma once

#include "agent/job_private.h"

void job_kin_signal(struct job_table *table, struct job *job, int signal);

/*
 * After the main process's end: says who is left, and lets go of the group when nobody is. False if that was the
 * end of the job too, which the caller is to drop.
 */
bool job_kin_look(struct job_table *table, struct job *job) must_check;

/* Does again what did not work at once; false as above. */
bool job_kin_try_again(struct job_table *table, struct job *job) must_check;

/* Says how many are left; of a daemon that is new, once more. */
void job_kin_tell(struct job_table *table, struct job *job, uint32_t count);

/* Says that nobody is, if that is so and was not said yet, after the exit, which is of more interest. */
void job_kin_tell_none(struct job_table *table, struct job *job);

/* Lets go of a group that has nobody in it. */
void job_kin_close(struct job_table *table, struct job *job);
