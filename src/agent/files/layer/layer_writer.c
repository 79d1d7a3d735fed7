/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Overlayfs reads what is written here: a device 0/0 hides a name of the layers below, and an
 * attribute makes a directory opaque. It is the attribute of unprivileged mounts (`userxattr`),
 * since root of a user namespace can set no other; the keeper mounts stacks of layers accordingly.
 *
 * Times of directories are set at the end: each file that is made in one changes its time.
 */
#include "agent/files/layer/layer_writer.h"

#include "agent/files/helper_io.h"
#include "agent/files/path.h"
#include "base/fd.h"
#include "wire/layer.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#define RESOLVE_STRICT (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS)
#define OPAQUE_XATTR   "user.overlay.opaque"
#define TIMES_MAX      (64u << 20) /* bytes of notes on directories */

struct item {
	uint8_t kind; /* enum layer_item */
	uint32_t mode, uid, gid;
	uint64_t mtime_ns, size;
	uint32_t xattr_count;
	char name[LAYER_NAME_MAX];
	char target[LAYER_NAME_MAX];
};

struct layer_writer {
	struct helper_io io;
	int root;
	int dir; /* that the last item was in, since the next is mostly in the same; -1: none yet */
	char dirs[LAYER_NAME_MAX];
	struct buf times; /* of directories: u64 mtime_ns, name with its NUL */
	uint8_t *piece;
};

static int read_item(struct layer_writer *writer, struct item *item)
{
	struct helper_io *io = &writer->io;
	int r;

	if ((r = helper_io_read_u8(io, &item->kind)) < 0 ||
		(r = helper_io_read_u32(io, &item->mode)) < 0 ||
		(r = helper_io_read_u32(io, &item->uid)) < 0 ||
		(r = helper_io_read_u32(io, &item->gid)) < 0 ||
		(r = helper_io_read_u64(io, &item->mtime_ns)) < 0 ||
		(r = helper_io_read_u64(io, &item->size)) < 0 ||
		(r = helper_io_read_str(io, item->name, sizeof(item->name))) < 0 ||
		(r = helper_io_read_str(io, item->target, sizeof(item->target))) < 0 ||
		(r = helper_io_read_u32(io, &item->xattr_count)) < 0)
		return r;
	item->mode &= 07777;
	return 0;
}

static int open_beneath(const struct layer_writer *writer, const char *dirs)
{
	return path_open(
		writer->root, dirs[0] ? dirs : ".", O_RDONLY | O_DIRECTORY, RESOLVE_STRICT);
}

/* Makes these directories the present one. A layer may leave out the directories above a file. */
static int enter(struct layer_writer *writer, const char *dirs)
{
	int dir;

	if (writer->dir >= 0 && strcmp(dirs, writer->dirs) == 0)
		return 0;
	dir = open_beneath(writer, dirs);
	if (dir == -ENOENT)
		dir = path_make_dirs(writer->root, dirs, RESOLVE_STRICT, 0);
	if (dir < 0)
		return dir;
	fd_close(writer->dir);
	writer->dir = dir;
	strcpy(writer->dirs, dirs);
	return 0;
}

/* Cuts a name into its directories and its last part, which is "" for the root itself. */
static void split(const char *name, char dirs[LAYER_NAME_MAX], const char **ret_leaf)
{
	const char *slash = strrchr(name, '/');
	size_t len = slash ? (size_t)(slash - name) : 0;

	memcpy(dirs, name, len);
	dirs[len] = '\0';
	*ret_leaf = slash ? slash + 1 : name;
}

