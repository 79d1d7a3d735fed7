/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of sparse files, past the cache and, in memory where that cannot be on older kernels, through it: the same bytes, and
 * the same holes.
 */
#include "keeper/disk/image_copy.h"

#include "base/fd.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define MI   (1ull << 20)
#define SIZE (2048 * MI)

/* Where a file has data: many pieces, one that is longer than a piece, and the last block. */
static const struct {
	uint64_t at, len;
} parts[] = {{0, 8192}, {64 * MI, 4096}, {65 * MI, 11 * MI}, {1000 * MI + 12288, 5 * MI + 4096},
	{1500 * MI, 4 * MI}, {SIZE - 4096, 4096}};

static const enum image_copy_way ways[] = {IMAGE_COPY_CACHED, IMAGE_COPY_BEGUN, IMAGE_COPY_DIRECT};

static int open_place(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static void fill(char *block, uint64_t at)
{
	for (size_t i = 0; i < 4096; i++)
		block[i] = (char)(at / 4096 * 7 + i * 13 + 1);
}

static int make_file(int dirfd)
{
	int fd = openat(dirfd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	char block[4096];

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)SIZE), 0);
	for (size_t i = 0; i < array_len(parts); i++) {
		for (uint64_t at = parts[i].at; at < parts[i].at + parts[i].len; at += 4096) {
			fill(block, at);
			assert_int_equal(pwrite(fd, block, 4096, (off_t)at), 4096);
		}
	}
	return fd;
}

static void assert_same(int copy)
{
	char wanted[4096], found[4096];
	struct stat st;

	assert_int_equal(fstat(copy, &st), 0);
	assert_int_equal((uint64_t)st.st_size, SIZE);
	assert_true((uint64_t)st.st_blocks * 512 < 22 * MI); /* its holes are holes */
	for (size_t i = 0; i < array_len(parts); i++) {
		for (uint64_t at = parts[i].at; at < parts[i].at + parts[i].len; at += 4096) {
			fill(wanted, at);
			assert_int_equal(pread(copy, found, 4096, (off_t)at), 4096);
			assert_memory_equal(wanted, found, 4096);
		}
	}
	/* Not only by whole blocks. */
	assert_int_equal(pread(copy, found, 10, 1), 10);
}

static void copy_in(const char *path)
{
	auto_fd int place = open_place(path), from = make_file(place);
	struct err err = {0};

	for (size_t i = 0; i < array_len(ways); i++) {
		auto_fd int copy = -1;

		assert_int_equal(image_copy_make(from, place, ways[i], &copy, NULL, &err), 0);
		assert_same(copy);
		assert_int_equal(fcntl(from, F_GETFL) & O_DIRECT, 0);
		assert_int_equal(fcntl(copy, F_GETFL) & O_DIRECT, 0);
		assert_true(waitpid(-1, NULL, WNOHANG) < 0); /* no copier is left */
	}
}

static void test_copies(void **state)
{
	(void)state;
	copy_in("/var/tmp");
	copy_in("/dev/shm");
}

static void test_what_was_not_written_yet_is_copied(void **state)
{
	auto_fd int place = open_place("/var/tmp"), from = make_file(place), copy = -1;
	struct err err = {0};
	char byte;

	(void)state;
	assert_int_equal(fsync(from), 0);
	assert_int_equal(pwrite(from, "!", 1, (off_t)(65 * MI)), 1);
	assert_int_equal(image_copy_make(from, place, IMAGE_COPY_DIRECT, &copy, NULL, &err), 0);
	assert_int_equal(pread(copy, &byte, 1, (off_t)(65 * MI)), 1);
	assert_int_equal(byte, '!');
}

static void test_a_signal_ends_it(void **state)
{
	auto_fd int place = open_place("/var/tmp"), from = make_file(place);
	struct err err = {0};
	sigset_t term;

	(void)state;
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	assert_int_equal(sigprocmask(SIG_BLOCK, &term, NULL), 0);
	raise(SIGTERM);
	for (size_t i = 0; i < array_len(ways); i++) {
		int copy = -1;

		assert_int_equal(image_copy_make(from, place, ways[i], &copy, NULL, &err), -EINTR);
		assert_int_equal(copy, -1);
		assert_true(waitpid(-1, NULL, WNOHANG) < 0);
	}
	assert_int_equal(sigwaitinfo(&term, NULL), SIGTERM);
}

static int setup(void **state)
{
	(void)state;
	log_open("test", LOG_ERROR);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_copies),
		cmocka_unit_test(test_what_was_not_written_yet_is_copied),
		cmocka_unit_test(test_a_signal_ends_it),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
