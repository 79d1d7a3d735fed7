/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies that nobody waited for: whole ones, and such as a failure of power leaves. Only root may mark a file: without root
 * nothing here is proven, and the test says so by failing.
 */
#include "keeper/disk/late_copy.h"

#include "base/fd.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#define KI 1024ll

static int make_copy(void)
{
	int fd = open("/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	char block[4096] = "data";

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 1024 * KI), 0);
	for (int i = 0; i < 32; i++)
		assert_int_equal(pwrite(fd, block, sizeof(block), i * 8 * KI), sizeof(block));
	return fd;
}

static void test_a_copy_without_a_mark_is_on_the_disk(void **state)
{
	auto_fd int fd = make_copy();

	(void)state;
	assert_int_equal(late_copy_look(fd), LATE_COPY_WRITTEN);
}

static void test_a_marked_copy_is_whole_and_loses_its_mark_when_it_is_written(void **state)
{
	auto_fd int fd = make_copy();
	struct err err = {0};

	(void)state;
	assert_int_equal(late_copy_mark(fd), 0);
	assert_int_equal(late_copy_look(fd), LATE_COPY_WHOLE);
	assert_int_equal(fsync(fd), 0);
	assert_int_equal(late_copy_look(fd), LATE_COPY_WHOLE);
	assert_int_equal(late_copy_write(fd, &err), 0);
	assert_int_equal(late_copy_look(fd), LATE_COPY_WRITTEN);
}

static void test_a_copy_that_lacks_a_block_is_torn(void **state)
{
	auto_fd int fd = make_copy();

	(void)state;
	assert_int_equal(late_copy_mark(fd), 0);
	assert_int_equal(
		fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 16 * KI, 4 * KI), 0);
	assert_int_equal(late_copy_look(fd), LATE_COPY_TORN);
}

/* What a file system allots before it writes, and has not written when the host fails. */
static void test_a_copy_with_a_block_that_was_never_written_is_torn(void **state)
{
	auto_fd int fd = make_copy();

	(void)state;
	assert_int_equal(late_copy_mark(fd), 0);
	assert_int_equal(
		fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 16 * KI, 4 * KI), 0);
	assert_int_equal(fallocate(fd, FALLOC_FL_KEEP_SIZE, 16 * KI, 4 * KI), 0);
	assert_int_equal(late_copy_look(fd), LATE_COPY_TORN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_copy_without_a_mark_is_on_the_disk),
		cmocka_unit_test(test_a_marked_copy_is_whole_and_loses_its_mark_when_it_is_written),
		cmocka_unit_test(test_a_copy_that_lacks_a_block_is_torn),
		cmocka_unit_test(test_a_copy_with_a_block_that_was_never_written_is_torn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
