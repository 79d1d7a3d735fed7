/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting a command: from the agent to the first instruction of another program.
 *
 * The child shares the agent's memory until it execs (CLONE_VM | CLONE_VFORK): nothing is copied,
 * so an exec costs little more than the program itself. In return the child may only make system
 * calls.
 */
#pragma once

#include "agent/affinity.h"
#include "agent/oom.h"
#include "agent/payload.h"

#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

/* What every child needs to know about the agent; filled once. */
struct launch_base {
	struct oom oom;
	struct rlimit files;	  /* RLIMIT_NOFILE as it was before the agent raised its own */
	struct affinity affinity; /* of commands */
	uid_t uid;
	gid_t gid;
};

/*
 * Blocks everything, so that PID 1 does not die of a signal that it forgot. Commands get the default
 * dispositions set here, since they are kept over exec.
 */
void launch_block_signals(void);

/* Called once at the start, with the descriptors of oom.h. Raises the agent's own limit of descriptors and drops its groups. */
void launch_prepare(struct launch_base *ret_base, int score_fd, int work_fd);

/* Where a command is put; the descriptors stay the caller's. */
struct launch_seat {
	int fds[3];	  /* its 0, 1 and 2; [0] < 0: the agent's own, which is /dev/null */
	bool is_terminal; /* they are one, and shall be its controlling one */
	int group_fd;	  /* cgroup.threads of the group it joins; -1: it stays in the agent's */
};

/*
 * Starts exec. The pid; or -errno with *ret_stage (enum agent_stage), when the program never ran and
 * nothing is left.
 */
pid_t launch_run(const struct launch_base *base, const struct payload_exec *exec,
	const struct launch_seat *seat, int *ret_stage) must_check;
