/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/files/path.h"

#include "base/fd.h"
#include "wire/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/random.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LINKS_MAX   40 /* as the kernel has it */
#define RETRIES_MAX 100

void path_place_fini(struct path_place *place)
{
	fd_close(place->dir);
	free(place->missing);
	*place = PATH_PLACE_INIT;
}

int path_open(int dirfd, const char *path, int flags, uint64_t resolve)
{
	struct open_how how = {
		.flags = (uint64_t)(flags | O_CLOEXEC),
		.resolve = RESOLVE_NO_MAGICLINKS | resolve,
	};

	/* With RESOLVE_BENEATH a rename anywhere at the same time can be EAGAIN. */
	for (int i = 0; i < RETRIES_MAX; i++) {
		long fd = syscall(SYS_openat2, dirfd, path, &how, sizeof(how));

		if (fd >= 0)
			return (int)fd;
		if (errno != EAGAIN && errno != EINTR)
			break;
	}
	return -errno;
}

static int check_regular(int fd, struct stat *ret_stat)
{
	if (fstat(fd, ret_stat) < 0)
		return -errno;
	if (S_ISDIR(ret_stat->st_mode))
		return -EISDIR;
	if (S_ISLNK(ret_stat->st_mode))
		return -ELOOP;
	return S_ISREG(ret_stat->st_mode) ? 0 : -EINVAL;
}

int path_open_regular(
	int dirfd, const char *path, int flags, uint64_t resolve, struct stat *ret_stat)
{
	auto_fd int look = path_open(dirfd, path, O_PATH | flags, resolve);
	auto_fd int fd = -1;
	int r;

	if (look < 0)
		return look;
	r = check_regular(look, ret_stat);
	if (r < 0)
		return r;
	/* If a process swaps the file for a FIFO now, that is opened, but neither waited for nor
	 * read. */
	fd = path_open(dirfd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | flags, resolve);
	if (fd < 0)
		return fd;
	r = check_regular(fd, ret_stat);
	return r < 0 ? r : take_fd(&fd);
}

/* Cuts path into what comes before its last component (a new string) and that component. */
static int split(const char *path, char **ret_dirs, char name[NAME_MAX + 1])
{
	size_t end = strlen(path);
	size_t begin;

	while (end > 0 && path[end - 1] == '/')
		end--;
	begin = end;
	while (begin > 0 && path[begin - 1] != '/')
		begin--;
	if (begin == end)
		return path[0] == '/' ? -EBUSY : -ENOENT;
	if (end - begin > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, path + begin, end - begin);
	name[end - begin] = '\0';
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return -EINVAL;
	*ret_dirs = mem_strdup(path);
	(*ret_dirs)[begin] = '\0';
	return 0;
}

/* Cuts the first component off *dirs; false when there is none left. */
static bool next_component(const char **dirs, char name[NAME_MAX + 1], int *ret_failure)
{
	const char *at = *dirs + strspn(*dirs, "/");
	size_t len = strcspn(at, "/");

	*ret_failure = len > NAME_MAX ? -ENAMETOOLONG : 0;
	if (len == 0 || len > NAME_MAX)
		return false;
	memcpy(name, at, len);
	name[len] = '\0';
	*dirs = at + len;
	return true;
}

/*
 * Goes down dirs as far as they exist; returns the last directory and the part of dirs that is
 * missing.
 */
static int descend(int dirfd, const char *dirs, int *ret_dir, const char **ret_left)
{
	auto_fd int dir = path_open(dirfd, dirs[0] == '/' ? "/" : ".", O_PATH | O_DIRECTORY, 0);
	char name[NAME_MAX + 1];
	const char *left = dirs;
	int r;

	if (dir < 0)
		return dir;
	while (next_component(&left, name, &r)) {
		int next = path_open(dir, name, O_PATH | O_DIRECTORY, 0);

		if (next == -ENOENT) {
			*ret_left = dirs;
			*ret_dir = take_fd(&dir);
			return 0;
		}
		if (next < 0)
			return next;
		fd_close(dir);
		dir = next;
		dirs = left;
	}
	if (r < 0)
		return r;
	*ret_left = "";
	*ret_dir = take_fd(&dir);
	return 0;
}

