/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/storage.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define SANDBOX_UID	1000 /* the default user inside */
#define SHARDS		256
#define USAGE_DEPTH_MAX 512
#define USAGE_FILES_MAX 2000000
#define OPEN_DIR_FLAGS	(O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static int open_own_dir(int parent, const char *name, struct err *err)
{
	auto_fd int fd = -1;
	struct stat st;

	if (mkdirat(parent, name, 0700) < 0 && errno != EEXIST)
		return err_sys(err, "make directory %s", name);
	fd = openat(parent, name, OPEN_DIR_FLAGS);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(err, "open directory %s", name);
	/* The daemon may not have put its own directory here: what is below is mounted as root. */
	if (st.st_uid != 0 || (st.st_mode & 077))
		return err_set(
			err, ERR_DENIED, "directory %s must belong to root, mode 0700", name);
	return take_fd(&fd);
}

/* Marks a directory whose entries have nothing to do with each other; only some file systems can. */
static void mark_unrelated(int fd)
{
	int flags;

	if (ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0) {
		flags |= FS_TOPDIR_FL;
		if (ioctl(fd, FS_IOC_SETFLAGS, &flags) < 0)
			log_debug("no topdir mark: %s", strerror(errno));
	}
}

/* Which shard an id belongs to; any even spread will do. */
static void shard_name(unsigned shard, char name[4])
{
	snprintf(name, 4, "%02x", shard % SHARDS);
}

static unsigned shard_of(const char *id)
{
	unsigned hash = 2166136261u;

	for (; *id; id++)
		hash = (hash ^ (unsigned char)*id) * 16777619u;
	return (hash ^ hash >> 16) % SHARDS;
}

static int make_shards(const struct storage *storage, struct err *err)
{
	mark_unrelated(storage->sandboxes_fd);
	for (unsigned i = 0; i < SHARDS; i++) {
		char name[4];

		shard_name(i, name);
		if (mkdirat(storage->sandboxes_fd, name, 0700) < 0 && errno != EEXIST)
			return err_sys(err, "make shard %s", name);
	}
	return 0;
}

static int open_shard(const struct storage *storage, const char *id, struct err *err)
{
	char name[4];
	int fd;

	shard_name(shard_of(id), name);
	fd = openat(storage->sandboxes_fd, name, OPEN_DIR_FLAGS);
	return fd < 0 ? err_sys(err, "open shard %s", name) : fd;
}

int storage_open(struct storage *storage, const char *data_dir, struct err *err)
{
	auto_fd int data_fd = open(data_dir, OPEN_DIR_FLAGS);

	if (data_fd < 0)
		return err_sys(err, "open data directory %s", data_dir);
	if ((storage->sandboxes_fd = open_own_dir(data_fd, "sandboxes", err)) < 0 ||
		(storage->workspaces_fd = open_own_dir(data_fd, "workspaces", err)) < 0 ||
		(storage->templates_fd = open_own_dir(data_fd, "templates", err)) < 0 ||
		(storage->trash_fd = open_own_dir(data_fd, "trash", err)) < 0 ||
		(storage->shredder_fd = open_own_dir(data_fd, "shredder", err)) < 0)
		return -EIO;
	return make_shards(storage, err);
}

/* Makes parent/name for uid if it is missing, and opens it. */
static int open_owned(int parent, const char *name, mode_t mode, uint32_t uid, struct err *err)
{
	int fd;

	if (mkdirat(parent, name, mode) == 0) {
		if (fchownat(parent, name, uid, uid, AT_SYMLINK_NOFOLLOW) < 0)
			return err_sys(err, "give %s to its sandbox", name);
	} else if (errno != EEXIST) {
		return err_sys(err, "make directory %s", name);
	}
	fd = openat(parent, name, OPEN_DIR_FLAGS);
	return fd < 0 ? err_sys(err, "open directory %s", name) : fd;
}

/* The parts of a workspace: project files belong to root inside (and are mounted read-only). */
static const struct {
	const char *name;
	uint32_t uid;
	uint32_t cleaned_by;
} workspace_parts[] = {
	{"project_files", 0, 0},
	{"agent_workspace", SANDBOX_UID, KEEPER_PART_SCRATCH},
	{"outputs", SANDBOX_UID, KEEPER_PART_SCRATCH},
};

/* The sandbox may have put something else in the place of a part: that goes, a directory comes. */
static int prepare_workspace(
	const struct storage *storage, int fd, uint32_t base_uid, struct err *err)
{
	for (size_t i = 0; i < array_len(workspace_parts); i++) {
		const char *name = workspace_parts[i].name;
		uint32_t uid = base_uid + workspace_parts[i].uid;
		int part = open_owned(fd, name, 0755, uid, err);

		if (part == -ELOOP || part == -ENOTDIR) {
			int r = storage_discard(storage, fd, name, err);

			if (r < 0)
				return r;
			part = open_owned(fd, name, 0755, uid, err);
		}
		if (part < 0)
			return part;
		close(part);
	}
	return 0;
}

/*
 * Opens the workspace, made if it is missing. A new one is made in the shard, where inodes are cheap,
 * and moved to its place when it is whole.
 */
