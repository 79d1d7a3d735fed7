/* SPDX-License-Identifier: Apache-2.0 */
/* The agent itself: its event loop, and what each frame makes it do. main.c has the theory. */
#pragma once

#include "agent/machine.h"

/*
 * Runs until the lifeline ends or the daemon asks for it; the exit code. Descriptors 0-2 must be
 * /dev/null. group_fd is the directory of the control group it is in; -1: commands get no groups of
 * their own. sheets are the files to keep for machine.h, or NULL. Blocks all signals, and reaps every
 * child of the caller.
 */
int init_run(int lifeline_fd, int group_fd, const int sheets[MACHINE_SHEETS]);
