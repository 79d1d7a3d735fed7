/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals a command with all its descendants: its process group, its session, and the descendants
 * that made a session of their own.
 *
 * /proc shows which process descends from which. A process whose ancestors have all ended and that
 * left the session before cannot be told from others: it lives on, as a daemon would.
 */
#pragma once

#include <sys/types.h>

/* leader is the first process of the session, alive or not. */
void process_tree_signal(pid_t leader, int signal);

/* Signals all descendants of the caller, but not the caller. */
void process_tree_signal_own(int signal);