static int open_workspace(const struct storage *storage, int shard, const char *id,
	uint32_t base_uid, struct err *err)
{
	auto_fd int fd = openat(storage->workspaces_fd, id, OPEN_DIR_FLAGS);
	char name[KEEPER_ID_LEN + 16];
	int r;

	if (fd < 0 && errno == ENOENT) {
		snprintf(name, sizeof(name), "%s.workspace", id);
		fd = open_owned(shard, name, 0755, base_uid + SANDBOX_UID, err);
		if (fd < 0)
			return fd;
		r = prepare_workspace(storage, fd, base_uid, err);
		if (r < 0)
			return r;
		if (renameat(shard, name, storage->workspaces_fd, id) < 0)
			return err_sys(err, "put the workspace of %s in its place", id);
		return take_fd(&fd);
	}
	if (fd < 0)
		return err_sys(err, "open the workspace of %s", id);
	r = prepare_workspace(storage, fd, base_uid, err);
	return r < 0 ? r : take_fd(&fd);
}

int storage_prepare(const struct storage *storage, const char *id, uint32_t base_uid,
	struct storage_dirs *ret_dirs, struct err *err)
{
	auto_fd int shard = open_shard(storage, id, err);
	auto_fd int layer = -1, workspace = -1, upper = -1, work = -1;
	int r;

	if (shard < 0)
		return shard;
	if ((layer = open_owned(shard, id, 0700, 0, err)) < 0)
		return layer;
	if ((upper = open_owned(layer, "upper", 0755, base_uid, err)) < 0)
		return upper;
	/* The work directory starts anew: a volatile overlay leaves a mark in it against a second
	 * mount, and emptying it in place takes longer than everything else here together. */
	if ((r = storage_discard(storage, layer, "work", err)) < 0)
		return r;
	if ((work = open_owned(layer, "work", 0700, base_uid, err)) < 0)
		return work;
	if ((workspace = open_workspace(storage, shard, id, base_uid, err)) < 0)
		return workspace;
	*ret_dirs = (struct storage_dirs){.upper_fd = take_fd(&upper),
		.work_fd = take_fd(&work),
		.workspace_fd = take_fd(&workspace)};
	return 0;
}

/* A name in the trash that nothing else has: inode and time together do not come twice. */
static void trash_name(uint64_t inode, char name[64])
{
	snprintf(name, 64, "%llx-%llx", (unsigned long long)inode,
		(unsigned long long)clock_steady_us());
}

int storage_discard(const struct storage *storage, int dirfd, const char *name, struct err *err)
{
	struct stat st;
	char to[64];

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_sys(err, "look at %s", name);
	trash_name(st.st_ino, to);
	if (renameat(dirfd, name, storage->trash_fd, to) < 0)
		return err_sys(err, "move %s into the trash", name);
	return 0;
}

static int clean_layer(
	const struct storage *storage, const char *id, uint32_t parts, struct err *err)
{
	auto_fd int shard = open_shard(storage, id, err);
	auto_fd int layer = -1;
	char name[KEEPER_ID_LEN + 16];
	int r;

	if (shard < 0)
		return shard;
	if (parts & KEEPER_PART_LAYER_DIR) {
		snprintf(
			name, sizeof(name), "%s.workspace", id); /* of a build that was cut short */
		r = storage_discard(storage, shard, name, err);
		return r < 0 ? r : storage_discard(storage, shard, id, err);
	}
	layer = openat(shard, id, OPEN_DIR_FLAGS);
	if (layer < 0)
		return errno == ENOENT ? 0 : err_sys(err, "open the layer of %s", id);
	r = storage_discard(storage, layer, "upper", err);
	return r < 0 ? r : storage_discard(storage, layer, "work", err);
}

static int clean_scratch(
	const struct storage *storage, const char *id, uint32_t base_uid, struct err *err)
{
	auto_fd int fd = openat(storage->workspaces_fd, id, OPEN_DIR_FLAGS);

	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(err, "open the workspace of %s", id);
	for (size_t i = 0; i < array_len(workspace_parts); i++) {
		int r = 0;

		if (workspace_parts[i].cleaned_by & KEEPER_PART_SCRATCH)
			r = storage_discard(storage, fd, workspace_parts[i].name, err);
		if (r < 0)
			return r;
	}
	return prepare_workspace(storage, fd, base_uid, err);
}

int storage_clean(const struct storage *storage, const char *id, uint32_t base_uid, uint32_t parts,
	struct err *err)
{
	int r = 0;

	if (parts & (KEEPER_PART_SYSTEM | KEEPER_PART_LAYER_DIR))
		r = clean_layer(storage, id, parts, err);
	if (r == 0 && (parts & KEEPER_PART_SCRATCH))
		r = clean_scratch(storage, id, base_uid, err);
	if (r == 0 && (parts & KEEPER_PART_WORKSPACE))
		r = storage_discard(storage, storage->workspaces_fd, id, err);
	return r;
}

