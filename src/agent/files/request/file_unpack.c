/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UNPACK: a stream of items into a directory.
 *
 * The names are not trusted. None leaves the directory, and none passes a symbolic link, whether an
 * earlier item made it or it was there before: an archive that plants "x -> /etc" and then writes
 * "x/passwd" is refused at the second item. Every directory on the way is opened by openat2 beneath
 * the one before it.
 */
#include "agent/files/disk_sync.h"
#include "agent/files/path.h"
#include "agent/files/request/file.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define RESOLVE_STRICT (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS)

struct item {
	uint8_t kind; /* enum agent_item */
	uint32_t mode;
	uint64_t mtime_ns;
	uint64_t size;
	char name[AGENT_PATH_MAX];
	char target[AGENT_PATH_MAX];
};

/* The directory that the last item was in, since the next is mostly in the same. */
struct unpacker {
	struct helper_io *helper_io;
	const struct disk_sync *sync;
	uid_t user; /* see path_owner() */
	int root;
	int dir;		 /* -1: none yet */
	struct path_owner owner; /* of dir, and so of what is created in it */
	char dirs[AGENT_PATH_MAX];
};

/* Reads a whole item, also the last, which is the end. */
static int read_item(struct helper_io *helper_io, struct item *item)
{
	uint32_t ignored;
	int r;

	if ((r = helper_io_read_u8(helper_io, &item->kind)) < 0 ||
		(r = helper_io_read_u32(helper_io, &item->mode)) < 0 ||
		(r = helper_io_read_u32(helper_io, &ignored)) < 0 ||
		(r = helper_io_read_u32(helper_io, &ignored)) < 0 ||
		(r = helper_io_read_u64(helper_io, &item->mtime_ns)) < 0 ||
		(r = helper_io_read_u64(helper_io, &item->size)) < 0 ||
		(r = helper_io_read_str(helper_io, item->name, sizeof(item->name))) < 0)
		return r;
	item->mode &= 0777;
	return helper_io_read_str(helper_io, item->target, sizeof(item->target));
}

/* Whether the name is relative, not empty and without "..". */
static bool is_name_valid(const char *name)
{
	if (!name[0] || name[0] == '/')
		return false;
	for (const char *at = name; *at; at += strspn(at, "/")) {
		size_t len = strcspn(at, "/");

		if (len == 2 && memcmp(at, "..", 2) == 0)
			return false;
		at += len;
	}
	return true;
}

static int open_beneath(const struct unpacker *unpacker, const char *dirs)
{
	return path_open(
		unpacker->root, dirs[0] ? dirs : ".", O_PATH | O_DIRECTORY, RESOLVE_STRICT);
}

/* Makes these directories the present one, and creates them if need be. */
static int enter(struct unpacker *unpacker, const char *dirs)
{
	int dir;

	if (unpacker->dir >= 0 && strcmp(dirs, unpacker->dirs) == 0)
		return 0;
	dir = open_beneath(unpacker, dirs);
	if (dir == -ENOENT)
		dir = path_make_dirs(unpacker->root, dirs, RESOLVE_STRICT, unpacker->user);
	if (dir < 0)
		return dir;
	fd_close(unpacker->dir);
	unpacker->dir = dir;
	strcpy(unpacker->dirs, dirs);
	return path_owner(dir, unpacker->user, &unpacker->owner);
}

/* Cuts a valid name into its directories and its last component. */
static int split(const char *name, char dirs[AGENT_PATH_MAX], const char **ret_leaf)
{
	const char *slash;
	size_t len;

	if (!is_name_valid(name))
		return -EINVAL;
	slash = strrchr(name, '/');
	len = slash ? (size_t)(slash - name) : 0;
	memcpy(dirs, name, len);
	dirs[len] = '\0';
	*ret_leaf = slash ? slash + 1 : name;
	return strlen(*ret_leaf) > NAME_MAX ? -ENAMETOOLONG : 0;
}

