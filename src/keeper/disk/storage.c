/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/disk/storage.h"

#include "base/fail_point.h"
#include "base/fd.h"
#include "base/log.h"
#include "keeper/mount/directory.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define SANDBOX_UID    1000 /* the default user inside */
#define RESERVE_INODES 8

static int open_own_dir(int parent, const char *name, struct err *err)
{
	auto_fd int fd = -1;
	struct stat st;

	if (mkdirat(parent, name, 0700) < 0 && errno != EEXIST)
		return err_sys(err, "make directory %s", name);
	fd = directory_open(parent, name);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(err, "open directory %s", name);
	/* The daemon must not have put a directory of its own here: what is below is mounted as
	 * root. */
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

static void shard_name(unsigned shard, char name[4])
{
	snprintf(name, 4, "%02x", shard % STORAGE_SHARDS);
}

/* Which shard an id belongs to; any even spread will do. */
static unsigned shard_of(const char *id)
{
	unsigned hash = 2166136261u;

	for (; *id; id++)
		hash = (hash ^ (unsigned char)*id) * 16777619u;
	return (hash ^ hash >> 16) % STORAGE_SHARDS;
}

int storage_open_shard(const struct storage *storage, unsigned shard)
{
	char name[4];

	shard_name(shard, name);
	return directory_open(storage->sandboxes_fd, name);
}

int storage_open_shard_of(const struct storage *storage, const char *id, struct err *err)
{
	int fd = storage_open_shard(storage, shard_of(id));

	return fd < 0 ? err_sys(err, "open the shard of %s", id) : fd;
}

static int make_shards(const struct storage *storage, struct err *err)
{
	mark_unrelated(storage->sandboxes_fd);
	for (unsigned i = 0; i < STORAGE_SHARDS; i++) {
		char name[4];

		shard_name(i, name);
		if (mkdirat(storage->sandboxes_fd, name, 0700) < 0 && errno != EEXIST)
			return err_sys(err, "make shard %s", name);
	}
	return 0;
}

int storage_open(struct storage *storage, const char *data_dir, struct err *err)
{
	int data_fd = storage->data_fd = directory_open(AT_FDCWD, data_dir);

	if (data_fd < 0)
		return err_sys(err, "open data directory %s", data_dir);
	if ((storage->sandboxes_fd = open_own_dir(data_fd, "sandboxes", err)) < 0 ||
		(storage->workspaces_fd = open_own_dir(data_fd, "workspaces", err)) < 0 ||
		(storage->snapshots_fd = open_own_dir(data_fd, "snapshots", err)) < 0 ||
		(storage->pool_fd = open_own_dir(data_fd, "spares", err)) < 0 ||
		(storage->templates_fd = open_own_dir(data_fd, "templates", err)) < 0 ||
		(storage->layers_fd = open_own_dir(data_fd, "layers", err)) < 0 ||
		(storage->trash.waiting_fd = open_own_dir(data_fd, "trash", err)) < 0 ||
		(storage->trash.removing_fd = open_own_dir(data_fd, "shredder", err)) < 0)
		return -EIO;
	return make_shards(storage, err);
}

/* Makes parent/name if it is missing, and opens it. What is still root's becomes uid's. */
static int open_owned(int parent, const char *name, mode_t mode, uint32_t uid, struct err *err)
{
	auto_fd int fd = -1;
	struct stat st;

	if (mkdirat(parent, name, mode) < 0 && errno != EEXIST)
		return err_sys(err, "make directory %s", name);
	fd = directory_open(parent, name);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(err, "open directory %s", name);
	if (st.st_uid != uid && st.st_uid == 0 && fchown(fd, uid, uid) < 0)
		return err_sys(err, "give %s to its sandbox", name);
	return take_fd(&fd);
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

/*
 * The sandbox may have put something else in place of a part: that is removed and a directory made.
 */
static int prepare_workspace(const struct trash *trash, int fd, uint32_t base_uid, struct err *err)
{
	for (size_t i = 0; i < array_len(workspace_parts); i++) {
		const char *name = workspace_parts[i].name;
		uint32_t uid = base_uid + workspace_parts[i].uid;
		int part = open_owned(fd, name, 0755, uid, err);

		if (part == -ELOOP || part == -ENOTDIR) {
			int r = trash_discard(trash, fd, name, err);

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
	auto_fd int fd = directory_open(storage->workspaces_fd, id);
	char name[KEEPER_ID_LEN + 16];
	int r;

	if (fd < 0 && errno == ENOENT) {
		snprintf(name, sizeof(name), "%s.workspace", id);
		fd = open_owned(shard, name, 0755, base_uid + SANDBOX_UID, err);
		if (fd < 0)
			return fd;
		r = prepare_workspace(&storage->trash, fd, base_uid, err);
		if (r < 0)
			return r;
		if (renameat(shard, name, storage->workspaces_fd, id) < 0)
			return err_sys(err, "put the workspace of %s in its place", id);
		return take_fd(&fd);
	}
	if (fd < 0)
		return err_sys(err, "open the workspace of %s", id);
	r = prepare_workspace(&storage->trash, fd, base_uid, err);
	return r < 0 ? r : take_fd(&fd);
}

static int open_layer(const struct trash *trash, int layer, uint32_t base_uid,
	struct storage_dirs *dirs, struct err *err)
{
	int r;

	if ((dirs->upper_fd = open_owned(layer, "upper", 0755, base_uid, err)) < 0)
		return dirs->upper_fd;
	/* The work directory starts anew: a volatile overlay leaves a mark in it against a second
	 * mount, and emptying it in place takes longer than everything else here together. */
	if ((r = trash_discard(trash, layer, "work", err)) < 0)
		return r;
	dirs->work_fd = open_owned(layer, "work", 0700, base_uid, err);
	return dirs->work_fd < 0 ? dirs->work_fd : 0;
}

static int prepare_dirs(const struct storage *storage, const char *id, uint32_t base_uid,
	struct storage_dirs *dirs, struct err *err)
{
	auto_fd int shard = storage_open_shard_of(storage, id, err);
	auto_fd int layer = -1;
	int r;

	if (shard < 0)
		return shard;
	if ((layer = open_owned(shard, id, 0700, 0, err)) < 0)
		return layer;
	r = open_layer(&storage->trash, layer, base_uid, dirs, err);
	if (r < 0)
		return r;
	dirs->workspace_fd = open_workspace(storage, shard, id, base_uid, err);
	return dirs->workspace_fd < 0 ? dirs->workspace_fd : 0;
}

/* --- in the home directory of a disk --- */

/* The trash of a disk. */
static int open_home_trash(int home_fd, struct trash *ret_trash, struct err *err)
{
	auto_fd int waiting = -1, removing = -1;

	if ((waiting = open_owned(home_fd, "trash", 0700, 0, err)) < 0)
		return waiting;
	if ((removing = open_owned(home_fd, "shredder", 0700, 0, err)) < 0)
		return removing;
	*ret_trash =
		(struct trash){.waiting_fd = take_fd(&waiting), .removing_fd = take_fd(&removing)};
	return 0;
}

static void close_home_trash(struct trash *trash)
{
	fd_close(trash->waiting_fd);
	fd_close(trash->removing_fd);
}

void storage_reserve(int home_fd)
{
	auto_fd int fd = -1;

	if (mkdirat(home_fd, "reserve", 0700) < 0)
		return; /* it exists, or there is no inode left */
	fd = directory_open(home_fd, "reserve");
	for (int i = 0; i < RESERVE_INODES; i++) {
		char name[16];

		snprintf(name, sizeof(name), "%d", i);
		fd_close(openat(fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	}
}

static bool is_short_of_inodes(int fd)
{
	struct statfs disk;

	return fstatfs(fd, &disk) == 0 && disk.f_files > 0 && disk.f_ffree < 2 * RESERVE_INODES;
}

int storage_init_home(int home_fd, struct err *err)
{
	static const char *const names[] = {"upper", "workspace", "trash", "shredder"};
	auto_fd int workspace = -1;

	for (size_t i = 0; i < array_len(names); i++) {
		if (mkdirat(home_fd, names[i], 0755) < 0 && errno != EEXIST)
			return err_sys(err, "make directory %s", names[i]);
	}
	workspace = directory_open(home_fd, "workspace");
	for (size_t i = 0; i < array_len(workspace_parts); i++) {
		if (mkdirat(workspace, workspace_parts[i].name, 0755) < 0)
			return err_sys(err, "make directory %s", workspace_parts[i].name);
	}
	storage_reserve(home_fd);
	return 0;
}

/* A directory that had many entries stays large without them, and is made anew. */
static int remove_if_large(int home_fd, const char *name, int fd, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0 ||
		(st.st_size > st.st_blksize && unlinkat(home_fd, name, AT_REMOVEDIR) < 0))
		return err_sys(err, "make %s of a disk anew", name);
	return 0;
}

int storage_reset_home(int home_fd, struct err *err)
{
	static const char *const names[] = {"upper", "work", "members", "volumes", "workspace"};
	struct trash trash, at_once;
	int r = open_home_trash(home_fd, &trash, err);

	if (r < 0)
		return r;
	/* No process uses the disk, so they are removed without waiting. */
	at_once = (struct trash){.waiting_fd = trash.removing_fd};
	for (size_t i = 0; i < array_len(names) && r == 0; i++)
		r = trash_discard(&at_once, home_fd, names[i], err);
	trash_empty(&trash);
	if (r == 0)
		r = remove_if_large(home_fd, "trash", trash.waiting_fd, err);
	if (r == 0)
		r = remove_if_large(home_fd, "shredder", trash.removing_fd, err);
	close_home_trash(&trash);
	return r < 0 ? r : storage_init_home(home_fd, err);
}

static int open_home_workspace(
	const struct trash *trash, int home_fd, uint32_t base_uid, struct err *err)
{
	auto_fd int fd = open_owned(home_fd, "workspace", 0755, base_uid + SANDBOX_UID, err);
	int r = fd < 0 ? fd : prepare_workspace(trash, fd, base_uid, err);

	return r < 0 ? r : take_fd(&fd);
}

/* Whether no sandbox ran on it since it was emptied: a run leaves its work directory. */
static bool is_fresh(const struct trash *trash, int home_fd)
{
	struct stat st;

	return faccessat(home_fd, "work", F_OK, AT_SYMLINK_NOFOLLOW) < 0 &&
	       fstat(trash->waiting_fd, &st) == 0 && st.st_nlink == 2 &&
	       fstat(trash->removing_fd, &st) == 0 && st.st_nlink == 2;
}

/*
 * What a reset or delete discarded would count against the limit. Where no inode is left, the
 * overlay uses those of the old one, and those that were reserved for this.
 */
static int make_room(const struct trash *trash, int home_fd, struct err *err)
{
	int r = trash_discard(trash, home_fd, "work", err);

	if (r == 0 && is_short_of_inodes(home_fd))
		r = trash_discard(trash, home_fd, "reserve", err);
	trash_empty(trash);
	return r;
}

static int prepare_home(int home_fd, uint32_t base_uid, struct storage_dirs *dirs, struct err *err)
{
	struct trash trash;
	int r = open_home_trash(home_fd, &trash, err);

	if (r < 0)
		return r;
	if (!is_fresh(&trash, home_fd))
		r = make_room(&trash, home_fd, err);
	if (r == 0)
		r = open_layer(&trash, home_fd, base_uid, dirs, err);
	if (r == 0) {
		dirs->workspace_fd = open_home_workspace(&trash, home_fd, base_uid, err);
		r = dirs->workspace_fd < 0 ? dirs->workspace_fd : 0;
	}
	close_home_trash(&trash);
	return r;
}

#define NO_DIRS                                                                                    \
	((struct storage_dirs){.upper_fd = -1, .work_fd = -1, .workspace_fd = -1, .volumes_fd = -1})

/* Gives the directories that were opened to the caller, or closes them. */
static int conclude(int r, const struct storage_dirs *dirs, struct storage_dirs *ret_dirs)
{
	if (r == 0) {
		*ret_dirs = *dirs;
		return 0;
	}
	fd_close(dirs->upper_fd);
	fd_close(dirs->work_fd);
	fd_close(dirs->workspace_fd);
	fd_close(dirs->volumes_fd);
	return r;
}

/* Opens the place of all directories of a sandbox but the workspace: the home of its disk, or its layer. */
static int open_place(const struct storage *storage, const char *id, int home_fd, struct err *err)
{
	auto_fd int shard = -1;

	if (home_fd >= 0) {
		int fd = fcntl(home_fd, F_DUPFD_CLOEXEC, 0);

		return fd < 0 ? err_sys(err, "open the home of a disk") : fd;
	}
	shard = storage_open_shard_of(storage, id, err);
	return shard < 0 ? shard : open_owned(shard, id, 0700, 0, err);
}

/* Makes and opens <place>/<kind>/<number>, of which all but the last belong to the host's root. */
static int open_numbered(
	int place, const char *kind, uint32_t number, mode_t mode, uint32_t uid, struct err *err)
{
	auto_fd int all = open_owned(place, kind, 0700, 0, err);
	char name[16];

	if (all < 0)
		return all;
	snprintf(name, sizeof(name), "%u", number);
	return open_owned(all, name, mode, uid, err);
}

static int open_volumes(
	int place, uint32_t number, uint32_t base_uid, struct storage_dirs *dirs, struct err *err)
{
	dirs->volumes_fd = open_numbered(place, "volumes", number, 0755, base_uid, err);
	if (dirs->volumes_fd < 0)
		return dirs->volumes_fd;
	/* As /tmp: whatever user the program runs as may keep its data there. */
	return fchmod(dirs->volumes_fd, 01777) < 0 ? err_sys(err, "open volumes to all") : 0;
}

int storage_prepare(const struct storage *storage, const char *id, int home_fd, uint32_t base_uid,
	bool has_volumes, struct storage_dirs *ret_dirs, struct err *err)
{
	struct storage_dirs dirs = NO_DIRS;
	auto_fd int place = -1;
	int r = home_fd < 0 ? prepare_dirs(storage, id, base_uid, &dirs, err)
			    : prepare_home(home_fd, base_uid, &dirs, err);

	if (r == 0 && has_volumes) {
		place = open_place(storage, id, home_fd, err);
		r = place < 0 ? place : open_volumes(place, 0, base_uid, &dirs, err);
	}
	return conclude(r, &dirs, ret_dirs);
}

int storage_prepare_member(const struct storage *storage, const char *id, int home_fd,
	uint32_t number, uint32_t base_uid, struct storage_dirs *ret_dirs, struct err *err)
{
	auto_fd int place = open_place(storage, id, home_fd, err);
	auto_fd int own = place < 0 ? -1 : open_numbered(place, "members", number, 0700, 0, err);
	struct storage_dirs dirs = NO_DIRS;
	struct trash trash = storage->trash;
	int r = own < 0 ? -EIO : 0;

	if (r == 0 && home_fd >= 0)
		r = open_home_trash(home_fd, &trash, err);
	if (r < 0)
		return r;
	r = open_layer(&trash, own, base_uid, &dirs, err);
	if (r == 0)
		r = open_volumes(place, number, base_uid, &dirs, err);
	if (r == 0)
		r = storage_open_tree(
			storage, id, home_fd, STORAGE_WORKSPACE, &dirs.workspace_fd, err);
	if (home_fd >= 0)
		close_home_trash(&trash);
	return conclude(r, &dirs, ret_dirs);
}

static int open_dir_tree(
	const struct storage *storage, const char *id, const char *name, struct err *err)
{
	auto_fd int shard = -1, layer = -1;

	if (strcmp(name, STORAGE_WORKSPACE) == 0)
		return directory_open(storage->workspaces_fd, id);
	shard = storage_open_shard_of(storage, id, err);
	layer = shard < 0 ? -1 : directory_open(shard, id);
	return layer < 0 ? -1 : directory_open(layer, name);
}

int storage_open_tree(const struct storage *storage, const char *id, int home_fd, const char *name,
	int *ret_fd, struct err *err)
{
	int fd =
		home_fd < 0 ? open_dir_tree(storage, id, name, err) : directory_open(home_fd, name);

	if (fd < 0 && errno == ENOENT)
		return err_set(err, ERR_NOT_FOUND, "sandbox %s has no files", id);
	if (fd < 0)
		return err_sys(err, "open the files of %s", id);
	*ret_fd = fd;
	return 0;
}

/*
 * The system layers of a sandbox and its members; with a reset, which empties scratch too, also what is durable
 * beside them.
 */
static int clean_system(const struct trash *trash, int place, uint32_t parts, struct err *err)
{
	int r = trash_discard(trash, place, "upper", err);

	fail_point("clean.layer_discarded");
	if (r == 0)
		r = trash_discard(trash, place, "work", err);
	if (r == 0)
		r = trash_discard(trash, place, "members", err);
	if (r == 0 && (parts & KEEPER_PART_SCRATCH))
		r = trash_discard(trash, place, "volumes", err);
	return r;
}

static int clean_layer(
	const struct storage *storage, const char *id, uint32_t parts, struct err *err)
{
	auto_fd int shard = storage_open_shard_of(storage, id, err);
	auto_fd int layer = -1;
	char name[KEEPER_ID_LEN + 16];
	int r = 0;

	if (shard < 0)
		return shard;
	if (parts & KEEPER_PART_LAYER_DIR) {
		snprintf(
			name, sizeof(name), "%s.workspace", id); /* of a build that was cut short */
		r = trash_discard(&storage->trash, shard, name, err);
	}
	layer = r < 0 ? -1 : directory_open(shard, id);
	if (r == 0 && layer < 0)
		return errno == ENOENT ? 0 : err_sys(err, "open the layer of %s", id);
	/* What is durable stays with the workspace. */
	if (r == 0 && (parts & KEEPER_PART_LAYER_DIR) &&
		((parts & KEEPER_PART_WORKSPACE) ||
			faccessat(layer, "volumes", F_OK, AT_SYMLINK_NOFOLLOW) < 0))
		return trash_discard(&storage->trash, shard, id, err);
	return r < 0 ? r : clean_system(&storage->trash, layer, parts, err);
}

/* Empties scratch directories of an open workspace. The next start makes what is missing. */
static int clean_scratch(const struct trash *trash, int fd, struct err *err)
{
	for (size_t i = 0; i < array_len(workspace_parts); i++) {
		int r = 0;

		if (workspace_parts[i].cleaned_by & KEEPER_PART_SCRATCH)
			r = trash_discard(trash, fd, workspace_parts[i].name, err);
		if (r < 0)
			return r;
	}
	return 0;
}

int storage_clean(const struct storage *storage, const char *id, uint32_t base_uid, uint32_t parts,
	struct err *err)
{
	int r = 0;

	if (parts & (KEEPER_PART_SYSTEM | KEEPER_PART_LAYER_DIR))
		r = clean_layer(storage, id, parts, err);
	if (r == 0 && (parts & KEEPER_PART_SCRATCH)) {
		auto_fd int fd = directory_open(storage->workspaces_fd, id);

		if (fd < 0)
			r = errno == ENOENT ? 0 : err_sys(err, "open the workspace of %s", id);
		else if ((r = clean_scratch(&storage->trash, fd, err)) == 0)
			r = prepare_workspace(&storage->trash, fd, base_uid, err);
	}
	if (r == 0 && (parts & KEEPER_PART_WORKSPACE))
		r = trash_discard(&storage->trash, storage->workspaces_fd, id, err);
	return r;
}

int storage_clean_home(int home_fd, uint32_t parts, struct err *err)
{
	struct trash trash;
	int r = open_home_trash(home_fd, &trash, err);

	if (r < 0)
		return r;
	if (parts & (KEEPER_PART_SYSTEM | KEEPER_PART_LAYER_DIR))
		r = clean_system(&trash, home_fd, parts, err);
	if (r == 0 && (parts & KEEPER_PART_SCRATCH)) {
		auto_fd int fd = directory_open(home_fd, "workspace");

		r = fd < 0 ? err_sys(err, "open a workspace") : clean_scratch(&trash, fd, err);
	}
	close_home_trash(&trash);
	return r;
}

void storage_empty_trash(int home_fd)
{
	struct trash trash;
	struct err err;

	if (open_home_trash(home_fd, &trash, &err) < 0) {
		log_warning("the trash of a disk stays: %s", err.message);
		return;
	}
	trash_empty(&trash);
	close_home_trash(&trash);
}
