/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon keeps below state/ of its data directory: the database, the audit log, secrets, and directories. */
#pragma once

#include "base/err.h"
#include "daemon/privileged_setup.h"
#include "daemon/settings.h"
#include "store/store.h"

#include <limits.h>

struct state {
	struct store *store;
	struct audit_writer *audit_writer;
	struct backups *backups;
	struct secret_store *secret_store;
	struct store_backup_rule backup_rule;
	char backup_dir[PATH_MAX];
	int logs_fd;	   /* the output of processes */
	int unfinished_fd; /* marks of what is being created */
	int baselines_fd;  /* what sandboxes began with */
	int jobs_fd;	   /* the logs of jobs */
	int blobs_fd;	   /* what images are fetched into */
	int artifacts_fd;  /* copies of what executions wrote */
	int projects_fd;   /* the files of projects */
};

/* Before state_open: nothing is open, so that state_close does nothing. */
#define STATE_CLOSED                                                                               \
	{                                                                                          \
		.logs_fd = -1, .unfinished_fd = -1, .baselines_fd = -1, .jobs_fd = -1,             \
		.blobs_fd = -1, .artifacts_fd = -1, .projects_fd = -1                              \
	}

/*
 * Opens all of it. The first token is known to the database afterwards, and the setup has it no more. If it fails, what
 * is open stays so until state_close.
 */
int state_open(const struct settings *settings, struct privileged_setup *setup, struct state *state,
	struct err *err) must_check;

/* Writes the end of the audit log. What others write to the database is to be done by then. */
void state_close_logs(struct state *state);

void state_close(struct state *state);