static DIR *open_listing(int dirfd)
{
	int fd = openat(dirfd, ".", OPEN_DIR_FLAGS);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir)
		fd_close(fd);
	return dir;
}

/* Keeps the max smallest distinct ids. */
static uint32_t insert_id(
	char ids[][KEEPER_ID_LEN + 1], uint32_t count, uint32_t max, const char *id)
{
	uint32_t at = 0;

	while (at < count && strcmp(ids[at], id) < 0)
		at++;
	if (at == max || (at < count && strcmp(ids[at], id) == 0))
		return count;
	if (count < max)
		count++;
	memmove(ids[at + 1], ids[at], (count - 1 - at) * sizeof(ids[0]));
	memcpy(ids[at], id, sizeof(ids[0]));
	return count;
}

static uint32_t list_dir(
	int fd, const char *after, char ids[][KEEPER_ID_LEN + 1], uint32_t count, uint32_t max)
{
	DIR *dir = open_listing(fd);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		char id[KEEPER_ID_LEN + 1];

		/* "<id>.workspace" counts as the id: its build was cut short. */
		snprintf(id, sizeof(id), "%s", entry->d_name);
		if (strlen(id) == KEEPER_ID_LEN && strcmp(id, after) > 0)
			count = insert_id(ids, count, max, id);
	}
	if (dir)
		closedir(dir);
	return count;
}

uint32_t storage_list(const struct storage *storage, const char *after,
	char ids[][KEEPER_ID_LEN + 1], uint32_t max)
{
	uint32_t count = list_dir(storage->workspaces_fd, after, ids, 0, max);

	for (unsigned i = 0; i < SHARDS; i++) {
		char name[4];
		auto_fd int fd = -1;

		shard_name(i, name);
		fd = openat(storage->sandboxes_fd, name, OPEN_DIR_FLAGS);

		if (fd >= 0)
			count = list_dir(fd, after, ids, count, max);
	}
	return count;
}

static void add_usage(int dirfd, int depth, struct keeper_stats *stats)
{
	DIR *dir = open_listing(dirfd);
	struct dirent *entry;

	while (dir && stats->disk_files < USAGE_FILES_MAX && (entry = readdir(dir))) {
		struct stat st;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
			fstatat(dirfd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		stats->disk_files++;
		stats->disk_bytes += (uint64_t)st.st_blocks * 512;
		if (S_ISDIR(st.st_mode) && depth < USAGE_DEPTH_MAX) {
			auto_fd int sub = openat(dirfd, entry->d_name, OPEN_DIR_FLAGS);

			if (sub >= 0)
				add_usage(sub, depth + 1, stats);
		}
	}
	if (dir)
		closedir(dir);
}

void storage_usage(const struct storage *storage, const char *id, struct keeper_stats *stats)
{
	auto_fd int shard = open_shard(storage, id, NULL);
	auto_fd int layer = shard < 0 ? -1 : openat(shard, id, OPEN_DIR_FLAGS);
	auto_fd int upper = layer < 0 ? -1 : openat(layer, "upper", OPEN_DIR_FLAGS);
	auto_fd int workspace = openat(storage->workspaces_fd, id, OPEN_DIR_FLAGS);

	if (upper >= 0)
		add_usage(upper, 0, stats);
	if (workspace >= 0)
		add_usage(workspace, 0, stats);
}

/* Empties one directory of the shredder; directories in it move up into the shredder, so that a tree
 * of any depth is taken apart without recursion and with two descriptors. */
static void flatten(const struct storage *storage, const char *name)
{
	auto_fd int fd = openat(storage->shredder_fd, name, OPEN_DIR_FLAGS);
	DIR *dir = fd < 0 ? NULL : open_listing(fd);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		char to[64];

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (unlinkat(fd, entry->d_name, 0) == 0 ||
			unlinkat(fd, entry->d_name, AT_REMOVEDIR) == 0)
			continue;
		trash_name(entry->d_ino, to);
		if (renameat(fd, entry->d_name, storage->shredder_fd, to) < 0)
			log_warning("the shredder keeps an entry: %s", strerror(errno));
	}
	if (dir)
		closedir(dir);
}

/* Whether anything could be removed. */
static bool shred(const struct storage *storage)
{
	DIR *dir = open_listing(storage->shredder_fd);
	bool progress = false;
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		const char *name = entry->d_name;

		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
			continue;
		if (unlinkat(storage->shredder_fd, name, 0) < 0) {
			flatten(storage, name);
			if (unlinkat(storage->shredder_fd, name, AT_REMOVEDIR) < 0)
				continue;
		}
		progress = true;
	}
	if (dir)
		closedir(dir);
	return progress;
}

void storage_empty_trash(const struct storage *storage)
{
	bool progress;

	do {
		DIR *dir = open_listing(storage->trash_fd);
		struct dirent *entry;

		progress = false;
		while (dir && (entry = readdir(dir))) {
			const char *name = entry->d_name;

			if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
				renameat(storage->trash_fd, name, storage->shredder_fd, name) == 0)
				progress = true;
		}
		if (dir)
			closedir(dir);
		progress |= shred(storage);
	} while (progress);
}
