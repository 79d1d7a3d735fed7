/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An image, mounted for real: limits, figures, the lock, and what is given back. Only root can mount:
 * without root nothing here is proven, and the test says so by failing.
 */
#include "keeper/disk/ext4_image.h"

#include "base/fd.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmocka.h>

#define MI (1ull << 20)

struct mounted {
	int file, mount, limit_fd; /* mount is its root directory */
	char name[64];		   /* of the file, while the test runs */
};

/* What is mounted is a place only; this opens the directory. */
static int mount_image(int file, int *ret_fd, struct err *err)
{
	auto_fd int mount = -1;
	int r = ext4_image_mount(file, &mount, err);

	if (r == 0)
		*ret_fd = openat(mount, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return r;
}

static int setup(void **state)
{
	struct mounted *mounted = mem_new(sizeof(*mounted));
	auto_fd int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct err err = {0};
	char path[64];

	log_open("test", LOG_ERROR);
	if (ext4_image_make(tmp, &mounted->file, &err) < 0 ||
		mount_image(mounted->file, &mounted->mount, &err) < 0 ||
		ext4_image_open_limit(mounted->mount, &mounted->limit_fd, &err) < 0) {
		print_error("%s\n", err.message);
		return -1;
	}
	snprintf(mounted->name, sizeof(mounted->name), "/tmp/sandlot-image-%d", getpid());
	snprintf(path, sizeof(path), "/proc/self/fd/%d", mounted->file);
	*state = mounted;
	return linkat(AT_FDCWD, path, AT_FDCWD, mounted->name, AT_SYMLINK_FOLLOW);
}

static int teardown(void **state)
{
	struct mounted *mounted = *state;

	unlink(mounted->name);
	fd_close(mounted->limit_fd);
	fd_close(mounted->mount);
	fd_close(mounted->file);
	free(mounted);
	return 0;
}

static uint64_t host_bytes(const struct mounted *mounted)
{
	struct stat st;

	assert_int_equal(stat(mounted->name, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

/* Writes until it may not, or max; how much it was. */
static uint64_t fill(int dirfd, const char *name, uint64_t max)
{
	auto_fd int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	static const char zeros[4096] = {1};
	uint64_t written = 0;

	assert_true(fd >= 0);
	while (written < max && write(fd, zeros, sizeof(zeros)) == (ssize_t)sizeof(zeros))
		written += sizeof(zeros);
	if (written < max)
		assert_int_equal(errno, ENOSPC);
	return written;
}

static void a_blank_takes_next_to_nothing(void **state)
{
	struct mounted *mounted = *state;
	struct keeper_stats usage = {0};

	ext4_image_usage(mounted->mount, &usage);
	assert_true(usage.disk_bytes < MI);
	assert_int_equal(usage.disk_files_limit, 262144);
	assert_true(host_bytes(mounted) < MI);
}

static void the_limit_holds_for_root_and_moves_both_ways(void **state)
{
	struct mounted *mounted = *state;
	struct keeper_stats usage = {0};
	struct err err;
	uint64_t written;

	assert_int_equal(ext4_image_set_limit(mounted->mount, mounted->limit_fd, 8 * MI, &err), 0);
	written = fill(mounted->mount, "a", 1 << 30);
	assert_true(written > 7 * MI && written <= 8 * MI);
	assert_int_equal(ext4_image_set_limit(mounted->mount, mounted->limit_fd, 16 * MI, &err), 0);
	written += fill(mounted->mount, "b", 1 << 30);
	assert_true(written > 15 * MI && written <= 16 * MI);
	ext4_image_usage(mounted->mount, &usage);
	assert_true(usage.disk_bytes >= written && usage.disk_bytes <= 16 * MI);
	assert_int_equal(ext4_image_set_limit(mounted->mount, mounted->limit_fd, 4 * MI, &err), 0);
	assert_int_equal(fill(mounted->mount, "c", MI), 0);
	assert_int_equal(
		ext4_image_set_limit(mounted->mount, mounted->limit_fd, 2 * EXT4_IMAGE_BYTES, &err),
		0);
	assert_int_equal(fill(mounted->mount, "c", 64 * MI), 64 * MI);
}

static void nobody_else_can_have_it_until_the_mount_is_gone(void **state)
{
	struct mounted *mounted = *state;
	auto_fd int other = open(mounted->name, O_RDWR | O_CLOEXEC);
	struct err err;

	/* Not even when all descriptors of the file are closed. */
	fd_close(take_fd(&mounted->file));
	assert_int_equal(flock(other, LOCK_EX | LOCK_NB), -1);
	assert_int_equal(errno, EWOULDBLOCK);
	fill(mounted->mount, "kept", MI);
	fd_close(take_fd(&mounted->limit_fd));
	fd_close(take_fd(&mounted->mount));
	assert_int_equal(mount_image(other, &mounted->mount, &err), 0);
	assert_int_equal(faccessat(mounted->mount, "kept", F_OK, 0), 0);
}

static void what_is_free_goes_back_to_the_host(void **state)
{
	struct mounted *mounted = *state;

	fill(mounted->mount, "a", 64 * MI);
	assert_int_equal(syncfs(mounted->mount), 0);
	assert_true(host_bytes(mounted) > 64 * MI);
	assert_false(ext4_image_is_bloated(mounted->file, mounted->mount));
	assert_int_equal(ext4_image_trim(mounted->file, mounted->mount), 0);
	assert_true(host_bytes(mounted) > 64 * MI);
	assert_int_equal(unlinkat(mounted->mount, "a", 0), 0);
	assert_int_equal(syncfs(mounted->mount), 0);
	assert_true(ext4_image_is_bloated(mounted->file, mounted->mount));
	assert_int_equal(ext4_image_trim(mounted->file, mounted->mount), 0);
	assert_true(host_bytes(mounted) < 32 * MI);
}

/* How many blocks of the image are full of that byte. */
static unsigned count_blocks(const char *name, char byte)
{
	auto_fd int fd = open(name, O_RDONLY | O_CLOEXEC);
	char wanted[4096], block[4096];
	unsigned count = 0;
	off_t at = 0;

	assert_true(fd >= 0);
	memset(wanted, byte, sizeof(wanted));
	while ((at = lseek(fd, at, SEEK_DATA)) >= 0) {
		if (pread(fd, block, sizeof(block), at) == (ssize_t)sizeof(block))
			count += memcmp(block, wanted, sizeof(block)) == 0;
		at += sizeof(block);
	}
	return count;
}

static void write_blocks(int dirfd, const char *name, char byte, unsigned count)
{
	auto_fd int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	char block[4096];

	assert_true(fd >= 0);
	memset(block, byte, sizeof(block));
	while (count-- > 0)
		assert_int_equal(write(fd, block, sizeof(block)), sizeof(block));
}

/* As ext4 does when the host has no room for what it has to write. */
static void fail_image(int fd)
{
	auto_fd int trigger = -1;
	struct stat st;
	char link[64], target[256] = "", path[384];

	assert_int_equal(fstat(fd, &st), 0);
	snprintf(link, sizeof(link), "/sys/dev/block/%u:%u", major(st.st_dev), minor(st.st_dev));
	assert_true(readlink(link, target, sizeof(target) - 1) > 0);
	snprintf(path, sizeof(path), "/sys/fs/ext4/%s/trigger_fs_error", strrchr(target, '/') + 1);
	trigger = open(path, O_WRONLY | O_CLOEXEC);
	assert_int_equal(write(trigger, "test", 4), 4);
	assert_true(ext4_image_has_failed(fd));
}

static void what_was_deleted_when_it_failed_is_still_there(void **state)
{
	struct mounted *mounted = *state;
	auto_fd int other = open(mounted->name, O_RDWR | O_CLOEXEC);

	write_blocks(mounted->mount, "kept", 'k', 64);
	write_blocks(mounted->mount, "replaced", 'r', 64);
	assert_int_equal(syncfs(mounted->mount), 0);
	assert_int_equal(unlinkat(mounted->mount, "kept", 0), 0);
	write_blocks(mounted->mount, "new", 'n', 1);
	assert_int_equal(renameat(mounted->mount, "new", mounted->mount, "replaced"), 0);
	fail_image(mounted->mount);
	assert_true(ext4_image_trim(mounted->file, mounted->mount) < 0);
	fd_close(take_fd(&mounted->limit_fd));
	fd_close(take_fd(&mounted->mount));
	fd_close(take_fd(&mounted->file));
	assert_int_equal(flock(other, LOCK_EX), 0); /* it is unmounted */
	assert_false(ext4_image_is_clean(other));
	assert_int_equal(count_blocks(mounted->name, 'k'), 64);
	assert_int_equal(count_blocks(mounted->name, 'r'), 64);
}

static void files_survive_the_change_to_direct_io(void **state)
{
	struct mounted *mounted = *state;
	auto_fd int fd = -1;
	char bytes[2] = "";

	fill(mounted->mount, "before", MI);
	ext4_image_go_direct(mounted->mount);
	assert_int_equal(fill(mounted->mount, "after", MI), MI);
	assert_int_equal(syncfs(mounted->mount), 0);
	fd = openat(mounted->mount, "before", O_RDONLY | O_CLOEXEC);
	assert_int_equal(pread(fd, bytes, 1, 4096), 1);
	assert_int_equal(bytes[0], 1);
}

/* Reads a piece of a file, of its disk or through the host's page cache. */
static void read_piece(int file, int flags, off_t at, char *piece)
{
	auto_fd int fd = -1;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	fd = open(path, O_RDONLY | O_CLOEXEC | flags);
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, piece, MI, at), MI);
}

/* Compares what is there. */
static void assert_cache_is_true(int file)
{
	char *cached = aligned_alloc(4096, MI), *direct = aligned_alloc(4096, MI);
	off_t at = 0;

	while ((at = lseek(file, at, SEEK_DATA)) >= 0) {
		at -= at % (off_t)MI;
		read_piece(file, 0, at, cached);
		read_piece(file, O_DIRECT, at, direct);
		assert_memory_equal(cached, direct, MI);
		at += (off_t)MI;
	}
	free(cached);
	free(direct);
}

static void scribble(int dirfd, const char *name, int value)
{
	auto_fd int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	char block[4096];

	assert_true(fd >= 0);
	memset(block, value, sizeof(block));
	for (int i = 0; i < 512; i++)
		assert_int_equal(
			pwrite(fd, block, sizeof(block), i * (off_t)sizeof(block)), sizeof(block));
}

/* Copies are read through that cache (image_copy.h). */
static void the_hosts_cache_forgets_what_is_written_past_it(void **state)
{
	struct mounted *mounted = *state;

	ext4_image_go_direct(mounted->mount);
	for (int round = 0; round < 4; round++) {
		char name[] = {(char)('a' + round), '\0'};

		scribble(mounted->mount, name, round);
		scribble(mounted->mount, "the same", round); /* over what is in the cache */
		assert_int_equal(syncfs(mounted->mount), 0);
		assert_cache_is_true(mounted->file);
	}
}

static void one_that_is_forsaken_takes_no_more_writes(void **state)
{
	struct mounted *mounted = *state;

	ext4_image_shutdown(mounted->mount);
	assert_true(openat(mounted->mount, "a", O_WRONLY | O_CREAT | O_CLOEXEC, 0600) < 0);
	assert_int_equal(errno, EIO);
}

/* Writes a number of two bytes into the superblock. */
static void poke(int file, off_t at, uint16_t value)
{
	assert_int_equal(pwrite(file, &value, sizeof(value), 1024 + at), sizeof(value));
}

/* An image that is not mounted. */
static int make(void)
{
	auto_fd int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct err err;
	int file;

	assert_int_equal(ext4_image_make(tmp, &file, &err), 0);
	return file;
}

static void what_the_superblock_says_of_it_decides(void **state)
{
	static const struct {
		off_t at;
		uint16_t value;
	} bad[] = {{56, 0}, {58, 0}, {58, 3}, {58, 2}, {96, 0x0244 | 4}};

	(void)state;
	for (size_t i = 0; i < array_len(bad); i++) {
		auto_fd int file = make();
		struct err err;
		int mount;

		assert_true(ext4_image_is_clean(file));
		assert_int_equal(ext4_image_lend(file, 1, &err), 0);
		poke(file, bad[i].at, bad[i].value);
		assert_false(ext4_image_is_clean(file));
		assert_true(ext4_image_mount(file, &mount, &err) < 0);
		assert_string_equal(err.code, KEEPER_UNCHECKED);
	}
}

static void one_that_is_lent_is_its_borrowers_until_it_is_mounted(void **state)
{
	auto_fd int file = make(), mount = -1;
	struct stat st;
	struct err err;

	(void)state;
	poke(file, 58, 2);
	assert_int_equal(ext4_image_lend(file, 12345, &err), 1);
	assert_int_equal(fstat(file, &st), 0);
	assert_int_equal(st.st_uid, 12345);
	poke(file, 58, 1); /* as e2fsck leaves it */
	assert_int_equal(ext4_image_mount(file, &mount, &err), 0);
	assert_int_equal(fstat(file, &st), 0);
	assert_int_equal(st.st_uid, 0);
}

static void one_that_the_kernel_does_not_mount_is_remembered_as_such(void **state)
{
	auto_fd int file = make();
	struct err err;
	int mount;

	(void)state;
	poke(file, 136, 1); /* the checksum of the superblock is wrong now */
	for (int i = 0; i < 2; i++) {
		assert_true(ext4_image_is_clean(file));
		assert_true(ext4_image_mount(file, &mount, &err) < 0);
		assert_string_equal(err.code, KEEPER_UNCHECKED);
	}
	assert_int_equal(ext4_image_lend(file, 12345, &err), 1);
}

#define MOUNTED(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		MOUNTED(a_blank_takes_next_to_nothing),
		MOUNTED(the_limit_holds_for_root_and_moves_both_ways),
		MOUNTED(nobody_else_can_have_it_until_the_mount_is_gone),
		MOUNTED(what_is_free_goes_back_to_the_host),
		MOUNTED(what_was_deleted_when_it_failed_is_still_there),
		MOUNTED(files_survive_the_change_to_direct_io),
		MOUNTED(the_hosts_cache_forgets_what_is_written_past_it),
		MOUNTED(one_that_is_forsaken_takes_no_more_writes),
		cmocka_unit_test(what_the_superblock_says_of_it_decides),
		cmocka_unit_test(one_that_is_lent_is_its_borrowers_until_it_is_mounted),
		cmocka_unit_test(one_that_the_kernel_does_not_mount_is_remembered_as_such),
	};

	if (geteuid() != 0) {
		fprintf(stderr, "not proven: images can only be mounted by root\n");
		return 1;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
