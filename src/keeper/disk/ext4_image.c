/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/disk/ext4_image.h"

#include "base/fd.h"
#include "base/format.h"
#include "base/log.h"
#include "image_blank.h"
#include "keeper/mount/mounts.h"

#include <errno.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#define LOCK_MS		    10000
#define LOCK_STEP_MS	    5
#define DEVICE_LEN	    32
#define LOOP_TRIES	    256 /* other programs take free devices at the same time */
#define BOOKKEEPING	    (32ull << 20)
#define INODE_BYTES	    256
#define GROUP_BYTES	    (128ll << 20)
#define EXT4_SHUTDOWN	    _IOR('X', 125, uint32_t)
#define EXT4_SHUTDOWN_NOLOG 2u
#define JOURNAL_ROOM	    (32ull << 20) /* its journal, and tables that were never written */

/* In the superblock. */
#define EXT4_SUPERBLOCK_AT 1024
#define EXT4_MAGIC_AT	   56
#define EXT4_STATE_AT	   58
#define EXT4_INCOMPAT_AT   96
#define EXT4_MAGIC	   0xef53u
#define EXT4_VALID	   1u
#define EXT4_ERROR	   2u
#define EXT4_RECOVER	   4u

/* A mark on the file of an image whose superblock does not show that it has to be checked. */
#define UNCHECKED_MARK S_ISVTX

