/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon's report of its host: what is read in files is read anew, what was tried stays. */
#include "base/fd.h"
#include "doctor/host_report.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char root[] = "/tmp/sandlot-report-XXXXXX";
static int root_fd;

static void put(const char *path, const char *text)
{
	auto_fd int fd = openat(root_fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_full(fd, text, strlen(text)), 0);
}

static size_t find(const char *name)
{
	for (size_t i = 0; i < host_check_count; i++) {
		if (strcmp(host_checks[i].name, name) == 0)
			return i;
	}
	fail_msg("there is no check %s", name);
	return 0;
}

static void a_problem_that_was_mended_shows_at_once(void **state)
{
	struct host_report *report;
	struct finding f;
	struct err err;

	(void)state;
	put("proc/sys/kernel/core_pattern", "|/usr/lib/handler\n");
	assert_int_equal(host_report_open(root_fd, 42, &report, &err), 0);
	assert_int_equal(report->looked_ms, 42);
	host_report_get(report, find("core-pattern"), &f);
	assert_int_equal(f.level, FINDING_WARN);
	put("proc/sys/kernel/core_pattern", "core\n");
	host_report_get(report, find("core-pattern"), &f);
	assert_int_equal(f.level, FINDING_OK);
	host_report_close(report);
	host_report_close(NULL);
}

static void what_was_tried_is_as_it_was_at_the_start(void **state)
{
	struct host_report *report;
	struct finding f;
	struct err err;

	(void)state;
	assert_int_equal(host_report_open(root_fd, 42, &report, &err), 0);
	report->findings[find("user-namespace")] =
		(struct finding){.level = FINDING_FAIL, .fact = "kept"};
	host_report_get(report, find("user-namespace"), &f);
	assert_string_equal(f.fact, "kept");
	host_report_close(report);
}

static int make_root(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(root));
	root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(
			mkdirat(root_fd, (const char *[]){"proc", "proc/sys", "proc/sys/kernel"}[i],
				0755),
			0);
	return 0;
}

static int remove_root(void **state)
{
	(void)state;
	assert_int_equal(unlinkat(root_fd, "proc/sys/kernel/core_pattern", 0), 0);
	for (size_t i = 3; i-- > 0;)
		assert_int_equal(unlinkat(root_fd,
					 (const char *[]){"proc", "proc/sys", "proc/sys/kernel"}[i],
					 AT_REMOVEDIR),
			0);
	close(root_fd);
	return rmdir(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_problem_that_was_mended_shows_at_once),
		cmocka_unit_test(what_was_tried_is_as_it_was_at_the_start),
	};

	return cmocka_run_group_tests(tests, make_root, remove_root);
}
