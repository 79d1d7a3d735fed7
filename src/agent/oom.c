/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/oom.h"

#include "base/fd.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define SCORE_OF_WORKLOAD "500"

void oom_open(struct oom *oom)
{
	static const char path[] = "/proc/self/oom_score_adj";

	*oom = (struct oom){.fd = -1};
	if (fd_read_file(AT_FDCWD, path, oom->own, sizeof(oom->own)) <= 0)
		return;
	/* A score that is already as bad must not be bettered. */
	if (atoi(oom->own) >= atoi(SCORE_OF_WORKLOAD))
		return;
	oom->fd = open(path, O_WRONLY | O_CLOEXEC);
}

static void write_score(const struct oom *oom, const char *score)
{
	if (oom->fd >= 0 && pwrite(oom->fd, score, strlen(score), 0) < 0)
		return;
}

void oom_raise(const struct oom *oom)
{
	write_score(oom, SCORE_OF_WORKLOAD);
}

void oom_restore(const struct oom *oom)
{
	write_score(oom, oom->own);
}