/* Whether an item may take that place: not that of a directory, nor of a link unless may_be_link. */
static int check_place(const struct unpacker *unpacker, const char *leaf, bool may_be_link)
{
	struct stat stat;

	if (fstatat(unpacker->dir, leaf, &stat, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISDIR(stat.st_mode))
		return -EISDIR;
	return S_ISLNK(stat.st_mode) && !may_be_link ? -ELOOP : 0;
}

/* Removes what is in an item's place, if the item may take it. */
static int displace(const struct unpacker *unpacker, const char *leaf, bool may_be_link)
{
	int r = check_place(unpacker, leaf, may_be_link);

	if (r < 0)
		return r;
	return unlinkat(unpacker->dir, leaf, 0) < 0 && errno != ENOENT ? -errno : 0;
}

static struct timespec time_of(const struct item *item)
{
	return (struct timespec){
		.tv_sec = (time_t)(item->mtime_ns / 1000000000),
		.tv_nsec = (long)(item->mtime_ns % 1000000000),
	};
}

/* Half a file is worse than none. */
static int write_file(
	struct unpacker *unpacker, const struct item *item, const char *name, int *ret_fd)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, time_of(item)};
	auto_fd int fd = openat(unpacker->dir, name, flags, item->mode);
	int failure = 0;
	int r;

	if (fd < 0)
		return -errno;
	path_give(fd, &unpacker->owner);
	r = helper_io_receive_file(unpacker->helper_io, fd, item->size, &failure);
	if (r == 0)
		r = failure;
	if (r == 0 && futimens(fd, times) < 0)
		r = -errno;
	if (r < 0)
		unlinkat(unpacker->dir, name, 0);
	else
		*ret_fd = take_fd(&fd);
	return r;
}

/* A file that is there is replaced when the new one is whole and the disk has it. */
static int replace_file(struct unpacker *unpacker, const struct item *item, const char *leaf)
{
	char draft[PATH_DRAFT_MAX];
	auto_fd int fd = -1;
	int r = check_place(unpacker, leaf, false);

	if (r < 0)
		return r;
	path_draw_name(draft);
	r = write_file(unpacker, item, draft, &fd);
	if (r < 0)
		return r;
	r = disk_sync_content(unpacker->sync, fd);
	if (r == 0 && renameat(unpacker->dir, draft, unpacker->dir, leaf) < 0)
		r = -errno;
	if (r < 0)
		unlinkat(unpacker->dir, draft, 0);
	return r;
}

static int unpack_file(struct unpacker *unpacker, const struct item *item, const char *leaf)
{
	auto_fd int fd = -1;
	int r = write_file(unpacker, item, leaf, &fd);

	return r == -EEXIST ? replace_file(unpacker, item, leaf) : r;
}

static int unpack_directory(struct unpacker *unpacker, const struct item *item, const char *leaf)
{
	auto_fd int fd = -1;
	bool is_new;

	if (!leaf[0] || strcmp(leaf, ".") == 0)
		return 0;
	is_new = mkdirat(unpacker->dir, leaf, item->mode) == 0;
	if (!is_new && errno != EEXIST)
		return -errno;
	fd = path_open(unpacker->dir, leaf, O_RDONLY | O_DIRECTORY, RESOLVE_STRICT);
	if (fd < 0)
		return fd == -ENOTDIR ? -EEXIST : fd;
	if (is_new)
		path_give(fd, &unpacker->owner);
	else if (fchmod(fd, item->mode) < 0)
		return -errno;
	return 0;
}

static int unpack_symlink(struct unpacker *unpacker, const struct item *item, const char *leaf)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, time_of(item)};
	int r = displace(unpacker, leaf, true);

	if (r < 0)
		return r;
	if (symlinkat(item->target, unpacker->dir, leaf) < 0)
		return -errno;
	if (fchownat(unpacker->dir, leaf, unpacker->owner.uid, unpacker->owner.gid,
		    AT_SYMLINK_NOFOLLOW) < 0 ||
		utimensat(unpacker->dir, leaf, times, AT_SYMLINK_NOFOLLOW) < 0)
		errno = 0;
	return 0;
}

