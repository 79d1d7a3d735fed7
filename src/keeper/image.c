/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/image.h"

#include "base/fd.h"
#include "base/log.h"
#include "image_blank.h"
#include "keeper/mounts.h"

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
#define LOOP_TRIES	    256 /* others take free devices at the same time */
#define BOOKKEEPING	    (32ull << 20)
#define INODE_BYTES	    256
#define EXT4_SHUTDOWN	    _IOR('X', 125, uint32_t)
#define EXT4_SHUTDOWN_NOLOG 2u

int image_make(int dirfd, int *ret_fd, struct err *err)
{
	auto_fd int fd = openat(dirfd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_sys(err, "make an image");
	for (size_t i = 0; i < array_len(image_blank); i++) {
		if (pwrite(fd, image_blank[i], IMAGE_BLANK_BLOCK,
			    (off_t)image_blank_at[i] * IMAGE_BLANK_BLOCK) != IMAGE_BLANK_BLOCK)
			return err_sys(err, "write an image");
	}
	if (ftruncate(fd, IMAGE_BYTES) < 0)
		return err_sys(err, "size an image");
	*ret_fd = take_fd(&fd);
	return 0;
}

/* A loop device of the file, which is free again when nobody has it open or mounted. */
static int open_loop(int file_fd, char path[32], int *ret_fd, struct err *err)
{
	auto_fd int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	const struct loop_config config = {.fd = (uint32_t)file_fd,
		.block_size = IMAGE_BLANK_BLOCK,
		.info = {.lo_flags = LO_FLAGS_AUTOCLEAR}};

	if (control < 0)
		return err_sys(err, "open /dev/loop-control");
	for (int i = 0; i < LOOP_TRIES; i++) {
		int number = ioctl(control, LOOP_CTL_GET_FREE);
		auto_fd int loop = -1;

		if (number < 0)
			return err_sys(err, "find a loop device");
		snprintf(path, 32, "/dev/loop%d", number);
		loop = open(path, O_RDWR | O_CLOEXEC);
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

/* Whoever has it gives it up soon, or runs. */
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

int image_mount(int file_fd, int *ret_mount_fd, struct err *err)
{
	auto_fd int loop = -1, fs = -1;
	char device[32];
	int r;

	/* The lock belongs to the open file, and that to the loop device from now on. */
	r = lock(file_fd, err);
	if (r < 0)
		return r;
	r = open_loop(file_fd, device, &loop, err);
	if (r < 0)
		return r;
	fs = mounts_fsopen("ext4");
	/* `discard` gives the host back what is deleted. The tables of inodes need no zeroing: holes
	 * of a sparse file are zero. Most of its bitmaps will never be looked at. */
	if (fs < 0 || mounts_set_string(fs, "source", device) < 0 ||
		mounts_set_flag(fs, "discard") < 0 || mounts_set_flag(fs, "noinit_itable") < 0 ||
		mounts_set_flag(fs, "no_prefetch_block_bitmaps") < 0 ||
		mounts_set_string(fs, "errors", "remount-ro") < 0)
		return err_sys(err, "configure ext4");
	*ret_mount_fd = mounts_fsmount(fs, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	return *ret_mount_fd < 0 ? err_sys(err, "mount an image") : 0;
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

int image_open_knob(int fd, int *ret_knob_fd, struct err *err)
{
	char device[DEVICE_LEN], path[96];
	int r = find_device(fd, device, err);

	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "/sys/fs/ext4/%s/reserved_clusters", device);
	*ret_knob_fd = open(path, O_WRONLY | O_CLOEXEC);
	return *ret_knob_fd < 0 ? err_sys(err, "open %s", path) : 0;
}

int image_set_limit(int fd, int knob_fd, uint64_t bytes, struct err *err)
{
	struct statfs disk;
	uint64_t all, wanted;
	char text[32];
	int len;

	if (fstatfs(fd, &disk) < 0)
		return err_sys(err, "look at an image");
	all = disk.f_blocks;
	wanted = bytes / (uint64_t)disk.f_bsize;
	len = snprintf(
		text, sizeof(text), "%llu", (unsigned long long)(wanted < all ? all - wanted : 0));
	if (write(knob_fd, text, (size_t)len) != len)
		return err_sys(err, "limit an image");
	return 0;
}

void image_usage(int fd, struct keeper_stats *stats)
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

bool image_is_bloated(int file_fd, int fd)
{
	struct keeper_stats usage = {0};
	struct stat st;

	image_usage(fd, &usage);
	return fstat(file_fd, &st) == 0 &&
	       (uint64_t)st.st_blocks * 512 >= usage.disk_bytes + bookkeeping_bytes(&usage);
}

void image_trim(int file_fd, int fd)
{
	struct fstrim_range all = {.len = UINT64_MAX};

	if (!image_is_bloated(file_fd, fd))
		return;
	/* What was freed just now counts as free when it is committed. */
	if (syncfs(fd) < 0 || ioctl(fd, FITRIM, &all) < 0)
		log_warning("the free blocks of a disk stay: %s", strerror(errno));
}

void image_go_direct(int fd)
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

void image_forsake(int fd)
{
	uint32_t how = EXT4_SHUTDOWN_NOLOG;

	/* Where it fails the end only takes longer. */
	(void)!ioctl(fd, EXT4_SHUTDOWN, &how);
}
