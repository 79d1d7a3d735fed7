/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PACK: a tree as a stream of items, in the order of walk.h, so that the same tree always gives the
 * same stream.
 */
#include "agent/files/link_names.h"
#include "agent/files/path.h"
#include "agent/files/request/file.h"
#include "agent/files/walk.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/statfs.h>
#include <unistd.h>

#define NAMES_MAX      16384
#define SMALL_FILE_MAX (32u * 1024) /* goes through the buffer, to be sent with others */

struct packer {
	struct helper_io *helper_io;
	struct link_names links;
	char *scratch; /* SMALL_FILE_MAX */
};

static void packer_fini(struct packer *packer)
{
	link_names_fini(&packer->links);
	free(packer->scratch);
}

static void put_item(struct packer *packer, enum agent_item kind, const struct stat *stat,
	const char *name, const char *target)
{
	struct helper_io *helper_io = packer->helper_io;
	bool is_file = kind == AGENT_ITEM_FILE;

	helper_io_put_u8(helper_io, (uint8_t)kind);
	helper_io_put_u32(helper_io, stat->st_mode & 07777);
	helper_io_put_u32(helper_io, stat->st_uid);
	helper_io_put_u32(helper_io, stat->st_gid);
	helper_io_put_u64(helper_io,
		(uint64_t)stat->st_mtim.tv_sec * 1000000000 + (uint64_t)stat->st_mtim.tv_nsec);
	helper_io_put_u64(helper_io, is_file ? (uint64_t)stat->st_size : 0);
	helper_io_put_str(helper_io, name);
	helper_io_put_str(helper_io, target);
}

static void put_zeros(struct packer *packer, uint64_t len)
{
	memset(packer->scratch, 0, SMALL_FILE_MAX);
	while (len > 0 && packer->helper_io->failure == 0) {
		size_t n = len < SMALL_FILE_MAX ? (size_t)len : SMALL_FILE_MAX;

		helper_io_put(packer->helper_io, packer->scratch, n);
		len -= n;
	}
}

/* Sends exactly size bytes of the file, or zeros where it ends before. */
static int put_content(struct packer *packer, int fd, uint64_t size)
{
	uint64_t sent = 0;
	int r = 0;

	if (size > SMALL_FILE_MAX) {
		r = helper_io_send_file(packer->helper_io, fd, 0, size, &sent);
	} else {
		while (sent < size) {
			ssize_t n = pread(fd, packer->scratch, size - sent, (off_t)sent);

			if (n < 0)
				return -errno;
			if (n == 0)
				break;
			helper_io_put(packer->helper_io, packer->scratch, (size_t)n);
			sent += (uint64_t)n;
		}
	}
	if (r < 0 && r != -ENODATA)
		return r;
	put_zeros(packer, size - sent);
	return packer->helper_io->failure;
}

static int pack_file(struct packer *packer, int dir, const char *name, int flags, const char *path)
{
	struct stat stat;
	auto_fd int fd = path_open_regular(dir, name, flags, 0, &stat);
	const char *known;

	if (fd < 0)
		return 0;
	known = link_names_meet(&packer->links, &stat, path);
	if (known) {
		put_item(packer, AGENT_ITEM_HARDLINK, &stat, path, known);
		return 0;
	}
	put_item(packer, AGENT_ITEM_FILE, &stat, path, "");
	return put_content(packer, fd, (uint64_t)stat.st_size);
}

/* Files of the kernel, such as those of procfs, are not packed. */
static bool is_made_up(int dir, const char *name)
{
	static const uint32_t kinds[] = {PROC_SUPER_MAGIC, SYSFS_MAGIC, DEVPTS_SUPER_MAGIC,
		CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC};
	auto_fd int fd = path_open(dir, name, O_PATH | O_NOFOLLOW, 0);
	struct statfs fs;

	if (fd < 0 || fstatfs(fd, &fs) < 0)
		return false;
	for (size_t i = 0; i < array_len(kinds); i++) {
		if ((uint32_t)fs.f_type == kinds[i])
			return true;
	}
	return false;
}

static int pack_entry(
	struct packer *packer, struct walk *walk, const struct walk_entry *entry, dev_t device)
{
	char target[PATH_MAX];

	switch (entry->stat.st_mode & S_IFMT) {
	case S_IFREG:
		return pack_file(packer, entry->dir, entry->name, O_NOFOLLOW, entry->path);
	case S_IFDIR:
		put_item(packer, AGENT_ITEM_DIRECTORY, &entry->stat, entry->path, "");
		if (entry->stat.st_dev != device && is_made_up(entry->dir, entry->name))
			walk_prune(walk);
		break;
	case S_IFLNK:
		path_read_link(entry->dir, entry->name, target);
		if (target[0])
			put_item(packer, AGENT_ITEM_SYMLINK, &entry->stat, entry->path, target);
		break;
	}
	return packer->helper_io->failure;
}

static int pack_tree(struct packer *packer, int root, dev_t device)
{
	auto_(walk_close) struct walk walk = {.dir = -1};
	struct walk_entry entry;
	int r = walk_open(&walk, root, SIZE_MAX, NAMES_MAX, "");

	while (r == 0 && (r = walk_next(&walk, &entry)) > 0)
		r = pack_entry(packer, &walk, &entry, device);
	return r;
}

int file_pack(struct helper_io *helper_io, const struct payload_file *request)
{
	auto_(packer_fini) struct packer packer = {.helper_io = helper_io};
	auto_fd int fd = path_open(AT_FDCWD, request->path, O_PATH, 0);
	struct stat stat;
	int r;

	if (fd < 0)
		return fd;
	if (fstat(fd, &stat) < 0)
		return -errno;
	if (!S_ISDIR(stat.st_mode) && !S_ISREG(stat.st_mode))
		return -EINVAL;
	packer.scratch = mem_new(SMALL_FILE_MAX);
	helper_io_put_answer(helper_io, &stat, 0, "");
	if (S_ISDIR(stat.st_mode))
		r = pack_tree(&packer, fd, stat.st_dev);
	else
		r = pack_file(&packer, AT_FDCWD, request->path, 0, strrchr(request->path, '/') + 1);
	if (r < 0)
		return 0;
	put_item(&packer, AGENT_ITEM_END, &(struct stat){0}, "", "");
	return 0;
}
