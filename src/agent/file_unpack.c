/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UNPACK: a stream of items into a directory.
 *
 * The names are a stranger's. None leaves the directory, and none passes a symbolic link, whether
 * an earlier item made it or it was there before: an archive that plants "x -> /etc" and then
 * writes "x/passwd" is refused at the second item. Every directory on the way is opened by openat2
 * beneath the one before it.
 */
#include "agent/file.h"
#include "agent/path.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
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
	struct dialog *dialog;
	int root;
	int dir;		 /* -1: none yet */
	struct path_owner owner; /* of dir, and so of what is created in it */
	char dirs[AGENT_PATH_MAX];
};

/* Whole, also the one that is the end. */
static int read_item(struct dialog *dialog, struct item *item)
{
	uint32_t ignored;
	int r;

	if ((r = dialog_read_u8(dialog, &item->kind)) < 0 ||
		(r = dialog_read_u32(dialog, &item->mode)) < 0 ||
		(r = dialog_read_u32(dialog, &ignored)) < 0 ||
		(r = dialog_read_u32(dialog, &ignored)) < 0 ||
		(r = dialog_read_u64(dialog, &item->mtime_ns)) < 0 ||
		(r = dialog_read_u64(dialog, &item->size)) < 0 ||
		(r = dialog_read_str(dialog, item->name, sizeof(item->name))) < 0)
		return r;
	item->mode &= 0777;
	return dialog_read_str(dialog, item->target, sizeof(item->target));
}

/* Relative, not empty, no "..". */
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

/* These directories become the present one, created if need be. */
static int enter(struct unpacker *unpacker, const char *dirs)
{
	int dir;

	if (unpacker->dir >= 0 && strcmp(dirs, unpacker->dirs) == 0)
		return 0;
	dir = open_beneath(unpacker, dirs);
	if (dir == -ENOENT)
		dir = path_make_dirs(unpacker->root, dirs, RESOLVE_STRICT);
	if (dir < 0)
		return dir;
	fd_close(unpacker->dir);
	unpacker->dir = dir;
	strcpy(unpacker->dirs, dirs);
	return path_owner(dir, &unpacker->owner);
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

/* Makes way for an item. What is not a directory goes; a link stops whoever may not pass one. */
static int displace(const struct unpacker *unpacker, const char *leaf, bool may_be_link)
{
	struct stat stat;

	if (fstatat(unpacker->dir, leaf, &stat, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISDIR(stat.st_mode))
		return -EISDIR;
	if (S_ISLNK(stat.st_mode) && !may_be_link)
		return -ELOOP;
	return unlinkat(unpacker->dir, leaf, 0) < 0 && errno != ENOENT ? -errno : 0;
}

static struct timespec time_of(const struct item *item)
{
	return (struct timespec){
		.tv_sec = (time_t)(item->mtime_ns / 1000000000),
		.tv_nsec = (long)(item->mtime_ns % 1000000000),
	};
}

static int unpack_file(struct unpacker *unpacker, const struct item *item, const char *leaf)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, time_of(item)};
	auto_fd int fd = openat(unpacker->dir, leaf, flags, item->mode);
	int failure = 0;
	int r;

	if (fd < 0 && errno == EEXIST) {
		r = displace(unpacker, leaf, false);
		if (r < 0)
			return r;
		fd = openat(unpacker->dir, leaf, flags, item->mode);
	}
	if (fd < 0)
		return -errno;
	path_give(fd, &unpacker->owner);
	r = dialog_receive_file(unpacker->dialog, fd, item->size, &failure);
	if (r == 0)
		r = failure;
	if (r == 0 && futimens(fd, times) < 0)
		r = -errno;
	if (r < 0)
		unlinkat(unpacker->dir, leaf, 0); /* half a file is worse than none */
	return r;
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

/* All items; on a failure *item is the one that failed. */
static int unpack_items(struct unpacker *unpacker, struct item *item)
{
	for (;;) {
		int r = read_item(unpacker->dialog, item);

		if (r == 0 && item->kind == AGENT_ITEM_END)
			return 0;
		if (r == 0)
			r = unpack_item(unpacker, item);
		if (r < 0)
			return r;
	}
}

/* The directory itself: opened, or made with its parents. */
static int open_root(const char *path)
{
	auto_(path_place_fini) struct path_place place = PATH_PLACE_INIT;
	int fd = path_open(AT_FDCWD, path, O_PATH | O_DIRECTORY, 0);
	int r;

	if (fd != -ENOENT)
		return fd;
	r = path_locate_new(path, &place);
	if (r == 0)
		r = path_complete(&place);
	return r < 0 ? r : path_make_dirs(place.dir, place.name, 0);
}

int file_unpack(struct dialog *dialog, const struct payload_file *request)
{
	auto_fd int root = open_root(request->path);
	struct unpacker unpacker = {.dialog = dialog, .root = root, .dir = -1};
	auto_free struct item *item = mem_new(sizeof(*item));
	struct stat stat;
	int r;

	if (root < 0)
		return root;
	if (fstat(root, &stat) < 0)
		return -errno;
	dialog_put_answer(dialog, &stat, 0, "");
	r = unpack_items(&unpacker, item);
	fd_close(unpacker.dir);
	if (r == 0 && fstat(root, &stat) < 0)
		return -errno;
	if (r == 0) {
		dialog_put_answer(dialog, &stat, 0, "");
		return 0;
	}
	dialog_put_failure(dialog, -r, item->name);
	dialog_drain(dialog);
	return 0;
}
