/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's side of an isolated command (wire/agent.h, AGENT_EXEC_ISOLATED), which its isolated
 * init starts and reaps. Its pipes or terminal, its cgroup and its output are the agent's, as with
 * any other command.
 */
#pragma once

#include "agent/process/start/spawn.h"
#include "wire/frame.h"

#include <stdint.h>
#include <sys/types.h>

struct isolated_process {
	int sock;	 /* to the isolated init; -1: the command is not isolated, or has ended */
	int pid_fd;	 /* the main process, which is not our child */
	int listener_fd; /* of the isolated command's filter; -1: it has none */
};

#define ISOLATED_PROCESS_NONE                                                                      \
	((struct isolated_process){.sock = -1, .pid_fd = -1, .listener_fd = -1})

/*
 * Has the isolated init start the command of an AGENT_EXEC frame; only its socket is known yet.
 * Returns the pid of the main process as the sandbox sees it, or -errno with *ret_stage. The agent
 * waits meanwhile, as for any other command.
 */
pid_t isolated_process_start(struct isolated_process *isolated, const struct frame *frame,
	const struct spawn_target *target, int *ret_stage) must_check;

int isolated_process_signal(const struct isolated_process *isolated, int signal);

/*
 * Reads how the command ended, after the socket was readable. If the isolated init died, the
 * command was killed.
 */
void isolated_process_read_end(
	struct isolated_process *isolated, int *ret_wait_status, uint64_t *ret_peak_bytes);

void isolated_process_close(struct isolated_process *isolated);
