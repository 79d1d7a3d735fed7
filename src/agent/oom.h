/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who the kernel kills when the sandbox's memory is used up: a workload, not its PID 1.
 *
 * Where memory is on cgroup v1, by groups: the agent has one of its own, and a child joins the one whose
 * memory is limited. Elsewhere by scores, which a workload can bring back down to the agent's: then it
 * is the larger of the two that goes.
 *
 * A child is born with its parent's score, so PID 1 raises its own for the moment of the clone. Two
 * writes to a file that stays open cost a tenth of what a child would need to open its own.
 */
#pragma once

#include "base/mem.h"

struct oom {
	int fd;	     /* of the agent's oom_score_adj; -1 where it cannot be written */
	int work_fd; /* what children write 0 to, to join the limited group; -1: the agent is in it */
	char own[8]; /* the score to go back to */
};

/* Takes the two descriptors; -1 for the first means its own file, to be opened before it is undumpable. */
void oom_open(struct oom *oom, int score_fd, int work_fd);

/* Around a clone. Failing is no reason not to start anything. */
void oom_raise(const struct oom *oom);
void oom_restore(const struct oom *oom);

/* In a child: from now on its memory is the sandbox's. 0 or -errno. */
int oom_join_work(const struct oom *oom) must_check;
