/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the kernel kill a workload, not PID 1, when the sandbox's memory is used up.
 *
 * Where memory is on cgroup v1, by groups: the agent has one of its own, and a child joins the one
 * whose memory is limited. Elsewhere by scores, which a workload can lower to the agent's: then the
 * kernel kills the larger of the two.
 *
 * A child inherits its parent's score, so PID 1 raises its own for the moment of the clone. Two
 * writes to a file that stays open cost a tenth of what a child would need to open its own.
 */
#pragma once

#include "base/mem.h"

struct oom_score {
	int fd;	     /* of the agent's oom_score_adj; -1 where it cannot be written */
	int work_fd; /* a child writes 0 here to join the limited group; -1: the agent is in it */
	char own[8]; /* the score to go back to */
};

/*
 * Takes the two descriptors; for -1 as the first it opens its own file, which works only before it
 * is undumpable.
 */
void oom_score_open(struct oom_score *oom, int score_fd, int work_fd);

/* Called before and after a clone. A failure does not stop the clone. */
void oom_score_raise(const struct oom_score *oom);
void oom_score_restore(const struct oom_score *oom);

/* Called in a child: from now on its memory counts as the sandbox's. 0 or -errno. */
int oom_score_join_work(const struct oom_score *oom) must_check;
