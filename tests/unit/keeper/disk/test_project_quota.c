/* SPDX-License-Identifier: Apache-2.0 */
/* Where there are no project quotas. Where there are some: tests/e2e/disk_quota.test.mjs. */
#include "keeper/disk/project_quota.h"

#include "base/fd.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* A tmpfs with quotas of projects does not exist. */
static int open_without_quotas(void)
{
	int fd = open("/dev/shm", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static void a_file_system_without_them_is_told_and_left_alone(void **state)
{
	auto_fd int fd = open_without_quotas();
	struct err err = {0};

	(void)state;
	assert_true(project_quota_try(fd, &err) < 0);
	assert_non_null(strstr(err.message, "quotas of projects"));
	assert_int_not_equal(faccessat(fd, "quota-trial", F_OK, AT_SYMLINK_NOFOLLOW), 0);
}

static void a_limit_or_figure_of_it_is_an_error(void **state)
{
	auto_fd int fd = open_without_quotas();
	struct keeper_stats stats = {.disk_bytes = 7};
	struct err err = {0};

	(void)state;
	assert_true(project_quota_set_limit(fd, 1 << 20, 100, &err) < 0);
	assert_true(project_quota_usage(fd, &stats, &err) < 0);
	assert_int_equal(stats.disk_bytes, 7);
}

/* One whose build was cut short before it had a project is thrown away like all others. */
static void the_project_of_all_who_have_none_is_left_alone(void **state)
{
	auto_fd int fd = open_without_quotas();
	struct err err = {0};

	(void)state;
	assert_int_equal(project_quota_set_limit(fd, 0, 0, &err), 0);
	assert_true(project_quota_set_limit(fd, 1 << 20, 100, &err) < 0);
	assert_non_null(strstr(err.message, "without a project"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_system_without_them_is_told_and_left_alone),
		cmocka_unit_test(a_limit_or_figure_of_it_is_an_error),
		cmocka_unit_test(the_project_of_all_who_have_none_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
