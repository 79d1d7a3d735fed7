/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/machine/oom_score.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define SCORE_OF_WORKLOAD "500"

void oom_score_open(struct oom_score *oom, int score_fd, int work_fd)
{
	if (score_fd < 0)
		score_fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
	*oom = (struct oom_score){.fd = score_fd, .work_fd = work_fd};
	/* A score that is already as high must not be lowered. */
	if (score_fd >= 0 && (pread(score_fd, oom->own, sizeof(oom->own) - 1, 0) <= 0 ||
				     atoi(oom->own) >= atoi(SCORE_OF_WORKLOAD)))
		fd_close(take_fd(&oom->fd));
}

static void write_score(const struct oom_score *oom, const char *score)
{
	if (oom->fd >= 0 && pwrite(oom->fd, score, strlen(score), 0) < 0)
		return;
}

void oom_score_raise(const struct oom_score *oom)
{
	write_score(oom, SCORE_OF_WORKLOAD);
}

void oom_score_restore(const struct oom_score *oom)
{
	write_score(oom, oom->own);
}

int oom_score_join_work(const struct oom_score *oom)
{
	return oom->work_fd >= 0 && write(oom->work_fd, "0", 1) < 0 ? -errno : 0;
}
