/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/disk/snapshot_store.h"

#include "base/fail_point.h"
#include "base/fd.h"
#include "base/log.h"
#include "keeper/disk/disk_image.h"
#include "keeper/disk/disk_thaw.h"
#include "keeper/disk/ext4_image.h"
#include "keeper/disk/image_copy.h"
#include "keeper/disk/late_copy.h"
#include "keeper/disk/next_disk.h"
#include "keeper/disk/trash.h"
#include "keeper/mount/directory.h"
#include "keeper/mount/mount_area.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NEW_SUFFIX ".new"

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE (1 << 0)
#define RENAME_EXCHANGE	 (1 << 1)
#endif

static void new_name(const char *id, char name[static DISK_IMAGE_NAME_MAX])
{
	snprintf(name, DISK_IMAGE_NAME_MAX, "%s" NEW_SUFFIX, id);
}

/* --- copying --- */

/* When a copy is on the host's disk: before it has its name, a moment later, or when the kernel likes. */
enum due { DUE_NOW, DUE_SOON, DUE_NEVER };

/* What went past the cache is as good as there. */
static enum due due_of(enum image_copy_way way)
{
	return way == IMAGE_COPY_DIRECT ? DUE_NOW : DUE_SOON;
}

static int name_copy(
	const struct storage *storage, int copy, const char *name, enum due due, struct err *err)
{
	int r;

	if (due == DUE_SOON && late_copy_mark(copy) < 0)
		due = DUE_NOW;
	if (due == DUE_NOW && fsync(copy) < 0)
		return err_sys(err, "write a copy of a disk");
	r = disk_image_link(copy, storage->snapshots_fd, name, err);
	if (r == 0 && due == DUE_NOW && fsync(storage->snapshots_fd) < 0)
		r = err_sys(err, "write the name of a copy");
	return r;
}

/* --- taking --- */

/* A copy without a name, and the loop device that is on it, or -1. */
struct fresh_copy {
	int fd, loop_fd;
};

static void drop_fresh(struct fresh_copy *copy)
{
	fd_close(copy->fd);
	fd_close(copy->loop_fd);
}

/*
 * The keeper's death ends other children at once; this one has to thaw first. The signal is blocked, as
 * in the keeper, and looked for between pieces of the copy.
 */
static int outlive_keeper(struct err *err)
{
	pid_t keeper = getppid();

	if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0)
		return err_sys(err, "prepare for a freeze");
	if (getppid() != keeper)
		_exit(1);
	return 0;
}

static void thaw(int home)
{
	if (ioctl(home, FITHAW, 0) < 0)
		log_error("thaw a disk: %s", strerror(errno));
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (image_copy_is_told_to_end())
		_exit(1);
}

/* What was written before is written out first, while the sandbox goes on: the freeze is short then. */
static int freeze(const struct disks *disks, const char *id, int home, struct err *err)
{
	int r = outlive_keeper(err);

	if (r < 0)
		return r;
	disk_give_back(disks, id, home);
	if (syncfs(home) < 0 || ext4_image_has_failed(home))
		return err_explain(err, ERR_NO_SPACE, "disk_failed",
			"free space on the host, then start the sandbox, which has its disk "
			"checked",
			"the disk of sandbox %s failed, as it does when the disk of the host is "
			"full",
			id);
	if (ioctl(home, FIFREEZE, 0) == 0)
		return 0;
	if (errno == EBUSY)
		return err_set(err, ERR_UNAVAILABLE, "the disk of %s is being copied already", id);
	return err_sys(err, "freeze the disk of %s", id);
}

static int copy_mounted(const struct disks *disks, const char *id, int home, int file,
	enum image_copy_way way, struct fresh_copy *copy, struct err *err)
{
	int r = freeze(disks, id, home, err);

	if (r < 0)
		return r;
	r = fail_point_check("snapshot.frozen", err);
	if (r == 0)
		r = image_copy_make(
			file, disks->storage->snapshots_fd, way, &copy->fd, &copy->loop_fd, err);
	fail_point("snapshot.copied");
	thaw(home);
	return r;
}

static int refuse_way(const char *id, struct err *err)
{
	return err_explain(err, ERR_INVALID, "no_snapshots",
		"give sandboxes disks that are images: they need a daemon of root, a limit, and a "
		"data "
		"directory without project quotas",
		"the disk of sandbox %s is a directory, of which there are no snapshots", id);
}

static enum image_copy_way way_of(int file, enum snapshot_use use)
{
	static const enum image_copy_way ways[] = {[SNAPSHOT_KEPT] = IMAGE_COPY_CACHED,
		[SNAPSHOT_TEMPORARY] = IMAGE_COPY_BEGUN,
		[SNAPSHOT_NEXT] = IMAGE_COPY_ATTACHED};