/* A later item takes the place of an earlier one, but not that of a directory with something in it. */
static int make_room(const struct layer_writer *writer, const char *leaf)
{
	if (unlinkat(writer->dir, leaf, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno == EISDIR && unlinkat(writer->dir, leaf, AT_REMOVEDIR) == 0)
		return 0;
	return -errno;
}

static struct timespec time_of(uint64_t ns)
{
	return (struct timespec){
		.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
}

/* Owner before mode: a change of the owner clears the set-uid bits. */
static int adorn(const struct layer_writer *writer, const struct item *item, const char *leaf)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, time_of(item->mtime_ns)};

	if (fchownat(writer->dir, leaf, item->uid, item->gid, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (item->kind != LAYER_ITEM_SYMLINK && fchmodat(writer->dir, leaf, item->mode, 0) < 0)
		return -errno;
	return utimensat(writer->dir, leaf, times, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int read_xattrs(struct layer_writer *writer, const struct item *item, int fd)
{
	for (uint32_t i = 0; i < item->xattr_count; i++) {
		char name[LAYER_XATTR_NAME_MAX];
		uint32_t len;
		int r;

		if ((r = helper_io_read_str(&writer->io, name, sizeof(name))) < 0 ||
			(r = helper_io_read_u32(&writer->io, &len)) < 0)
			return r;
		if (len > LAYER_VALUE_MAX || strncmp(name, "user.", 5) != 0 || fd < 0)
			return -EPROTO;
		r = helper_io_read(&writer->io, writer->piece, len);
		if (r < 0)
			return r;
		if (fsetxattr(fd, name, writer->piece, len, 0) < 0 && errno != EOPNOTSUPP)
			return -errno;
	}
	return 0;
}

/* Pieces with holes between them. */
static int write_content(struct layer_writer *writer, const struct item *item, int fd)
{
	while (true) {
		uint64_t offset;
		uint32_t len;
		int r;

		if ((r = helper_io_read_u64(&writer->io, &offset)) < 0 ||
			(r = helper_io_read_u32(&writer->io, &len)) < 0)
			return r;
		if (len == 0)
			return ftruncate(fd, (off_t)item->size) < 0 ? -errno : 0;
		if (len > LAYER_PIECE_MAX || offset > item->size || len > item->size - offset)
			return -EPROTO;
		r = helper_io_read(&writer->io, writer->piece, len);
		if (r < 0)
			return r;
		for (uint32_t done = 0; done < len;) {
			ssize_t n = pwrite(
				fd, writer->piece + done, len - done, (off_t)(offset + done));

			if (n < 0)
				return -errno;
			done += (uint32_t)n;
		}
	}
}

static int write_file(struct layer_writer *writer, const struct item *item, const char *leaf)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	auto_fd int fd = openat(writer->dir, leaf, flags, 0600);
	int r;

	if (fd < 0 && errno == EEXIST && (r = make_room(writer, leaf)) == 0)
		fd = openat(writer->dir, leaf, flags, 0600);
	if (fd < 0)
		return -errno;
	if ((r = read_xattrs(writer, item, fd)) < 0 || (r = write_content(writer, item, fd)) < 0)
		return r;
	return adorn(writer, item, leaf);
}

/* Its time is set when the layer is whole. A note that finds no room is left out. */
static void note_time(struct layer_writer *writer, const struct item *item)
{
	buf_append(&writer->times, &item->mtime_ns, sizeof(item->mtime_ns));
	buf_append(&writer->times, item->name, strlen(item->name) + 1);
}

static int write_directory(struct layer_writer *writer, const struct item *item, const char *leaf)
{
	auto_fd int fd = -1;
	int r;

	if (leaf[0] && mkdirat(writer->dir, leaf, 0700) < 0) {
		struct stat st;

		if (errno != EEXIST)
			return -errno;
		if (fstatat(writer->dir, leaf, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return -errno;
		if (!S_ISDIR(st.st_mode) &&
			((r = make_room(writer, leaf)) < 0 || mkdirat(writer->dir, leaf, 0700) < 0))
			return r < 0 ? r : -errno;
	}
	fd = path_open(writer->dir, leaf[0] ? leaf : ".", O_RDONLY | O_DIRECTORY, RESOLVE_STRICT);
	if (fd < 0)
		return fd;
	if ((r = read_xattrs(writer, item, fd)) < 0)
		return r;
	if (fchown(fd, item->uid, item->gid) < 0 || fchmod(fd, item->mode) < 0)
		return -errno;
	note_time(writer, item);
	return 0;
}

static int write_symlink(struct layer_writer *writer, const struct item *item, const char *leaf)
{
	int r = make_room(writer, leaf);

	if (r == 0 && symlinkat(item->target, writer->dir, leaf) < 0)
		r = -errno;
	return r < 0 ? r : adorn(writer, item, leaf);
}

static int write_hardlink(struct layer_writer *writer, const struct item *item, const char *leaf)
{
	char dirs[LAYER_NAME_MAX];
	const char *target;
	auto_fd int from = -1;
	struct stat old, new;
	int r;

	split(item->target, dirs, &target);
	from = open_beneath(writer, dirs);
	if (from < 0)
		return from;
	if (fstatat(from, target, &old, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (S_ISDIR(old.st_mode))
		return -EINVAL;
	/* A link to itself must not remove the only name there is. */
	if (fstatat(writer->dir, leaf, &new, AT_SYMLINK_NOFOLLOW) == 0 &&
		new.st_dev == old.st_dev &&new.st_ino == old.st_ino)
		return 0;
	r = make_room(writer, leaf);
	if (r == 0 && linkat(from, target, writer->dir, leaf, 0) < 0)
		r = -errno;
	return r;
}

static int write_node(struct layer_writer *writer, const struct item *item, const char *leaf)
{
	bool is_fifo = item->kind == LAYER_ITEM_FIFO;
	int r = make_room(writer, leaf);

	if (r == 0 && mknodat(writer->dir, leaf, is_fifo ? S_IFIFO | 0600 : S_IFCHR,
			      is_fifo ? 0 : makedev(0, 0)) < 0)
		r = -errno;
	return r == 0 && is_fifo ? adorn(writer, item, leaf) : r;
}

static int write_opaque(struct layer_writer *writer, const struct item *item)
{
	auto_fd int fd = open_beneath(writer, item->name);

	if (fd == -ENOENT)
		fd = path_make_dirs(writer->root, item->name, RESOLVE_STRICT, 0);
	if (fd >= 0) {
		fd_close(fd);
		fd = open_beneath(writer, item->name);
	}
	if (fd < 0)
		return fd;
	return fsetxattr(fd, OPAQUE_XATTR, "y", 1, 0) < 0 ? -errno : 0;
}

static int write_item(struct layer_writer *writer, const struct item *item)
{
	char dirs[LAYER_NAME_MAX];
	const char *leaf;
	int r;

	split(item->name, dirs, &leaf);
	r = enter(writer, dirs);
	if (r < 0)
		return r;
	if (!leaf[0] && item->kind != LAYER_ITEM_DIRECTORY && item->kind != LAYER_ITEM_OPAQUE)
		return -EINVAL;
	switch (item->kind) {
	case LAYER_ITEM_FILE:
		return write_file(writer, item, leaf);
	case LAYER_ITEM_DIRECTORY:
		return write_directory(writer, item, leaf);
	case LAYER_ITEM_SYMLINK:
		return write_symlink(writer, item, leaf);
	case LAYER_ITEM_HARDLINK:
		return write_hardlink(writer, item, leaf);
	case LAYER_ITEM_FIFO:
	case LAYER_ITEM_WHITEOUT:
		return write_node(writer, item, leaf);
	case LAYER_ITEM_OPAQUE:
		return write_opaque(writer, item);
	default:
		return -EPROTO;
	}
}

static void set_times(const struct layer_writer *writer)
{
	for (size_t at = 0; at < writer->times.len;) {
		const char *name = (const char *)writer->times.data + at + sizeof(uint64_t);
		struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}};
		auto_fd int fd = open_beneath(writer, name);
		uint64_t ns;

		memcpy(&ns, writer->times.data + at, sizeof(ns));
		times[1] = time_of(ns);
		if (fd >= 0 && futimens(fd, times) < 0)
			errno = 0;
		at += sizeof(ns) + strlen(name) + 1;
	}
}

static int write_items(struct layer_writer *writer, struct item *item)
{
	while (true) {
		int r = read_item(writer, item);

		if (r == 0 && item->kind == LAYER_ITEM_END)
			break;
		if (r == 0)
			r = write_item(writer, item);
		if (r < 0)
			return r;
	}
	item->name[0] = '\0'; /* a failure from now on is of all together */
	if (!writer->times.failed)
		set_times(writer);
	return syncfs(writer->root) < 0 ? -errno : 0;
}

int layer_writer_run(int stream_fd)
{
	struct layer_writer writer = {.dir = -1, .times = BUF_INIT(TIMES_MAX)};
	auto_free struct item *item = mem_new(sizeof(*item));
	int r;

	umask(0);
	helper_io_init(&writer.io, stream_fd);
	writer.piece = mem_new(LAYER_PIECE_MAX);
	writer.root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = writer.root < 0 ? -errno : write_items(&writer, item);
	helper_io_put_u32(&writer.io, (uint32_t)-r);
	helper_io_put_str(&writer.io, item->name);
	helper_io_drain(&writer.io);
	return r < 0;
}
