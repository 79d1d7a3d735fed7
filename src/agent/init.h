/* SPDX-License-Identifier: Apache-2.0 */
/* The agent itself: its event loop, and what each frame makes it do. main.c has the theory. */
#pragma once

#include "agent/job.h"
#include "agent/machine.h"

struct init_fds {
	int lifeline;
	struct job_fds jobs;
	const int *sheets; /* the files to keep for machine.h, or NULL */
};

/*
 * Runs until the lifeline ends or the daemon asks for it; the exit code. Descriptors 0-2 must be
 * /dev/null. Blocks all signals, and reaps every child of the caller.
 */
int init_run(const struct init_fds *fds);
