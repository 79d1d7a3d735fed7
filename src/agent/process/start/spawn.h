/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts a command: from the agent to the first instruction of another program.
 *
 * The child shares the agent's memory until it execs (CLONE_VM | CLONE_VFORK): nothing is copied,
 * so an exec costs little more than the program itself. In return the child may only make system
 * calls.
 */
#pragma once

#include "agent/link/payload.h"
#include "agent/machine/oom_score.h"
#include "agent/process/start/affinity.h"

#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

/* What every child needs of the agent; filled once. */
struct spawn_base {
	struct oom_score oom;
	struct rlimit files;	  /* RLIMIT_NOFILE as it was before the agent raised its own */
	struct affinity affinity; /* of commands */
	uid_t uid;
	gid_t gid;
};

/*
 * Blocks all signals, so that PID 1 does not die of a signal that it did not expect. Commands get
 * the default dispositions set here, since exec keeps them.
 */
void spawn_block_signals(void);

/* Called once at the start, with the descriptors of oom_score.h. Raises the agent's own limit of descriptors and drops its groups. */
void spawn_prepare(struct spawn_base *ret_base, int score_fd, int work_fd);

/* Where a command is put; the caller keeps the descriptors. */
struct spawn_target {
	int fds[4];	  /* its 0, 1, 2 and 3; [0] < 0: the agent's own, which is /dev/null;
			     [3] < 0: it has none */
	bool is_terminal; /* fds are a terminal, which becomes its controlling one */
	int group_fd;	  /* cgroup.threads of the group it joins; -1: it stays in the agent's */
};

/*
 * Starts exec. Returns the pid; or -errno with *ret_stage (enum agent_stage) when the program never
 * ran and nothing is left.
 */
pid_t spawn_run(const struct spawn_base *base, const struct payload_exec *exec,
	const struct spawn_target *target, int *ret_stage) must_check;
