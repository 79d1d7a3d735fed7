/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/files/request/file.h"

#include "base/fd.h"
#include "wire/agent.h"

#include <errno.h>

static int (*const operations[])(struct helper_io *, const struct payload_file *) = {
	[AGENT_FILE_STAT] = file_stat,
	[AGENT_FILE_READ] = file_read,
	[AGENT_FILE_WRITE] = file_write,
	[AGENT_FILE_LIST] = file_list,
	[AGENT_FILE_MKDIR] = file_mkdir,
	[AGENT_FILE_MOVE] = file_move,
	[AGENT_FILE_REMOVE] = file_remove,
	[AGENT_FILE_PACK] = file_pack,
	[AGENT_FILE_UNPACK] = file_unpack,
	[AGENT_FILE_WATCH] = file_watch,
	[AGENT_FILE_PREPARE] = file_prepare,
};

void file_serve(struct helper_io *helper_io, const void *arg)
{
	const struct payload_file *request = arg;
	int r = request->path[0] == '/' ? operations[request->op](helper_io, request) : -EINVAL;

	if (r < 0)
		helper_io_put_failure(helper_io, -r, "");
}

void file_refuse(int channel, int errnum)
{
	struct helper_io helper_io;

	helper_io_init(&helper_io, channel);
	helper_io_put_failure(&helper_io, errnum, "");
	/* A new channel has room for one answer; if not, its end is answer enough. */
	if (fd_set_nonblocking(channel) == 0 && helper_io_flush(&helper_io) < 0)
		errno = 0;
	helper_io_fini(&helper_io);
}
