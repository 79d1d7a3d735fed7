/* SPDX-License-Identifier: Apache-2.0 */
/* LIST: one page of what is below a directory. */
#include "agent/files/path.h"
#include "agent/files/request/file.h"
#include "agent/files/walk.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>

/* A client that asks for more gets a shorter page, which says that there is more. */
#define LIMIT_MAX 16384u

static void put_entry(struct helper_io *helper_io, const struct walk_entry *entry)
{
	char target[PATH_MAX] = "";

	if (S_ISLNK(entry->stat.st_mode))
		path_read_link(entry->dir, entry->name, target);
	helper_io_put_u8(helper_io, 1);
	helper_io_put_str(helper_io, entry->path);
	helper_io_put_answer(helper_io, &entry->stat, 0, target);
}

int file_list(struct helper_io *helper_io, const struct payload_file *request)
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
	helper_io_put_answer(helper_io, &stat, 0, "");
	for (uint32_t i = 0; (r = walk_next(&walk, &entry)) > 0 && i < limit; i++) {
		put_entry(helper_io, &entry);
		if (helper_io->failure < 0)
			return 0;
	}
	if (r < 0)
		return 0;
	helper_io_put_u8(helper_io, 0);
	helper_io_put_u8(helper_io, r > 0);
	return 0;
}
