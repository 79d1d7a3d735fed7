/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/files/request/volume_link.h"

#include "agent/files/path.h"
#include "agent/files/tree_remove.h"
#include "agent/machine/dirents.h"
#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <unistd.h>

#define VOLUMES "/volumes"
#define DRAFT                                                                                      \
	".new" /* in it: no image's path begins so, as that is absolute and has no such directory */
#define DEPTH_MAX 64 /* a descriptor and a buffer each */
#define PIECE	  (1u << 20)

/* --- copying --- */

static int copy_tree(int from, int to, int depth);

static int copy_file(int from, const char *name, int to, const struct stat *stat)
{
	struct stat now;
	auto_fd int in = path_open_regular(from, name, O_NOFOLLOW, RESOLVE_NO_XDEV, &now);
	auto_fd int out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	ssize_t n;

	if (in < 0)
		return in;
	if (out < 0)
		return -errno;
	while ((n = sendfile(out, in, NULL, PIECE)) > 0)
		;
	if (n < 0 || fchown(out, stat->st_uid, stat->st_gid) < 0 ||
		fchmod(out, stat->st_mode & 07777) < 0)
		return -errno;
	return 0;
}

static int copy_link(int from, const char *name, int to, const struct stat *stat)
{
	char target[PATH_MAX];

	path_read_link(from, name, target);
	if (symlinkat(target, to, name) < 0 ||
		fchownat(to, name, stat->st_uid, stat->st_gid, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return 0;
}

/* A new directory as that one is, with what is in it. */
static int copy_dir(int from, const char *name, int to, const char *to_name, int depth)
{
	auto_fd int in =
		path_open(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, RESOLVE_NO_XDEV);
	auto_fd int out = -1;
	struct stat stat;
	int r;

	if (in < 0)
		return in;
	if (depth == DEPTH_MAX)
		return -ELOOP;
	if (mkdirat(to, to_name, 0700) < 0)
		return -errno;
	out = path_open(to, to_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (out < 0)
		return out;
	r = copy_tree(in, out, depth + 1);
	if (r < 0)
		return r;
	if (fstat(in, &stat) < 0 || fchown(out, stat.st_uid, stat.st_gid) < 0 ||
		fchmod(out, stat.st_mode & 07777) < 0)
		return -errno;
	return 0;
}

/* Sockets, FIFOs and devices are nothing that a volume begins with. */
static int copy_tree(int from, int to, int depth)
{
	auto_free char *entries = mem_new(DIRENTS_LEN);
	struct dirents dirents;
	const char *name;
	int r;

	dirents_begin(&dirents, from, entries);
	while ((r = dirents_next(&dirents, &name)) > 0) {
		struct stat stat;

		if (fstatat(from, name, &stat, AT_SYMLINK_NOFOLLOW) < 0)
			return -errno;
		r = S_ISDIR(stat.st_mode)   ? copy_dir(from, name, to, name, depth)
		    : S_ISREG(stat.st_mode) ? copy_file(from, name, to, &stat)
		    : S_ISLNK(stat.st_mode) ? copy_link(from, name, to, &stat)
					    : 0;
		if (r < 0)
			return r;
	}
	return r;
}

/* Gets its name when it is whole and on disk: what is there later is the volume. */
static int fill(const struct helper_io *helper_io, const struct path_place *place, const char *path)
{
	auto_(path_place_fini) struct path_place target = PATH_PLACE_INIT;
	auto_fd int volumes = path_open(AT_FDCWD, VOLUMES, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	int r;

	if (volumes < 0)
		return volumes;
	r = tree_remove(helper_io, volumes, DRAFT, true);
	if (r == 0 || r == -ENOENT)
		r = copy_dir(place->dir, place->name, volumes, DRAFT, 0);
	if (r == 0)
		r = path_locate_new(path, &target);
	if (r == 0)
		r = path_complete(&target, 0);
	if (r < 0)
		return r;
	if (syncfs(volumes) < 0 || renameat(volumes, DRAFT, target.dir, target.name) < 0)
		return -errno;
	return 0;
}

/* --- linking --- */

/* What is no image's, or is kept elsewhere or not at all. */
static bool can_be(const char *path)
{
	static const char *const others[] = {
		"proc", "sys", "dev", "run", "tmp", "workspace", "volumes"};
	size_t len = strcspn(path + 1, "/");

	if (path[0] != '/' || len == 0)
		return false;
	for (const char *part = path + 1; *part; part += strcspn(part, "/")) {
		part += strspn(part, "/");
		if (part[0] == '.' && (strcspn(part, "/") == 1 || strncmp(part, "../", 3) == 0 ||
					      strcmp(part, "..") == 0))
			return false;
	}
	for (size_t i = 0; i < array_len(others); i++) {
		if (strlen(others[i]) == len && strncmp(path + 1, others[i], len) == 0)
			return false;
	}
	return true;
}

/*
 * Makes room for the link. A directory that somebody has put in its place since is not ours to remove, and steps
 * aside; that of the image itself cannot be renamed on an overlay, and the volume has what is in it.
 */
static int clear(const struct helper_io *helper_io, const struct path_place *place, bool is_copied)
{
	char aside[PATH_DRAFT_MAX];

	if (unlinkat(place->dir, place->name, AT_REMOVEDIR) == 0)
		return 0;
	path_draw_name(aside);
	if (!is_copied && renameat(place->dir, place->name, place->dir, aside) == 0)
		return 0;
	return tree_remove(helper_io, place->dir, place->name, true);
}

/* Whether both are one: a volume within another is there already. */
static bool is_same(const struct stat *one, const char *path)
{
	struct stat other;

	return lstat(path, &other) == 0 && one->st_dev == other.st_dev &&
	       one->st_ino == other.st_ino;
}

int volume_link_make(const struct helper_io *helper_io, const char *path)
{
	auto_(path_place_fini) struct path_place place = PATH_PLACE_INIT;
	auto_free char *target = mem_printf(VOLUMES "%s", path);
	bool is_new = access(target, F_OK) < 0;
	struct stat stat;
	int r = 0;

	if (!can_be(path) || path_locate(path, &place) < 0 ||
		fstatat(place.dir, place.name, &stat, AT_SYMLINK_NOFOLLOW) < 0 ||
		!S_ISDIR(stat.st_mode) || is_same(&stat, target))
		return 0;
	if (is_new)
		r = fill(helper_io, &place, target);
	if (r == 0)
		r = clear(helper_io, &place, is_new);
	if (r == 0 && symlinkat(target, place.dir, place.name) < 0)
		r = -errno;
	return r < 0 ? r : 1;
}