int ext4_image_make(int dirfd, int *ret_fd, struct err *err)
{
	auto_fd int fd = openat(dirfd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_sys(err, "make an image");
	for (size_t i = 0; i < array_len(image_blank); i++) {
		if (pwrite(fd, image_blank[i], IMAGE_BLANK_BLOCK,
			    (off_t)image_blank_at[i] * IMAGE_BLANK_BLOCK) != IMAGE_BLANK_BLOCK)
			return err_sys(err, "write an image");
	}
	if (ftruncate(fd, EXT4_IMAGE_BYTES) < 0)
		return err_sys(err, "size an image");
	*ret_fd = take_fd(&fd);
	return 0;
}

/* Opens a loop device on the file; the device is free again once it is neither open nor mounted. */
static int open_loop(int file_fd, bool is_read_only, char path[32], int *ret_fd, struct err *err)
{
	auto_fd int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	const struct loop_config config = {.fd = (uint32_t)file_fd,
		.block_size = IMAGE_BLANK_BLOCK,
		.info = {.lo_flags = LO_FLAGS_AUTOCLEAR | (is_read_only ? LO_FLAGS_READ_ONLY : 0)}};

	if (control < 0)
		return err_sys(err, "open /dev/loop-control");
	for (int i = 0; i < LOOP_TRIES; i++) {
		int number = ioctl(control, LOOP_CTL_GET_FREE);
		auto_fd int loop = -1;

		if (number < 0)
			return err_sys(err, "find a loop device");
		snprintf(path, 32, "/dev/loop%d", number);
		loop = open(path, (is_read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC);
		if (loop < 0)
			return err_sys(err, "open %s", path);
		if (ioctl(loop, LOOP_CONFIGURE, &config) == 0) {
			*ret_fd = take_fd(&loop);
			return 0;
		}
		if (errno != EBUSY)
			return err_sys(err, "configure %s", path);
	}
	return err_set(err, ERR_UNAVAILABLE, "no loop device is free");
}

/* The holder of the lock gives it up soon, or runs. */
static int lock(int file_fd, struct err *err)
{
	for (int waited_ms = 0; flock(file_fd, LOCK_EX | LOCK_NB) < 0; waited_ms += LOCK_STEP_MS) {
		if (errno != EWOULDBLOCK)
			return err_sys(err, "lock an image");
		if (waited_ms >= LOCK_MS)
			return err_set(err, ERR_UNAVAILABLE, "the disk is in use");
		usleep(LOCK_STEP_MS * 1000);
	}
	return 0;
}

static unsigned read_le16(const uint8_t *at)
{
	return at[0] | (unsigned)at[1] << 8;
}

bool ext4_image_is_clean(int file_fd)
{
	uint8_t super[EXT4_INCOMPAT_AT + 4];

	return pread(file_fd, super, sizeof(super), EXT4_SUPERBLOCK_AT) == sizeof(super) &&
	       read_le16(super + EXT4_MAGIC_AT) == EXT4_MAGIC &&
	       (read_le16(super + EXT4_STATE_AT) & (EXT4_VALID | EXT4_ERROR)) == EXT4_VALID &&
	       !(super[EXT4_INCOMPAT_AT] & EXT4_RECOVER);
}

static int refuse_unchecked(const char *why, struct err *err)
{
	return err_explain(err, ERR_CONFLICT, KEEPER_UNCHECKED,
		"start the sandbox: its disk is checked then",
		"the disk has to be checked before it is used: %s", why);
}

/* Errors that ext4 reports when it is broken, not when a call is wrong or memory is short. */
static bool is_damage(int errnum)
{
	return errnum == EUCLEAN || errnum == EBADMSG || errnum == EROFS;
}

void ext4_image_note_damage(int r, struct err *err)
{
	char why[sizeof(err->message)];

	if (!is_damage(-r))
		return;
	snprintf(why, sizeof(why), "%s", err->message);
	refuse_unchecked(why, err);
}

bool ext4_image_host_has_room(int host_fd)
{
	struct statfs host;

	return fstatfs(host_fd, &host) == 0 &&
	       host.f_bavail * (uint64_t)host.f_bsize >= JOURNAL_ROOM;
}

/* A mount writes: what ext4 cannot write to the host it loses. */
static int check_room(int file_fd, struct err *err)
{
	if (ext4_image_host_has_room(file_fd))
		return 0;
	return err_explain(err, ERR_NO_SPACE, NULL,
		"purge workspaces that nobody needs, or make the file system of the data directory "
		"larger",
		"the disk of the host is full: a sandbox's disk can be mounted when %llu MiB are "
		"free",
		JOURNAL_ROOM >> 20);
}

/* The group of an image is its uid range (disk_image.h). */
#define KEEP_GROUP ((gid_t)-1)

/* Takes back an image that was lent, and checks whether it may be mounted. */
static int check_image(int file_fd, struct err *err)
{
	struct stat st;

	if (fstat(file_fd, &st) < 0)
		return err_sys(err, "look at an image");
	if (st.st_uid != 0) {
		if (fchown(file_fd, 0, KEEP_GROUP) < 0 || fchmod(file_fd, 0600) < 0)
			return err_sys(err, "take back an image");
	} else if (st.st_mode & UNCHECKED_MARK) {
		return refuse_unchecked("it could not be mounted", err);
	}
	return ext4_image_is_clean(file_fd) ? 0
					    : refuse_unchecked("it was not unmounted cleanly", err);
}

int ext4_image_lend(int file_fd, uid_t uid, struct err *err)
{
	struct stat st;
	int r = lock(file_fd, err);

	if (r < 0)
		return r;
	if (fstat(file_fd, &st) < 0)
		return err_sys(err, "look at an image");
	if (!(st.st_mode & UNCHECKED_MARK) && ext4_image_is_clean(file_fd))
		return 0;
	if (fchown(file_fd, uid, KEEP_GROUP) < 0)
		return err_sys(err, "lend an image");
	return 1;
}

int ext4_image_hold(int file_fd, struct err *err)
{
	int r = lock(file_fd, err);

	return r < 0 ? r : check_image(file_fd, err);
}

static int mount_failed(int file_fd, struct err *err)
{
	int r = err_sys(err, "mount an image");

	/* A superblock that makes no sense is EINVAL, a journal that cannot be replayed may be EIO. */
	if (!is_damage(-r) && r != -EINVAL && r != -EIO)
		return r;
	if (fchmod(file_fd, 0600 | UNCHECKED_MARK) < 0)
		return r;
	return refuse_unchecked(strerror(-r), err);
}

static int mount_device(
	int file_fd, const char *device, const char *barrier, int *ret_mount_fd, struct err *err)
{
	auto_fd int fs = mounts_fsopen("ext4");

	/* No `discard`: with it the kernel also gives blocks back whose files were deleted or replaced
	 * in a transaction that could not be written. A check of the image then brings those files
	 * back without their content. The tables of inodes need no zeroing: holes of a sparse file are
	 * zero. Most of its bitmaps will never be looked at. */
	if (fs < 0 || mounts_set_string(fs, "source", device) < 0 ||
		mounts_set_flag(fs, "noinit_itable") < 0 ||
		mounts_set_flag(fs, "no_prefetch_block_bitmaps") < 0 ||
		mounts_set_flag(fs, barrier) < 0 ||
		mounts_set_string(fs, "errors", "remount-ro") < 0)
		return err_sys(err, "configure ext4");
	*ret_mount_fd = mounts_fsmount(fs, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	return *ret_mount_fd < 0 ? mount_failed(file_fd, err) : 0;
}

int ext4_image_mount(int file_fd, int *ret_mount_fd, struct err *err)
{
	auto_fd int loop = -1;
	char device[32];
	int r;

	/* The lock belongs to the open file, and the loop device holds that from now on. */
	if ((r = lock(file_fd, err)) < 0 || (r = check_room(file_fd, err)) < 0 ||
		(r = check_image(file_fd, err)) < 0 ||
		(r = open_loop(file_fd, false, device, &loop, err)) < 0)
		return r;
	return mount_device(file_fd, device, "barrier", ret_mount_fd, err);
}

int ext4_image_attach(int file_fd, int *ret_loop_fd, struct err *err)
{
	char device[32];
	int r = lock(file_fd, err);

	return r < 0 ? r : open_loop(file_fd, false, device, ret_loop_fd, err);
}

/* From here on a commit waits until all that came before it is on the disk. */
static int set_barrier(int mount_fd, struct err *err)
{
	auto_fd int fs = mounts_fspick(mount_fd);

	if (fs < 0 || mounts_set_flag(fs, "barrier") < 0 || mounts_reconfigure(fs) < 0)
		return err_sys(err, "set the barriers of an image");
	return 0;
}

int ext4_image_mount_attached(int file_fd, int loop_fd, int *ret_mount_fd, struct err *err)
{
	auto_fd int mount = -1;
	struct loop_info64 info;
	char device[32];
	int r;

	if ((r = check_room(file_fd, err)) < 0 || (r = check_image(file_fd, err)) < 0)
		return r;
	/* Whoever looked at the device, as udev does, made the kernel keep what was there then. */
	if (ioctl(loop_fd, LOOP_GET_STATUS64, &info) < 0 || ioctl(loop_fd, BLKFLSBUF, 0) < 0)
		return err_sys(err, "look at a loop device");
	snprintf(device, sizeof(device), "/dev/loop%u", info.lo_number);
	/* A mount notes in the superblock that there is one, and would wait for the whole image with that. */
	if ((r = mount_device(file_fd, device, "nobarrier", &mount, err)) < 0 ||
		(r = set_barrier(mount, err)) < 0)
		return r;
	*ret_mount_fd = take_fd(&mount);
	return 0;
}

int ext4_image_mount_read_only(int file_fd, int *ret_mount_fd, struct err *err)
{
	auto_fd int loop = -1, fs = -1;
	char device[32];
	int r;

	if (!ext4_image_is_clean(file_fd))
		return err_set(err, ERR_INTERNAL, "the copy of a disk is damaged");
	r = open_loop(file_fd, true, device, &loop, err);
	if (r < 0)
		return r;
	fs = mounts_fsopen("ext4");
	if (fs < 0 || mounts_set_string(fs, "source", device) < 0 ||
		mounts_set_flag(fs, "ro") < 0 || mounts_set_flag(fs, "noload") < 0 ||
		mounts_set_flag(fs, "no_prefetch_block_bitmaps") < 0)
		return err_sys(err, "configure ext4");
	*ret_mount_fd =
		mounts_fsmount(fs, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	return *ret_mount_fd < 0 ? err_sys(err, "mount the copy of a disk") : 0;
}

/* The name of the loop device that fd is on. */
static int find_device(int fd, char name[DEVICE_LEN], struct err *err)
{
	char link[64], target[256];
	const char *last;
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) < 0)
		return err_sys(err, "look at an image");
	snprintf(link, sizeof(link), "/sys/dev/block/%u:%u", major(st.st_dev), minor(st.st_dev));
	n = readlink(link, target, sizeof(target) - 1);
	if (n < 0)
		return err_sys(err, "read %s", link);
	target[n] = '\0';
	last = strrchr(target, '/');
	snprintf(name, DEVICE_LEN, "%s", last ? last + 1 : target);
	return 0;
}

int ext4_image_open_limit(int fd, int *ret_limit_fd, struct err *err)
{
	char device[DEVICE_LEN], path[96];
	int r = find_device(fd, device, err);

	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "/sys/fs/ext4/%s/reserved_clusters", device);
	*ret_limit_fd = open(path, O_WRONLY | O_CLOEXEC);
	return *ret_limit_fd < 0 ? err_sys(err, "open %s", path) : 0;
}

bool ext4_image_has_failed(int fd)
{
	char device[DEVICE_LEN], path[96], text[32];
	struct err ignored;

	if (find_device(fd, device, &ignored) < 0)
		return false;
	snprintf(path, sizeof(path), "/sys/fs/ext4/%s/errors_count", device);
	return fd_read_file(AT_FDCWD, path, text, sizeof(text)) > 0 && strtoul(text, NULL, 10) > 0;
}

int ext4_image_set_limit(int fd, int limit_fd, uint64_t bytes, struct err *err)
{
	struct statfs disk;
	uint64_t all, wanted;
	char text[32];
	size_t len;

	if (fstatfs(fd, &disk) < 0)
		return err_sys(err, "look at an image");
	all = disk.f_blocks;
	wanted = bytes / (uint64_t)disk.f_bsize;
	len = format_append(text, sizeof(text), 0, "%llu",
		(unsigned long long)(wanted < all ? all - wanted : 0));
	if (write(limit_fd, text, len) != (ssize_t)len)
		return err_sys(err, "limit an image");
	return 0;
}

void ext4_image_usage(int fd, struct keeper_stats *stats)
{
	struct statfs disk;

	if (fstatfs(fd, &disk) < 0)
		return;
	stats->disk_bytes = (disk.f_blocks - disk.f_bfree) * (uint64_t)disk.f_bsize;
	stats->disk_files = disk.f_files - disk.f_ffree;
	stats->disk_files_limit = disk.f_files;
}

/* What an image may hold beside its files: journal, bitmaps, and tables of inodes. */
static uint64_t bookkeeping_bytes(const struct keeper_stats *usage)
{
	return BOOKKEEPING + usage->disk_files * INODE_BYTES;
}

bool ext4_image_is_bloated(int file_fd, int fd)
{
	struct keeper_stats usage = {0};
	struct stat st;

	ext4_image_usage(fd, &usage);
	return fstat(file_fd, &st) == 0 &&
	       (uint64_t)st.st_blocks * 512 >= usage.disk_bytes + bookkeeping_bytes(&usage);
}

/*
 * Trims the groups of blocks that the file has data in. ext4 looks into all groups that it is asked
 * to trim, and most of an image is one hole.
 */
static int trim_groups(int file_fd, int fd)
{
	off_t at = 0;

	while ((at = lseek(file_fd, at, SEEK_DATA)) >= 0) {
		struct fstrim_range group = {
			.start = (uint64_t)(at - at % GROUP_BYTES), .len = GROUP_BYTES};

		if (ioctl(fd, FITRIM, &group) < 0)
			return -errno;
		at += GROUP_BYTES - at % GROUP_BYTES; /* len is what was trimmed */
	}
	return errno == ENXIO ? 0 : -errno; /* no data beyond */
}

int ext4_image_trim(int file_fd, int fd)
{
	/* What was freed just now counts as free when it is committed; and in an image that failed, too,
	 * although it never was. */
	if (syncfs(fd) < 0)
		return -errno;
	if (ext4_image_has_failed(fd))
		return -EIO;
	return trim_groups(file_fd, fd);
}

void ext4_image_go_direct(int fd)
{
	char device[DEVICE_LEN], path[48];
	auto_fd int loop = -1;
	struct err err;

	if (find_device(fd, device, &err) < 0)
		return;
	snprintf(path, sizeof(path), "/dev/%s", device);
	loop = open(path, O_RDONLY | O_CLOEXEC);
	/* Not every file system of a host can; then it stays as it is. */
	if (loop >= 0)
		(void)!ioctl(loop, LOOP_SET_DIRECT_IO, 1ul);
}

void ext4_image_shutdown(int fd)
{
	uint32_t how = EXT4_SHUTDOWN_NOLOG;

	/* If it fails, the unmount only takes longer. */
	(void)!ioctl(fd, EXT4_SHUTDOWN, &how);
}