	return image_copy_choose(file, ways[use]);
}

/* A copy, which is whole and clean. */
static int copy_disk(const struct disks *disks, const char *id, int file, enum image_copy_way way,
	struct fresh_copy *copy, struct err *err)
{
	auto_fd int home = disk_open_mounted(disks, id);
	int r;

	if (home >= 0) {
		r = copy_mounted(disks, id, home, file, way, copy, err);
	} else {
		r = ext4_image_hold(file, err);
		if (r == 0)
			r = image_copy_make(file, disks->storage->snapshots_fd, way, &copy->fd,
				&copy->loop_fd, err);
	}
	if (r == 0 && !ext4_image_is_clean(copy->fd))
		r = err_set(err, ERR_INTERNAL, "the copy of the disk of %s is not clean", id);
	return r;
}

int snapshot_store_take(const struct snapshot_store *store, const char *id, const char *snapshot,
	enum snapshot_use use, uint64_t *ret_bytes, struct err *err)
{
	const struct disks *disks = store->disks;
	const struct storage *storage = disks->storage;
	auto_(drop_fresh) struct fresh_copy copy = {-1, -1};
	char name[DISK_IMAGE_NAME_MAX];
	enum image_copy_way way;
	auto_fd int file = -1;
	int r;

	if (!disk_image_exists(storage, id))
		return disk_is_new(disks, id)
			       ? err_set(err, ERR_NOT_FOUND, "sandbox %s has no files", id)
			       : refuse_way(id, err);
	disk_image_name(id, name);
	file = openat(storage->workspaces_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (file < 0)
		return err_sys(err, "open the disk of %s", id);
	way = way_of(file, use);
	r = copy_disk(disks, id, file, way, &copy, err);
	if (r < 0)
		return r;
	disk_image_name(snapshot, name);
	r = name_copy(storage, copy.fd, name, use == SNAPSHOT_KEPT ? due_of(way) : DUE_NEVER, err);
	if (r == 0)
		*ret_bytes = image_copy_bytes_of(copy.fd);
	if (r == 0 && copy.loop_fd >= 0)
		r = next_disk_mount(disks, snapshot, copy.fd, copy.loop_fd, err);
	return r;
}

/* --- in the keeper: children that may have frozen a disk --- */

static struct snapshot_child *find_child(struct snapshot_store *store, pid_t pid)
{
	for (size_t i = 0; i < array_len(store->children); i++) {
		if (store->children[i].pid == pid)
			return &store->children[i];
	}
	return NULL;
}

void snapshot_store_watch(struct snapshot_store *store, pid_t pid, int home_fd)
{
	struct snapshot_child *child = pid > 0 ? find_child(store, 0) : NULL;

	/* There are no more children that answer requests than places. */
	if (child)
		*child = (struct snapshot_child){pid, home_fd};
	else
		fd_close(home_fd);
}

/* A thaw writes, so the loop does not do it. One of a disk that is not frozen does nothing. */
static void thaw_for(const struct snapshot_store *store, struct snapshot_child *child)
{
	pid_t thawer = helpers_fork(store->disks->helpers, &child->home_fd);

	if (thawer == 0) {
		(void)!ioctl(child->home_fd, FITHAW, 0);
		_exit(0);
	}
	if (thawer < 0)
		log_error("a disk may stay frozen: %s", strerror(errno));
}

void snapshot_store_reaped(struct snapshot_store *store, pid_t pid, int status)
{
	struct snapshot_child *child = find_child(store, pid);

	if (!child)
		return;
	if (status != 0 && child->home_fd >= 0)
		thaw_for(store, child);
	fd_close(child->home_fd);
	*child = (struct snapshot_child){0};
	if (store->writer.work)
		helpers_wake(&store->writer);
}

/* --- bringing copies to the disk --- */

static int open_copy(const struct storage *storage, const char *name)
{
	return openat(storage->snapshots_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
}

static void discard_copy(const struct storage *storage, const char *name)
{
	struct err err;

	if (trash_discard(&storage->trash, storage->snapshots_fd, name, &err) < 0)
		log_warning("%s", err.message);
}

/* What the host's disk did not take is lost once the kernel forgets it, so it is nobody's any more. */
static void write_copy(const struct storage *storage, const char *name)
{
	auto_fd int copy = open_copy(storage, name);
	struct err err;

	if (copy < 0 || late_copy_look(copy) == LATE_COPY_WRITTEN ||
		late_copy_write(copy, &err) == 0)
		return;
	log_error("snapshot %s is lost: %s", name, err.message);
	discard_copy(storage, name);
}

static void run_writer(const void *arg, int wake_fd)
{
	const struct storage *storage = arg;
	char bytes[64];

	do {
		DIR *list = directory_list(storage->snapshots_fd);
		const struct dirent *entry;

		while ((entry = directory_next(list)))
			write_copy(storage, entry->d_name);
		directory_end(list);
	} while (read(wake_fd, bytes, sizeof(bytes)) > 0);
}

/* --- using --- */

static int snapshot_missing(const char *snapshot, struct err *err)
{
	return err_explain(err, ERR_CONFLICT, "snapshot_missing",
		"see whether the file system of the data directory is whole; if the file is gone "
		"for good, delete the snapshot",
		"the files of snapshot %s are not there", snapshot);
}

static int open_snapshot(
	const struct storage *storage, const char *snapshot, int *ret_fd, struct err *err)
{
	char name[DISK_IMAGE_NAME_MAX];

	disk_image_name(snapshot, name);
	*ret_fd = openat(storage->snapshots_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (*ret_fd < 0 && errno == ENOENT)
		return snapshot_missing(snapshot, err);
	return *ret_fd < 0 ? err_sys(err, "open snapshot %s", snapshot) : 0;
}

/* Beside the disks of sandboxes, under a name that no sandbox has. */
static void place_name(char name[static DISK_IMAGE_NAME_MAX])
{
	snprintf(name, DISK_IMAGE_NAME_MAX, "snapshot-%d", getpid());
}

int snapshot_store_open_tree(const struct disks *disks, const char *snapshot, const char *name,
	uint32_t base_uid, int *ret_fd, struct err *err)
{
	int places = disks->disk_mount.mounted_fd;
	auto_fd int file = -1, mount = -1, root = -1, home = -1;
	char place[DISK_IMAGE_NAME_MAX];
	int r;

	if ((r = open_snapshot(disks->storage, snapshot, &file, err)) < 0 ||
		(r = ext4_image_mount_read_only(file, &mount, err)) < 0 ||
		(r = disk_image_map_range(mount, base_uid, err)) < 0)
		return r;
	place_name(place);
	r = mount_area_put_mount(places, place, mount, err);
	if (r < 0)
		return r;
	root = mount_area_open_mount(places, place);
	if (root < 0)
		r = err_from(err, root, "open the disk of snapshot %s", snapshot);
	if (r == 0)
		r = disk_image_open_home(root, &home, err);
	if (r == 0)
		r = storage_open_tree(disks->storage, snapshot, home, name, ret_fd, err);
	if (r < 0)
		snapshot_store_close_tree(disks);
	return r;
}

void snapshot_store_close_tree(const struct disks *disks)
{
	char place[DISK_IMAGE_NAME_MAX];

	place_name(place);
	if (mount_area_unmount(disks->disk_mount.mounted_fd, place) == 0)
		mount_area_drop_place(disks->disk_mount.mounted_fd, place);
}

/* Gives the snapshot itself the name of the copy. */
static int take_snapshot(
	const struct storage *storage, const char *snapshot, const char *copy, struct err *err)
{
	char name[DISK_IMAGE_NAME_MAX];

	disk_image_name(snapshot, name);
	if (renameat(storage->snapshots_fd, name, storage->snapshots_fd, copy) < 0)
		return err_sys(err, "take the disk of snapshot %s", snapshot);
	return 0;
}

int snapshot_store_copy(const struct snapshot_store *store, const char *snapshot, bool takes,
	const char *id, uint32_t base_uid, struct err *err)
{
	const struct storage *storage = store->disks->storage;
	auto_fd int from = -1, copied = -1;
	char name[DISK_IMAGE_NAME_MAX];
	bool is_waited_for = disk_image_exists(storage, id); /* it is to be replaced */
	int r = open_snapshot(storage, snapshot, &from, err);

	if (r == 0 && !takes)
		r = image_copy_make(from, storage->snapshots_fd,
			is_waited_for ? IMAGE_COPY_DIRECT
				      : image_copy_choose(from, IMAGE_COPY_BEGUN),
			&copied, NULL, err);
	if (r < 0)
		return r;
	if (fchown(takes ? from : copied, 0, base_uid) < 0)
		return err_sys(err, "mark a copy of a disk");
	if ((r = fail_point_check("snapshot.loaded", err)) < 0 ||
		(takes && (r = next_disk_map(store->disks, snapshot, base_uid, err)) < 0))
		return r;
	new_name(id, name);
	r = trash_discard(&storage->trash, storage->snapshots_fd, name, err);
	if (r < 0)
		return r;
	return takes ? take_snapshot(storage, snapshot, name, err)
		     : name_copy(storage, copied, name, is_waited_for ? DUE_NOW : DUE_NEVER, err);
}

/* A copy that is mounted already and could not become the disk of its sandbox. */
static void discard_copy_of(const struct snapshot_store *store, const char *id, const char *copy)
{
	struct err err;

	if (disk_unmount_discard(&store->disks->disk_mount.unmounts, id,
		    store->disks->storage->snapshots_fd, copy, &err) < 0)
		log_warning("%s", err.message);
}

int snapshot_store_place(
	const struct snapshot_store *store, const char *snapshot, const char *id, struct err *err)
{
	const struct storage *storage = store->disks->storage;
	bool has_disk = disk_image_exists(storage, id);
	char image[DISK_IMAGE_NAME_MAX], copy[DISK_IMAGE_NAME_MAX];
	int r;

	if (!has_disk && !disk_is_new(store->disks, id))
		return refuse_way(id, err);
	disk_image_name(id, image);
	new_name(id, copy);
	/* The mount moves first: who finds the image without one would wait for it. */
	r = has_disk ? 0 : next_disk_give(store->disks, snapshot, id, err);
	if (r < 0)
		return r;
	/* One step: there is always a whole disk of that name. */
	if (syscall(SYS_renameat2, storage->snapshots_fd, copy, storage->workspaces_fd, image,
		    has_disk ? RENAME_EXCHANGE : RENAME_NOREPLACE) < 0) {
		int is_mounted = r;

		r = err_sys(err, "give %s the disk of a snapshot", id);
		if (is_mounted)
			discard_copy_of(store, id, copy);
		return r;
	}
	fail_point("snapshot.placed");
	if (!has_disk)
		return 0;
	r = disk_unmount_discard(
		&store->disks->disk_mount.unmounts, id, storage->snapshots_fd, copy, err);
	/* What is mounted is the old one still. */
	if (r < 0 && syscall(SYS_renameat2, storage->snapshots_fd, copy, storage->workspaces_fd,
			     image, RENAME_EXCHANGE) < 0)
		log_error("sandbox %s: its disk is %s of the snapshots: %s", id, copy,
			strerror(errno));
	return r;
}

uint32_t snapshot_store_list(const struct snapshot_store *store, const char *after,
	char ids[][KEEPER_ID_LEN + 1], uint32_t max)
{
	DIR *list = directory_list(store->disks->storage->snapshots_fd);
	const struct dirent *entry;
	uint32_t count = 0;

	while ((entry = directory_next(list))) {
		char name[DISK_IMAGE_NAME_MAX], id[KEEPER_ID_LEN + 1];

		if (!keeper_is_id(entry->d_name, '.'))
			continue;
		snprintf(id, sizeof(id), "%s", entry->d_name);
		disk_image_name(id, name);
		/* A copy that is to become a disk has another ending. */
		if (strcmp(entry->d_name, name) == 0 && strcmp(id, after) > 0)
			count = directory_keep_first(ids[0], sizeof(ids[0]), count, max, id);
	}
	directory_end(list);
	return count;
}

int snapshot_store_drop(const struct snapshot_store *store, const char *snapshot, struct err *err)
{
	const struct storage *storage = store->disks->storage;
	char name[DISK_IMAGE_NAME_MAX];

	next_disk_drop(store->disks, snapshot);
	disk_image_name(snapshot, name);
	return trash_discard(&storage->trash, storage->snapshots_fd, name, err);
}

/* --- at the start of the keeper --- */

/* A thaw writes, so the keeper does not wait for it. */
static void thaw_left(const struct disks *disks)
{
	pid_t pid;

	if (disks->way != DISK_IMAGE)
		return;
	pid = helpers_fork(disks->helpers, NULL);
	if (pid == 0) {
		disk_thaw_left(disks->storage);
		_exit(0);
	}
	if (pid < 0)
		log_error("disks may have stayed frozen: %s", strerror(errno));
}

/* A failure of the host's power may have taken what was not on its disk yet. */
static bool is_torn(const struct storage *storage, const char *name)
{
	auto_fd int copy = open_copy(storage, name);

	if (copy < 0 || late_copy_look(copy) != LATE_COPY_TORN)
		return false;
	log_error("snapshot %s is lost: it was not on the disk yet when the host failed", name);
	return true;
}

void snapshot_store_open(struct snapshot_store *store, struct disks *disks)
{
	const struct storage *storage = disks->storage;
	DIR *list = directory_list(storage->snapshots_fd);
	const struct dirent *entry;

	*store = (struct snapshot_store){.disks = disks};
	thaw_left(disks);
	while ((entry = directory_next(list))) {
		const char *end = strchr(entry->d_name, '.');

		if ((end && strcmp(end, NEW_SUFFIX) == 0) || is_torn(storage, entry->d_name))
			discard_copy(storage, entry->d_name);
	}
	directory_end(list);
	if (disks->way == DISK_NONE)
		return;
	store->writer =
		(struct helper){.name = "snapshot writer", .work = run_writer, .arg = storage};
	helpers_add(disks->helpers, &store->writer);
}