/* Path, seen from dirfd, as a place; its parents may be missing if may_miss. */
static int locate(int dirfd, const char *path, bool may_miss, struct path_place *ret_place)
{
	struct path_place place = PATH_PLACE_INIT;
	auto_free char *dirs = NULL;
	const char *left = "";
	int r = split(path, &dirs, place.name);

	if (r < 0)
		return r;
	place.dir = path_open(dirfd, dirs[0] ? dirs : ".", O_PATH | O_DIRECTORY, 0);
	if (place.dir == -ENOENT && may_miss)
		r = descend(dirfd, dirs, &place.dir, &left);
	else if (place.dir < 0)
		r = place.dir;
	if (r < 0)
		return r;
	place.missing = mem_strdup(left);
	*ret_place = place;
	return 0;
}

int path_locate(const char *path, struct path_place *ret_place)
{
	return locate(AT_FDCWD, path, false, ret_place);
}

int path_locate_new(const char *path, struct path_place *ret_place)
{
	return locate(AT_FDCWD, path, true, ret_place);
}

/* Links of procfs lead elsewhere than their text says; nothing is written through them. */
static bool is_magic(int dir)
{
	struct statfs fs;

	return fstatfs(dir, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

int path_locate_target(const char *path, struct path_place *ret_place)
{
	struct path_place place = PATH_PLACE_INIT;
	char target[PATH_MAX];
	int r = locate(AT_FDCWD, path, true, &place);

	for (int links = 0; r == 0; links++) {
		struct path_place next = PATH_PLACE_INIT;

		target[0] = '\0';
		if (!place.missing[0])
			path_read_link(place.dir, place.name, target);
		if (!target[0]) {
			*ret_place = place;
			return 0;
		}
		if (links < LINKS_MAX && !is_magic(place.dir))
			r = locate(place.dir, target, true, &next);
		else
			r = -ELOOP;
		path_place_fini(&place);
		place = next;
	}
	return r;
}

int path_make_dirs(int dir, const char *dirs, uint64_t resolve, uid_t user)
{
	auto_fd int at = path_open(dir, ".", O_PATH | O_DIRECTORY, 0);
	char name[NAME_MAX + 1];
	struct path_owner owner = {0};
	int r;

	if (at < 0)
		return at;
	r = path_owner(at, user, &owner);
	if (r < 0)
		return r;
	while (next_component(&dirs, name, &r)) {
		int next = path_open(at, name, O_PATH | O_DIRECTORY, resolve);

		if (next == -ENOENT) {
			bool is_new = mkdirat(at, name, 0755) == 0;

			if (!is_new && errno != EEXIST)
				return -errno;
			next = path_open(at, name, O_PATH | O_DIRECTORY, resolve);
			if (next >= 0 && is_new)
				path_give(next, &owner);
		}
		if (next < 0)
			return next;
		fd_close(at);
		at = next;
		r = path_owner(at, user, &owner);
		if (r < 0)
			return r;
	}
	return r < 0 ? r : take_fd(&at);
}

int path_complete(struct path_place *place, uid_t user)
{
	int dir;

	if (!place->missing[0])
		return 0;
	dir = path_make_dirs(place->dir, place->missing, 0, user);
	if (dir < 0)
		return dir;
	fd_close(place->dir);
	place->dir = dir;
	place->missing[0] = '\0';
	return 0;
}

int path_owner(int fd, uid_t user, struct path_owner *ret_owner)
{
	struct stat stat;

	if (fstat(fd, &stat) < 0)
		return -errno;
	*ret_owner = (struct path_owner){.uid = stat.st_uid, .gid = stat.st_gid};
	if (stat.st_uid == 0 && (stat.st_mode & S_IXOTH))
		*ret_owner = (struct path_owner){.uid = user, .gid = user};
	return 0;
}

void path_give(int fd, const struct path_owner *owner)
{
	if (fchownat(fd, "", owner->uid, owner->gid, AT_EMPTY_PATH) < 0)
		errno = 0;
}

void path_read_link(int dir, const char *name, char target[PATH_MAX])
{
	ssize_t n = readlinkat(dir, name, target, PATH_MAX - 1);

	target[n > 0 ? n : 0] = '\0';
}

void path_draw_name(char name[PATH_DRAFT_MAX])
{
	static const char digits[] = "0123456789abcdef";
	static const char prefix[] = ".sandlot-";
	uint8_t raw[8];
	char *at = name;

	if (getrandom(raw, sizeof(raw), 0) < 0)
		memcpy(raw, &(uint64_t){(uint64_t)getpid()}, sizeof(raw));
	memcpy(at, prefix, sizeof(prefix) - 1);
	at += sizeof(prefix) - 1;
	for (size_t i = 0; i < sizeof(raw); i++) {
		*at++ = digits[raw[i] >> 4];
		*at++ = digits[raw[i] & 15];
	}
	*at = '\0';
}
