/* SPDX-License-Identifier: Apache-2.0 */
/* e2fsck of real images (driver/native/disk_check.c), and what its child can do. */
#include "driver/native/disk_check.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define STATE_AT (1024 + 58)

/* A file system of 4 MiB, which says of itself that errors were met or not. */
static int make_image(bool has_errors)
{
	char path[] = "/tmp/sandlot-check-XXXXXX", command[256];
	int fd = mkostemp(path, O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 4 << 20), 0);
	snprintf(command, sizeof(command),
		"PATH=$PATH:/usr/sbin:/sbin; mke2fs -q -F -t ext4 -O metadata_csum %s && "
		"debugfs -w -R 'set_super_value state %d' %s 2>/dev/null",
		path, has_errors ? 2 : 1, path);
	assert_int_equal(system(command), 0);
	assert_int_equal(unlink(path), 0);
	return fd;
}

static uint16_t state_of(int image)
{
	uint16_t value = 0;

	assert_int_equal(pread(image, &value, sizeof(value), STATE_AT), sizeof(value));
	return value;
}

static void one_that_is_in_order_stays_so(void **state)
{
	auto_fd int image = make_image(false);
	struct err err;

	(void)state;
	assert_int_equal(disk_check_run(image, &err), 0);
	assert_int_equal(state_of(image), 1);
}

static void one_with_errors_is_mended(void **state)
{
	auto_fd int image = make_image(true);
	struct err err;

	(void)state;
	assert_int_equal(state_of(image), 2);
	assert_int_equal(disk_check_run(image, &err), 0);
	assert_int_equal(state_of(image), 1);
}

static void what_is_no_file_system_cannot_be_mended_and_stays_as_it_is(void **state)
{
	static const uint8_t noise[64] = {1, 2, 3};
	char path[] = "/tmp/sandlot-check-XXXXXX";
	auto_fd int image = mkostemp(path, O_CLOEXEC);
	uint8_t after[64];
	struct err err;

	(void)state;
	assert_int_equal(unlink(path), 0);
	assert_int_equal(ftruncate(image, 4 << 20), 0);
	assert_int_equal(pwrite(image, noise, sizeof(noise), 1024), sizeof(noise));
	assert_int_equal(disk_check_run(image, &err), -EEXIST);
	assert_string_equal(err.code, "disk_damaged");
	assert_int_equal(pread(image, after, sizeof(after), 1024), sizeof(after));
	assert_memory_equal(after, noise, sizeof(noise));
}

/* Whether this kernel has Landlock. */
static bool has_landlock(void)
{
	return syscall(SYS_landlock_create_ruleset, NULL, 0, 1) > 0;
}

/* A bit for each thing that could be done. */
static unsigned try_all(bool files_are_closed)
{
	unsigned done = 0;

	if (socket(AF_UNIX, SOCK_STREAM, 0) >= 0)
		done |= 1;
	if (syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) >= 0)
		done |= 2;
	if (kill(getppid(), 0) == 0)
		done |= 4;
	if (files_are_closed && open("/etc/passwd", O_RDONLY) >= 0)
		done |= 8;
	if (files_are_closed && open("/tmp", O_TMPFILE | O_RDWR, 0600) >= 0)
		done |= 16;
	if (pwrite(3, "x", 1, 0) != 1)
		done |= 32;
	return done;
}

static void its_child_has_the_image_and_nothing_else(void **state)
{
#ifdef __SANITIZE_ADDRESS__
	skip(); /* a confined child may not map the memory that the sanitizer wants there */
#endif
	auto_fd int image = make_image(false);
	bool files_are_closed = has_landlock();
	pid_t pid = fork();
	int status;

	(void)state;
	if (pid == 0)
		_exit(disk_check_confine(image) < 0 ? 255 : (int)try_all(files_are_closed));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_that_is_in_order_stays_so),
		cmocka_unit_test(one_with_errors_is_mended),
		cmocka_unit_test(what_is_no_file_system_cannot_be_mended_and_stays_as_it_is),
		cmocka_unit_test(its_child_has_the_image_and_nothing_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
