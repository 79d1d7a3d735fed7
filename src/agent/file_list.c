/* SPDX-License-Identifier: Apache-2.0 */
/* LIST: one page of what is below a directory. */
#include "agent/file.h"
#include "agent/path.h"
#include "agent/walk.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>

/* Whoever asks for more gets a shorter page and is told that there is more. */
#define LIMIT_MAX 16384u

static void put_entry(struct channel *channel, const struct walk_entry *entry)
{
	char target[PATH_MAX] = "";

	if (S_ISLNK(entry->stat.st_mode))
		path_read_link(entry->dir, entry->name, target);
	channel_put_u8(channel, 1);
	channel_put_str(channel, entry->path);
	channel_put_answer(channel, &entry->stat, 0, target);
}

int file_list(struct channel *channel, const struct request_file *request)
{
	auto_fd int root = path_open(AT_FDCWD, request->path, O_PATH | O_DIRECTORY, 0);
	uint32_t limit = request->limit < LIMIT_MAX ? request->limit : LIMIT_MAX;
	auto_(walk_close) struct walk walk = {.dir = -1};
	struct walk_entry entry;
	struct stat stat;
	int r;

	if (root < 0)
		return root;
	if (request->depth < 1)
		return -EINVAL;
	if (fstat(root, &stat) < 0)
		return -errno;
	/* One name more than the page, to know whether there is more. */
	r = walk_open(&walk, root, request->depth, (size_t)limit + 1, request->after);
	if (r < 0)
		return r;
	channel_put_answer(channel, &stat, 0, "");
	for (uint32_t i = 0; (r = walk_next(&walk, &entry)) > 0 && i < limit; i++) {
		put_entry(channel, &entry);
		if (channel->failure < 0)
			return 0;
	}
	if (r < 0)
		return 0;
	channel_put_u8(channel, 0);
	channel_put_u8(channel, r > 0);
	return 0;
}
