/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An image, mounted for real: limits, figures, the lock, and what is given back. Only root can mount:
 * without root nothing here is proven, and the test says so by failing.
 */
#include "keeper/image.h"

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
	int file, mount, knob; /* mount is its root directory */
	char name[64];	       /* of the file, while the test runs */
};

/* What is mounted is a place only; this opens the directory. */
static int mount_image(int file, int *ret_fd, struct err *err)
{
	auto_fd int mount = -1;
	int r = image_mount(file, &mount, err);

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
	if (image_make(tmp, &mounted->file, &err) < 0 ||
		mount_image(mounted->file, &mounted->mount, &err) < 0 ||
		image_open_knob(mounted->mount, &mounted->knob, &err) < 0) {
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
	fd_close(mounted->knob);
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

	image_usage(mounted->mount, &usage);
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

	assert_int_equal(image_set_limit(mounted->mount, mounted->knob, 8 * MI, &err), 0);
	written = fill(mounted->mount, "a", 1 << 30);
	assert_true(written > 7 * MI && written <= 8 * MI);
	assert_int_equal(image_set_limit(mounted->mount, mounted->knob, 16 * MI, &err), 0);
	written += fill(mounted->mount, "b", 1 << 30);
	assert_true(written > 15 * MI && written <= 16 * MI);
	image_usage(mounted->mount, &usage);
	assert_true(usage.disk_bytes >= written && usage.disk_bytes <= 16 * MI);
	assert_int_equal(image_set_limit(mounted->mount, mounted->knob, 4 * MI, &err), 0);
	assert_int_equal(fill(mounted->mount, "c", MI), 0);
	assert_int_equal(image_set_limit(mounted->mount, mounted->knob, 2 * IMAGE_BYTES, &err), 0);
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
	fd_close(take_fd(&mounted->knob));
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
	image_trim(mounted->file, mounted->mount);
	assert_true(host_bytes(mounted) > 64 * MI);
	assert_int_equal(unlinkat(mounted->mount, "a", 0), 0);
	image_trim(mounted->file, mounted->mount);
	assert_true(host_bytes(mounted) < 32 * MI);
}

static void files_survive_the_change_to_direct_io(void **state)
{
	struct mounted *mounted = *state;
	auto_fd int fd = -1;
	char bytes[2] = "";

	fill(mounted->mount, "before", MI);
	image_go_direct(mounted->mount);
	assert_int_equal(fill(mounted->mount, "after", MI), MI);
	assert_int_equal(syncfs(mounted->mount), 0);
	fd = openat(mounted->mount, "before", O_RDONLY | O_CLOEXEC);
	assert_int_equal(pread(fd, bytes, 1, 4096), 1);
	assert_int_equal(bytes[0], 1);
}

static void one_that_is_forsaken_takes_no_more_writes(void **state)
{
	struct mounted *mounted = *state;

	image_forsake(mounted->mount);
	assert_true(openat(mounted->mount, "a", O_WRONLY | O_CREAT | O_CLOEXEC, 0600) < 0);
	assert_int_equal(errno, EIO);
}

#define MOUNTED(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		MOUNTED(a_blank_takes_next_to_nothing),
		MOUNTED(the_limit_holds_for_root_and_moves_both_ways),
		MOUNTED(nobody_else_can_have_it_until_the_mount_is_gone),
		MOUNTED(what_is_free_goes_back_to_the_host),
		MOUNTED(files_survive_the_change_to_direct_io),
		MOUNTED(one_that_is_forsaken_takes_no_more_writes),
	};

	if (geteuid() != 0) {
		fprintf(stderr, "not proven: images can only be mounted by root\n");
		return 1;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
