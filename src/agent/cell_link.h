/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's side of a cell (wire/agent.h, AGENT_EXEC_CELL): an isolated command, which its warden starts
 * and buries. Its pipes or terminal, its group and its output are the agent's, as with any other.
 */
#pragma once

#include "agent/launch.h"
#include "wire/frame.h"

#include <stdint.h>
#include <sys/types.h>

struct cell_link {
	int sock;	 /* to the warden; -1: there is no cell, or it has ended */
	int pid_fd;	 /* the main process, who is not our child */
	int listener_fd; /* of the cell's filter; -1: it has none */
};

#define CELL_LINK_NONE ((struct cell_link){.sock = -1, .pid_fd = -1, .listener_fd = -1})

/*
 * Has the command of an AGENT_EXEC frame started in a cell, of which only the socket is known yet. The pid
 * of its main process as the sandbox sees it, or -errno with *ret_stage. Stands still meanwhile, as for
 * any other command.
 */
pid_t cell_link_launch(struct cell_link *cell, const struct frame *frame,
	const struct launch_seat *seat, int *ret_stage) must_check;

int cell_link_signal(const struct cell_link *cell, int signal);

/* After the socket was readable: how it ended. A cell that died under its command was killed. */
void cell_link_read_end(struct cell_link *cell, int *ret_wait_status, uint64_t *ret_peak_bytes);

void cell_link_close(struct cell_link *cell);
