/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"
#include "base/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define MEMORY_MAX (32u * 1024) /* what is held in memory */

static char dir_path[64];
static int dir_fd = -1;

static int setup(void **state)
{
	(void)state;
	snprintf(dir_path, sizeof(dir_path), "/tmp/sandlot-spool-XXXXXX");
	if (!mkdtemp(dir_path))
		return -1;
	dir_fd = open(dir_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir_fd < 0 ? -1 : 0;
}

/* The directory is empty: files have no name. */
static int teardown(void **state)
{
	(void)state;
	close(dir_fd);
	return rmdir(dir_path);
}

static uint8_t byte_at(size_t at)
{
	return (uint8_t)(at * 31 + at / 256);
}

/* Puts bytes that can be told from each other, in pieces of that size. */
static void put(struct spool *spool, size_t from, size_t len, size_t piece)
{
	while (len > 0) {
		uint8_t data[8192];
		size_t n = len < piece ? len : piece;

		assert_true(n <= sizeof(data));
		for (size_t i = 0; i < n; i++)
			data[i] = byte_at(from + i);
		spool_put(spool, data, n);
		from += n;
		len -= n;
	}
}

static void assert_holds(struct spool *spool, size_t len)
{
	uint8_t *data = spool_take(spool);

	assert_non_null(data);
	assert_int_equal(spool->len, len);
	for (size_t i = 0; i < len; i++)
		assert_int_equal(data[i], byte_at(i));
	free(data);
}

static void an_empty_one_gives_nothing_and_is_not_cut(void **state)
{
	struct spool spool;

	(void)state;
	spool_init(&spool, dir_fd, 1000, 0);
	spool_put(&spool, "", 0);
	assert_holds(&spool, 0);
	assert_false(spool.is_cut);
	spool_fini(&spool);
}

static void a_little_is_held_in_memory(void **state)
{
	struct spool spool;

	(void)state;
	spool_init(&spool, -1, 1u << 20, 0); /* a file could not even be made */
	put(&spool, 0, MEMORY_MAX, 1000);
	assert_int_equal(spool.fd, -1);
	assert_holds(&spool, MEMORY_MAX);
	assert_false(spool.is_cut);
	spool_fini(&spool);
}

static void more_goes_to_a_file_without_a_name(void **state)
{
	struct spool spool;
	struct stat st;

	(void)state;
	spool_init(&spool, dir_fd, 1u << 20, 0);
	put(&spool, 0, MEMORY_MAX, 777);
	put(&spool, MEMORY_MAX, 1, 1);
	assert_true(spool.fd >= 0);
	assert_int_equal(fstat(spool.fd, &st), 0);
	assert_int_equal(st.st_nlink, 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_null(spool.head.data); /* it costs no memory now */
	put(&spool, MEMORY_MAX + 1, 300000, 8192);
	assert_holds(&spool, MEMORY_MAX + 300001);
	assert_holds(&spool, MEMORY_MAX + 300001); /* taking changes nothing */
	assert_false(spool.is_cut);
	spool_fini(&spool);
}

static void one_piece_can_be_larger_than_the_memory(void **state)
{
	static uint8_t data[100000];
	struct spool spool;

	(void)state;
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = byte_at(i);
	spool_init(&spool, dir_fd, sizeof(data), 0);
	spool_put(&spool, data, sizeof(data));
	assert_holds(&spool, sizeof(data));
	assert_false(spool.is_cut);
	spool_fini(&spool);
}

static void it_is_cut_where_it_is_full(void **state)
{
	static const size_t maxima[] = {
		0, 1, 100, MEMORY_MAX - 1, MEMORY_MAX, MEMORY_MAX + 1, 50000};

	(void)state;
	for (size_t i = 0; i < array_len(maxima); i++) {
		struct spool spool;

		spool_init(&spool, dir_fd, maxima[i], 0);
		put(&spool, 0, maxima[i], 999);
		assert_false(spool.is_cut); /* just full */
		spool_put(&spool, "x", 1);
		assert_true(spool.is_cut);
		spool_put(&spool, "yz", 2);
		assert_holds(&spool, maxima[i]);
		spool_fini(&spool);
	}
}

static void a_piece_that_fits_in_part_is_taken_in_part(void **state)
{
	struct spool spool;

	(void)state;
	spool_init(&spool, dir_fd, 40000, 0);
	put(&spool, 0, 48000, 8000);
	assert_true(spool.is_cut);
	assert_holds(&spool, 40000);
	spool_fini(&spool);
}

static void where_no_file_can_be_made_it_is_cut_at_what_memory_holds(void **state)
{
	int proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct spool spool;

	(void)state;
	spool_init(&spool, proc_fd, 1u << 20, 0);
	put(&spool, 0, 30000, 1000);
	assert_false(spool.is_cut);
	put(&spool, 30000, 8000, 8000);
	assert_true(spool.is_cut);
	put(&spool, 30000, 5, 5); /* nothing comes after a hole */
	assert_holds(&spool, 30000);
	spool_fini(&spool);
	close(proc_fd);
}

static void below_the_reserve_of_the_disk_it_is_cut_at_what_memory_holds(void **state)
{
	struct spool spool;

	(void)state;
	spool_init(&spool, dir_fd, 1u << 20, UINT64_MAX);
	put(&spool, 0, 40000, 1000);
	assert_true(spool.is_cut);
	assert_int_equal(spool.fd, -1);
	assert_holds(&spool, MEMORY_MAX / 1000 * 1000);
	spool_fini(&spool);
	/* Also one that has a file already. */
	spool_init(&spool, dir_fd, 1u << 20, 0);
	put(&spool, 0, 40000, 1000);
	assert_false(spool.is_cut);
	spool.disk_reserve = UINT64_MAX;
	put(&spool, 40000, 1000, 1000);
	assert_true(spool.is_cut);
	assert_holds(&spool, 40000);
	spool_fini(&spool);
}

static void a_file_that_cannot_grow_is_cut_where_it_stopped(void **state)
{
	struct rlimit old, low = {.rlim_cur = 50000, .rlim_max = RLIM_INFINITY};
	struct spool spool;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	low.rlim_max = old.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
	spool_init(&spool, dir_fd, 1u << 20, 0);
	put(&spool, 0, 48000, 8000);
	put(&spool, 48000, 8000, 8000); /* only 2000 of it fit */
	put(&spool, 56000, 1000, 1000);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_true(spool.is_cut);
	assert_holds(&spool, 48000);
	spool_fini(&spool);
}

static void a_directory_without_space_cuts_it(void **state)
{
	struct spool spool;
	int fd;

	(void)state;
	if (unshare(CLONE_NEWNS) < 0)
		skip();
	assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	assert_int_equal(mount("spool", dir_path, "tmpfs", 0, "size=64k"), 0);
	fd = open(dir_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	spool_init(&spool, fd, 1u << 20, 0);
	put(&spool, 0, 200000, 4096);
	assert_true(spool.is_cut);
	assert_holds(&spool, 65536);
	spool_fini(&spool);
	close(fd);
	assert_int_equal(umount(dir_path), 0);
}

#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		IN_DIR(an_empty_one_gives_nothing_and_is_not_cut),
		IN_DIR(a_little_is_held_in_memory),
		IN_DIR(more_goes_to_a_file_without_a_name),
		IN_DIR(one_piece_can_be_larger_than_the_memory),
		IN_DIR(it_is_cut_where_it_is_full),
		IN_DIR(a_piece_that_fits_in_part_is_taken_in_part),
		IN_DIR(where_no_file_can_be_made_it_is_cut_at_what_memory_holds),
		IN_DIR(below_the_reserve_of_the_disk_it_is_cut_at_what_memory_holds),
		IN_DIR(a_file_that_cannot_grow_is_cut_where_it_stopped),
		IN_DIR(a_directory_without_space_cuts_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
