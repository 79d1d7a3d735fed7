/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executions that go on when a job is over, with nobody waiting: what was asked of them is in memory, so a daemon that ends
 * before that has lost them (core/execution/execution.h).
 */
#pragma once

#include "core/job/job.h"

struct late_executions;

/* One of them. */
struct late_execution {
	const char *job; /* that it waits for; copied */
	/* Called with how the job ended (job_end()); it may block. 1: it waits for *ret_job now. */
	int (*go_on)(void *arg, int end, char ret_job[ID_LEN + 1], struct err *err);
	/* The last call of all. */
	void (*release)(void *arg);
	void *arg;
};

/* The jobs are borrowed. */
struct late_executions *late_executions_new(struct jobs *jobs);

/* It goes on when its job is over, on a thread for all of them. On failure nothing of it was called. */
int late_executions_await(struct late_executions *late, const struct late_execution *execution,
	struct err *err) must_check;

/* Lets go of all that wait, when jobs_stop() has said that the daemon ends, and before the jobs are closed. Frees it; NULL
 * is fine. */
void late_executions_leave(struct late_executions *late);
