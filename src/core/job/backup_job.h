/* SPDX-License-Identifier: Apache-2.0 */
/* The job that writes a backup of the state now, for an operator who does not want to wait for the daily one. */
#pragma once

#include "core/job/job.h"

#define BACKUP_JOB_KIND "backup"

/* The row of its kind; `context` is the struct backups. A copy that was cut short is written anew. */
#define BACKUP_JOB(backups_)                                                                       \
	{                                                                                          \
		.name = BACKUP_JOB_KIND, .on_restart = JOB_RESTART_RETRY, .max_running = 1,        \
		.run = backup_job_run, .context = (backups_)                                       \
	}

int backup_job_run(struct job *job, void *backups, struct err *err) must_check;