static int unpack_hardlink(struct unpacker *unpacker, const struct item *item, const char *leaf)
{
	char dirs[AGENT_PATH_MAX];
	struct stat old, new;
	const char *target;
	auto_fd int from = -1;
	int r = split(item->target, dirs, &target);

	if (r < 0)
		return r;
	from = open_beneath(unpacker, dirs);
	if (from < 0)
		return from;
	if (fstatat(from, target, &old, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!S_ISREG(old.st_mode))
		return S_ISLNK(old.st_mode) ? -ELOOP : -EINVAL;
	/* A link to itself must not displace the only name there is. */
	if (fstatat(unpacker->dir, leaf, &new, AT_SYMLINK_NOFOLLOW) == 0 &&
		new.st_dev == old.st_dev &&new.st_ino == old.st_ino)
		return 0;
	r = displace(unpacker, leaf, false);
	if (r == 0 && linkat(from, target, unpacker->dir, leaf, 0) < 0)
		r = -errno;
	return r;
}

static int unpack_item(struct unpacker *unpacker, struct item *item)
{
	size_t len = strlen(item->name);
	char dirs[AGENT_PATH_MAX];
	const char *leaf;
	int r;

	while (item->kind == AGENT_ITEM_DIRECTORY && len > 1 && item->name[len - 1] == '/')
		item->name[--len] = '\0';
	r = split(item->name, dirs, &leaf);
	if (r == 0)
		r = enter(unpacker, dirs);
	if (r < 0)
		return r;
	if (item->kind != AGENT_ITEM_DIRECTORY && (!leaf[0] || strcmp(leaf, ".") == 0))
		return -EINVAL;
	switch (item->kind) {
	case AGENT_ITEM_FILE:
		return unpack_file(unpacker, item, leaf);
	case AGENT_ITEM_DIRECTORY:
		return unpack_directory(unpacker, item, leaf);
	case AGENT_ITEM_SYMLINK:
		return unpack_symlink(unpacker, item, leaf);
	case AGENT_ITEM_HARDLINK:
		return unpack_hardlink(unpacker, item, leaf);
	default:
		return -EPROTO;
	}
}

/* Unpacks all items; on a failure *item is the one that failed. */
static int unpack_items(struct unpacker *unpacker, struct item *item)
{
	for (;;) {
		int r = read_item(unpacker->helper_io, item);

		if (r == 0 && item->kind == AGENT_ITEM_END)
			return 0;
		if (r == 0)
			r = unpack_item(unpacker, item);
		if (r < 0)
			return r;
	}
}

/* Opens the directory itself, or makes it with its parents. */
static int open_root(const char *path, uid_t user)
{
	auto_(path_place_fini) struct path_place place = PATH_PLACE_INIT;
	int fd = path_open(AT_FDCWD, path, O_PATH | O_DIRECTORY, 0);
	int r;

	if (fd != -ENOENT)
		return fd;
	r = path_locate_new(path, &place);
	if (r == 0)
		r = path_complete(&place, user);
	return r < 0 ? r : path_make_dirs(place.dir, place.name, 0, user);
}

int file_unpack(struct helper_io *helper_io, const struct payload_file *request)
{
	auto_(disk_sync_end) struct disk_sync sync = {.fd = -1};
	auto_fd int root = open_root(request->path, request->user);
	struct unpacker unpacker = {.helper_io = helper_io,
		.sync = &sync,
		.user = request->user,
		.root = root,
		.dir = -1};
	auto_free struct item *item = mem_new(sizeof(*item));
	struct stat stat;
	int r;

	if (root < 0)
		return root;
	if (fstat(root, &stat) < 0)
		return -errno;
	disk_sync_begin(&sync);
	helper_io_put_answer(helper_io, &stat, 0, "");
	r = unpack_items(&unpacker, item);
	fd_close(unpacker.dir);
	if (r == 0) {
		item->name[0] = '\0'; /* a failure is of all together */
		r = disk_sync_all(&sync);
	}
	if (r == 0 && fstat(root, &stat) < 0)
		return -errno;
	if (r == 0) {
		helper_io_put_answer(helper_io, &stat, 0, "");
		return 0;
	}
	helper_io_put_failure(helper_io, -r, item->name);
	helper_io_drain(helper_io);
	return 0;
}
