/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Terminals of commands: the agent has the master, the command the slave.
 *
 * Only the ptmx device is opened by a name that the sandbox could have changed, and whatever is
 * opened there cannot block and must answer as a master.
 */
#pragma once

#include "agent/link/payload.h"

#include <stdint.h>
#include <sys/types.h>

/* A terminal of the user, size and group that exec wants. The master is nonblocking. 0 or -errno. */
int pty_open(const struct payload_exec *exec, uid_t own_uid, int *ret_master, int *ret_slave)
	must_check;

void pty_resize(int master, uint16_t columns, uint16_t rows);

/* The character that ends the input, as the command has set it. */
uint8_t pty_eof(int master);
