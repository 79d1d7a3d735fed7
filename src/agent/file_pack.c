/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PACK: a tree as a stream of items, in the order of walk.h, so that the same tree always gives the
 * same stream.
 */
#include "agent/file.h"
#include "agent/path.h"
#include "agent/walk.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/statfs.h>
#include <unistd.h>

#define NAMES_MAX      16384
#define SMALL_FILE_MAX (32u * 1024) /* goes through the buffer, to be sent with its neighbours */

/*
 * Files with several names, so that the second name is a link and not a copy. Open addressing,
 * doubled at half full; beyond LINKS_MAX files the rest are packed as copies.
 */
#define LINKS_MIN 64
#define LINKS_MAX 65536

struct link_name {
	dev_t device;
	ino_t inode;
	char *name; /* NULL: a free place */
};

struct packer {
	struct dialog *dialog;
	struct link_name *links;
	size_t link_count;
	size_t link_size;
	char *scratch; /* SMALL_FILE_MAX */
};

static void packer_fini(struct packer *packer)
{
	for (size_t i = 0; i < packer->link_size; i++)
		free(packer->links[i].name);
	free(packer->links);
	free(packer->scratch);
}

static struct link_name *find_place(const struct packer *packer, dev_t device, ino_t inode)
{
	size_t at = (size_t)(inode * 0x9e3779b97f4a7c15u) & (packer->link_size - 1);

	while (packer->links[at].name &&
		(packer->links[at].inode != inode || packer->links[at].device != device))
		at = (at + 1) & (packer->link_size - 1);
	return &packer->links[at];
}

static void grow_links(struct packer *packer)
{
	struct packer bigger = {.link_size = packer->link_size ? packer->link_size * 2 : LINKS_MIN};

	bigger.links = mem_new(bigger.link_size * sizeof(bigger.links[0]));
	for (size_t i = 0; i < packer->link_size; i++) {
		struct link_name *link = &packer->links[i];

		if (link->name)
			*find_place(&bigger, link->device, link->inode) = *link;
	}
	free(packer->links);
	packer->links = bigger.links;
	packer->link_size = bigger.link_size;
}

/* The name under which the file was packed before; NULL if it was not, and is remembered now. */
static const char *known_as(struct packer *packer, const struct stat *stat, const char *name)
{
	struct link_name *place;

	if (stat->st_nlink < 2)
		return NULL;
	if (packer->link_count * 2 >= packer->link_size && packer->link_count < LINKS_MAX)
		grow_links(packer);
	place = find_place(packer, stat->st_dev, stat->st_ino);
	if (place->name)
		return place->name;
	if (packer->link_count < LINKS_MAX) {
		*place = (struct link_name){
			.device = stat->st_dev, .inode = stat->st_ino, .name = mem_strdup(name)};
		packer->link_count++;
	}
	return NULL;
}

static void put_item(struct packer *packer, enum agent_item kind, const struct stat *stat,
	const char *name, const char *target)
{
	struct dialog *dialog = packer->dialog;
	bool is_file = kind == AGENT_ITEM_FILE;

	dialog_put_u8(dialog, (uint8_t)kind);
	dialog_put_u32(dialog, stat->st_mode & 07777);
	dialog_put_u32(dialog, stat->st_uid);
	dialog_put_u32(dialog, stat->st_gid);
	dialog_put_u64(dialog,
		(uint64_t)stat->st_mtim.tv_sec * 1000000000 + (uint64_t)stat->st_mtim.tv_nsec);
	dialog_put_u64(dialog, is_file ? (uint64_t)stat->st_size : 0);
	dialog_put_str(dialog, name);
	dialog_put_str(dialog, target);
}

static void put_zeros(struct packer *packer, uint64_t len)
{
	memset(packer->scratch, 0, SMALL_FILE_MAX);
	while (len > 0 && packer->dialog->failure == 0) {
		size_t n = len < SMALL_FILE_MAX ? (size_t)len : SMALL_FILE_MAX;

		dialog_put(packer->dialog, packer->scratch, n);
		len -= n;
	}
}

/* Exactly size bytes of the file, or of zeros where it ends before. */
static int put_content(struct packer *packer, int fd, uint64_t size)
{
	uint64_t sent = 0;
	int r = 0;

	if (size > SMALL_FILE_MAX) {
		r = dialog_send_file(packer->dialog, fd, 0, size, &sent);
	} else {
		while (sent < size) {
			ssize_t n = pread(fd, packer->scratch, size - sent, (off_t)sent);

			if (n < 0)
				return -errno;
			if (n == 0)
				break;
			dialog_put(packer->dialog, packer->scratch, (size_t)n);
			sent += (uint64_t)n;
		}
	}
	if (r < 0 && r != -ENODATA)
		return r;
	put_zeros(packer, size - sent);
	return packer->dialog->failure;
}

static int pack_file(struct packer *packer, int dir, const char *name, int flags, const char *path)
{
	struct stat stat;
	auto_fd int fd = path_open_regular(dir, name, flags, 0, &stat);
	const char *known;

	if (fd < 0)
		return 0;
	known = known_as(packer, &stat, path);
	if (known) {
		put_item(packer, AGENT_ITEM_HARDLINK, &stat, path, known);
		return 0;
	}
	put_item(packer, AGENT_ITEM_FILE, &stat, path, "");
	return put_content(packer, fd, (uint64_t)stat.st_size);
}

/* What the kernel makes up is no part of anybody's tree. */
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
	return packer->dialog->failure;
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

int file_pack(struct dialog *dialog, const struct payload_file *request)
{
	auto_(packer_fini) struct packer packer = {.dialog = dialog};
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
	dialog_put_answer(dialog, &stat, 0, "");
	if (S_ISDIR(stat.st_mode))
		r = pack_tree(&packer, fd, stat.st_dev);
	else
		r = pack_file(&packer, AT_FDCWD, request->path, 0, strrchr(request->path, '/') + 1);
	if (r < 0)
		return 0;
	put_item(&packer, AGENT_ITEM_END, &(struct stat){0}, "", "");
	return 0;
}
