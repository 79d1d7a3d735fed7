/* SPDX-License-Identifier: Apache-2.0 */
#include "base/disk_room.h"

#include "base/fd.h"

int disk_room_check(int dir_fd, uint64_t reserve, uint64_t more, struct err *err)
{
	uint64_t free = fd_free_bytes(dir_fd);

	if (free >= reserve && free - reserve >= more)
		return 0;
	return err_explain(err, ERR_NO_SPACE, NULL,
		"purge workspaces that nobody needs, or make the file system of the data directory "
		"larger",
		"the disk of the host is full: %llu MiB are free, and %llu MiB are kept as reserve",
		(unsigned long long)(free >> 20), (unsigned long long)(reserve >> 20));
}
