/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/file.h"

#include "base/fd.h"
#include "wire/agent.h"

#include <errno.h>

static int (*const operations[])(struct dialog *, const struct payload_file *) = {
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
};

void file_serve(struct dialog *dialog, const void *arg)
{
	const struct payload_file *request = arg;
	int r = request->path[0] == '/' ? operations[request->op](dialog, request) : -EINVAL;

	if (r < 0)
		dialog_put_failure(dialog, -r, "");
}

void file_refuse(int channel, int errnum)
{
	struct dialog dialog;

	dialog_init(&dialog, channel);
	dialog_put_failure(&dialog, errnum, "");
	/* A new channel has room for one answer; if not, its end is answer enough. */
	if (fd_set_nonblocking(channel) == 0 && dialog_flush(&dialog) < 0)
		errno = 0;
	dialog_fini(&dialog);
}
