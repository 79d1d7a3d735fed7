/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/process/oom_score.h"

#include "base/fd.h"

#include <fcntl.h>
#include <unistd.h>

int oom_score_open_own(void)
{
	auto_fd int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
	char text[16] = "";

	/* Written with privileges it is also the least that the sandbox can set. */
	if (fd >= 0 && pread(fd, text, sizeof(text) - 1, 0) > 0 && text[0] == '-' &&
		pwrite(fd, "0", 1, 0) < 0)
		return -1;
	return take_fd(&fd);
}
