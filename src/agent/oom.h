/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who the kernel kills when the sandbox's memory is used up: a workload, not its PID 1.
 *
 * A child is born with its parent's score, so PID 1 raises its own for the moment of the clone. Two
 * writes to a file that stays open cost a tenth of what a child would need to open its own.
 */
#pragma once

struct oom {
	int fd;	     /* of the agent's oom_score_adj; -1 where it cannot be written */
	char own[8]; /* the score to go back to */
};

/* Before PR_SET_DUMPABLE, which gives the file away. */
void oom_open(struct oom *oom);

/* Around a clone. Failing is no reason not to start anything. */
void oom_raise(const struct oom *oom);
void oom_restore(const struct oom *oom);
