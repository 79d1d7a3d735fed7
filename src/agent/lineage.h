/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals for a command with all that came from it: its process group, its session, and the
 * descendants that made a session of their own.
 *
 * Who descends from whom is read from /proc. A process whose parents have all ended and that left
 * the session before that cannot be told from others: it lives on, as a daemon would.
 */
#pragma once

#include <sys/types.h>

/* Leader: the first process of the session, alive or not. */
void lineage_signal(pid_t leader, int signal);

/* The same for all descendants of the caller, which gets none. */
void lineage_signal_own(int signal);
