/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/files/layer/tree_reader.h"

#include "agent/files/helper_io.h"
#include "agent/files/layer/tree_compare.h"
#include "agent/files/link_names.h"
#include "agent/files/path.h"
#include "agent/files/walk.h"
#include "base/fd.h"
#include "wire/layer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#define NAMES_MAX	 16384
#define OVERLAY_PREFIX	 "user.overlay." /* the overlay's own notes */
#define OPAQUE_XATTR	 OVERLAY_PREFIX "opaque"
#define XATTR_LIST_MAX	 65536
#define XATTRS_MAX	 64
#define ITEM_IS_DEVICE_0 0 /* st_rdev of a whiteout */

struct tree_reader {
	struct helper_io io;
	struct link_names links;
	enum tree_reader_form form;
	struct tree_compare compare; /* of changes */
	enum layer_below below;	     /* of the item that comes next */
	uint8_t *piece;		     /* LAYER_PIECE_MAX bytes */
};

/* The attributes of a file that are its user's own. */
struct attributes {
	int fd;
	char list[XATTR_LIST_MAX];
	const char *names[XATTRS_MAX];
	uint32_t count;
};

static uint64_t to_ns(struct timespec time)
{
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void read_attributes(struct attributes *attributes, int fd)
{
	ssize_t len = fd < 0 ? 0 : flistxattr(fd, attributes->list, sizeof(attributes->list));

	attributes->fd = fd;
	attributes->count = 0;
	for (const char *name = attributes->list;
		name < attributes->list + len && attributes->count < XATTRS_MAX;
		name += strlen(name) + 1) {
		if (strncmp(name, "user.", 5) == 0 &&
			strncmp(name, OVERLAY_PREFIX, strlen(OVERLAY_PREFIX)) != 0 &&
			strlen(name) < LAYER_XATTR_NAME_MAX)
			attributes->names[attributes->count++] = name;
	}
}

static void put_attributes(struct tree_reader *reader, const struct attributes *attributes)
{
	uint32_t count = attributes ? attributes->count : 0;

	helper_io_put_u32(&reader->io, count);
	for (uint32_t i = 0; i < count; i++) {
		const char *name = attributes->names[i];
		ssize_t len = fgetxattr(attributes->fd, name, reader->piece, LAYER_VALUE_MAX);

		helper_io_put_str(&reader->io, name);
		helper_io_put_u32(&reader->io, len < 0 ? 0 : (uint32_t)len);
		helper_io_put(&reader->io, reader->piece, len < 0 ? 0 : (size_t)len);
	}
}

static void put_item(struct tree_reader *reader, enum layer_item kind, const struct stat *stat,
	const char *name, const char *target, const struct attributes *attributes)
{
	struct helper_io *io = &reader->io;

	helper_io_put_u8(io, (uint8_t)kind);
	helper_io_put_u32(io, stat->st_mode & 07777);
	helper_io_put_u32(io, stat->st_uid);
	helper_io_put_u32(io, stat->st_gid);
	helper_io_put_u64(io, to_ns(stat->st_mtim));
	helper_io_put_u64(io, (uint64_t)stat->st_size);
	helper_io_put_str(io, name);
	helper_io_put_str(io, target);
	put_attributes(reader, attributes);
	if (reader->form == TREE_READER_CONTENT || kind == LAYER_ITEM_END ||
		kind == LAYER_ITEM_FAILED)
		return;
	helper_io_put_u64(io, stat->st_ino);
	helper_io_put_u64(io, to_ns(stat->st_ctim));
	if (reader->form == TREE_READER_CHANGES)
		helper_io_put_u8(io, (uint8_t)reader->below);
}

/* Sends what is between two offsets, as long as the file has it. */
static int put_range(struct tree_reader *reader, int fd, off_t from, off_t to)
{
	while (from < to) {
		size_t want =
			to - from < (off_t)LAYER_PIECE_MAX ? (size_t)(to - from) : LAYER_PIECE_MAX;
		ssize_t n = pread(fd, reader->piece, want, from);

		if (n < 0)
			return -errno;
		if (n == 0)
			return 0;
		helper_io_put_u64(&reader->io, (uint64_t)from);
		helper_io_put_u32(&reader->io, (uint32_t)n);
		helper_io_put(&reader->io, reader->piece, (size_t)n);
		if (reader->io.failure < 0)
			return reader->io.failure;
		from += n;
	}
	return 0;
}

static int put_content(struct tree_reader *reader, int fd, off_t size)
{
	off_t data, hole = 0;
	int r = 0;

	while (r == 0 && hole < size && (data = lseek(fd, hole, SEEK_DATA)) >= 0 && data < size) {
		hole = lseek(fd, data, SEEK_HOLE);
		if (hole < 0)
			return -errno;
		r = put_range(reader, fd, data, hole < size ? hole : size);
	}
	helper_io_put_u64(&reader->io, 0);
	helper_io_put_u32(&reader->io, 0);
	return r < 0 ? r : reader->io.failure;
}

/* Notes the names of a file that has several; true: it was told under another one. */
static bool put_hardlink(
	struct tree_reader *reader, const struct walk_entry *entry, const struct stat *stat)
{
	const char *known = link_names_meet(&reader->links, stat, entry->path);

	if (known)
		put_item(reader, LAYER_ITEM_HARDLINK, stat, entry->path, known, NULL);
	return known;
}

static int put_file(struct tree_reader *reader, const struct walk_entry *entry)
{
	struct attributes attributes;
	struct stat stat;
	auto_fd int fd = path_open_regular(entry->dir, entry->name, O_NOFOLLOW, 0, &stat);

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	if (put_hardlink(reader, entry, &stat))
		return 0;
	read_attributes(&attributes, fd);
	put_item(reader, LAYER_ITEM_FILE, &stat, entry->path, "", &attributes);
	return put_content(reader, fd, stat.st_size);
}

/* Without content nobody asks for attributes either, so the file is not opened: that takes most of the time. */
static int put_file_name(struct tree_reader *reader, const struct walk_entry *entry)
{
	if (!put_hardlink(reader, entry, &entry->stat))
		put_item(reader, LAYER_ITEM_FILE, &entry->stat, entry->path, "", NULL);
	return 0;
}

static int put_directory(struct tree_reader *reader, int dir, const char *name,
	const struct stat *stat, const char *path)
{
	struct attributes attributes;
	auto_fd int fd = path_open(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	char value;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	read_attributes(&attributes, fd);
	put_item(reader, LAYER_ITEM_DIRECTORY, stat, path, "", &attributes);
	if (reader->form == TREE_READER_CHANGES)
		return 0;
	if (fgetxattr(fd, OPAQUE_XATTR, &value, 1) == 1 && value == 'y')
		put_item(reader, LAYER_ITEM_OPAQUE, stat, path, "", NULL);
	return 0;
}

/* Sockets and devices are left out: a sandbox could not have made a device that leads anywhere. */
static int put_entry(struct tree_reader *reader, const struct walk_entry *entry)
{
	const struct stat *stat = &entry->stat;
	char target[PATH_MAX];

	switch (stat->st_mode & S_IFMT) {
	case S_IFREG:
		return reader->form == TREE_READER_CONTENT ? put_file(reader, entry)
							   : put_file_name(reader, entry);
	case S_IFDIR:
		return put_directory(reader, entry->dir, entry->name, stat, entry->path);
	case S_IFLNK:
		path_read_link(entry->dir, entry->name, target);
		put_item(reader, LAYER_ITEM_SYMLINK, stat, entry->path, target, NULL);
		return 0;
	case S_IFIFO:
		put_item(reader, LAYER_ITEM_FIFO, stat, entry->path, "", NULL);
		return 0;
	case S_IFCHR:
		if (stat->st_rdev == ITEM_IS_DEVICE_0)
			put_item(reader, LAYER_ITEM_WHITEOUT, stat, entry->path, "", NULL);
		return 0;
	}
	return 0;
}

/* --- changes --- */

/* A name that is below and not here any more. */
static int put_hidden(struct tree_reader *reader, const char *path)
{
	struct stat stat;
	int r = tree_compare_find(&reader->compare, path, &stat);

	reader->below = LAYER_BELOW_OTHER;
	if (r > 0)
		put_item(reader, LAYER_ITEM_WHITEOUT, &stat, path, "", NULL);
	return r < 0 ? r : 0;
}

/* What directories hide and comes before a path; NULL: all the rest. */
static int put_hidden_before(struct tree_reader *reader, const char *before)
{
	char path[AGENT_PATH_MAX];
	int r = 0;

	while (r == 0 && tree_compare_next(&reader->compare, before, path, sizeof(path)))
		r = put_hidden(reader, path);
	return r;
}

static enum layer_below judge(const struct stat *upper, const struct stat *below)
{
	return S_ISDIR(upper->st_mode) && upper->st_mode == below->st_mode &&
			       upper->st_uid == below->st_uid && upper->st_gid == below->st_gid
		       ? LAYER_BELOW_SAME
		       : LAYER_BELOW_OTHER;
}

static int put_change(struct tree_reader *reader, const struct walk_entry *entry)
{
	struct stat below;
	int r = put_hidden_before(reader, entry->path), found;

	if (r < 0)
		return r;
	if (S_ISCHR(entry->stat.st_mode))
		return put_hidden(reader, entry->path);
	found = tree_compare_find(&reader->compare, entry->path, &below);
	if (found < 0)
		return found;
	reader->below = found ? judge(&entry->stat, &below) : LAYER_BELOW_NONE;
	r = put_entry(reader, entry);
	if (r == 0 && found && S_ISDIR(entry->stat.st_mode) && S_ISDIR(below.st_mode))
		r = tree_compare_enter(&reader->compare, entry->path);
	return r;
}

static int put_next(struct tree_reader *reader, const struct walk_entry *entry)
{
	return reader->form == TREE_READER_CHANGES ? put_change(reader, entry)
						   : put_entry(reader, entry);
}

/* --- the whole --- */

static int put_tree(struct tree_reader *reader, char failed[LAYER_NAME_MAX])
{
	auto_fd int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_(walk_close) struct walk walk = {.dir = -1};
	struct walk_entry entry;
	struct stat stat;
	int r;

	if (root < 0 || fstat(root, &stat) < 0)
		return -errno;
	reader->below = LAYER_BELOW_SAME;
	reader->compare = (struct tree_compare){
		.upper = root, .below = LAYER_BELOW_FD, .merged = LAYER_MERGED_FD};
	if ((r = put_directory(reader, root, ".", &stat, "")) < 0 ||
		(r = walk_open(&walk, root, SIZE_MAX, NAMES_MAX, "")) < 0)
		return r;
	while ((r = walk_next(&walk, &entry)) > 0) {
		r = put_next(reader, &entry);
		if (r == 0)
			r = reader->io.failure;
		if (r < 0) {
			memcpy(failed, entry.path, strlen(entry.path) + 1);
			return r;
		}
	}
	return r < 0 ? r : put_hidden_before(reader, NULL);
}

int tree_reader_run(int stream_fd, enum tree_reader_form form)
{
	struct tree_reader reader = {.form = form};
	char failed[LAYER_NAME_MAX] = "";
	int r;

	helper_io_init(&reader.io, stream_fd);
	reader.piece = mem_new(LAYER_PIECE_MAX);
	r = put_tree(&reader, failed);
	put_item(&reader, r < 0 ? LAYER_ITEM_FAILED : LAYER_ITEM_END,
		&(struct stat){.st_size = r < 0 ? -r : 0}, failed, "", NULL);
	r = helper_io_flush(&reader.io);
	link_names_fini(&reader.links);
	tree_compare_fini(&reader.compare);
	helper_io_fini(&reader.io);
	free(reader.piece);
	return r < 0;
}
