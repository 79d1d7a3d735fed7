/* SPDX-License-Identifier: Apache-2.0 */
/* STAT and READ. */
#include "agent/file.h"
#include "agent/path.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>

int file_stat(struct dialog *dialog, const struct payload_file *request)
{
	auto_fd int fd = path_open(AT_FDCWD, request->path, O_PATH | O_NOFOLLOW, 0);
	char target[PATH_MAX] = "";
	struct stat stat;

	if (fd < 0)
		return fd;
	if (fstat(fd, &stat) < 0)
		return -errno;
	if (S_ISLNK(stat.st_mode))
		path_read_link(fd, "", target);
	dialog_put_answer(dialog, &stat, 0, target);
	return 0;
}

int file_read(struct dialog *dialog, const struct payload_file *request)
{
	struct stat stat;
	auto_fd int fd = path_open_regular(AT_FDCWD, request->path, 0, 0, &stat);
	uint64_t offset, len, sent;

	if (fd < 0)
		return fd;
	dialog_put_answer(dialog, &stat, 0, "");
	if (dialog_read_u64(dialog, &offset) < 0 || dialog_read_u64(dialog, &len) < 0)
		return 0;
	/* Whatever goes wrong now, a channel that ends early is the only way to say it. */
	if (offset <= INT64_MAX && dialog_send_file(dialog, fd, offset, len, &sent) < 0)
		return 0;
	return 0;
}
