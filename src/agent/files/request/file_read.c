/* SPDX-License-Identifier: Apache-2.0 */
/* STAT and READ. */
#include "agent/files/path.h"
#include "agent/files/request/file.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>

int file_stat(struct helper_io *helper_io, const struct payload_file *request)
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
	helper_io_put_answer(helper_io, &stat, 0, target);
	return 0;
}

int file_read(struct helper_io *helper_io, const struct payload_file *request)
{
	struct stat stat;
	auto_fd int fd = path_open_regular(AT_FDCWD, request->path, 0, 0, &stat);
	uint64_t offset, len, sent;

	if (fd < 0)
		return fd;
	helper_io_put_answer(helper_io, &stat, 0, "");
	if (helper_io_read_u64(helper_io, &offset) < 0 || helper_io_read_u64(helper_io, &len) < 0)
		return 0;
	/* Whatever goes wrong now, a channel that ends early is the only way to say it. */
	if (offset <= INT64_MAX && helper_io_send_file(helper_io, fd, offset, len, &sent) < 0)
		return 0;
	return 0;
}
