/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's event loop, and what each kind of frame makes it do. main.c has the theory of
 * operation.
 */
#pragma once

#include "agent/link/listener.h"
#include "agent/machine/virtual_proc.h"
#include "agent/process/process.h"

struct init_fds {
	int lifeline; /* -1: no keeper started it, and it listens */
	struct process_fds processes;
	const int *proc_files;			/* the files that virtual_proc.h writes, or NULL */
	const struct listener_config *listener; /* or NULL */
};

/*
 * Runs until the lifeline ends or the daemon asks for the end, or, without a lifeline, whoever
 * started it does, by SIGTERM; returns the exit code. Descriptors 0-2 must be /dev/null. Blocks all
 * signals, and reaps every child of the caller.
 */
int init_run(const struct init_fds *fds);
