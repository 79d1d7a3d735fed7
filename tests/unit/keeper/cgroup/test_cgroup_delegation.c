/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/cgroup/cgroup_delegation.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char hybrid[] = "9:name=systemd:/init\n"
			     "4:memory:/user/ann\n"
			     "1:cpu,cpuacct:/user/ann/shell\n"
			     "0::/user.slice/user-1001.slice/run-u7.scope\n";

static const char *find(const char *text, const char *controller)
{
	static char path[PATH_MAX];

	return cgroup_delegation_find(text, controller, path) ? path : NULL;
}

static void each_hierarchy_has_a_path_of_its_own(void **state)
{
	(void)state;
	assert_string_equal(find(hybrid, "memory"), "/user/ann");
	assert_string_equal(find(hybrid, "cpu"), "/user/ann/shell");
	assert_string_equal(find(hybrid, "cpuacct"), "/user/ann/shell");
	assert_string_equal(find(hybrid, NULL), "/user.slice/user-1001.slice/run-u7.scope");
}

static void a_controller_that_is_not_there_has_none(void **state)
{
	(void)state;
	assert_null(find(hybrid, "pids"));
	assert_null(find(hybrid, "mem"));
	assert_null(find("0::/\n", "memory"));
	assert_null(find("4:memory:/x\n", NULL));
}

static void paths_may_hold_colons_and_the_last_line_needs_no_end(void **state)
{
	(void)state;
	assert_string_equal(find("0::/a:b:memory:c", NULL), "/a:b:memory:c");
	assert_null(find("0::/a:b:memory:c", "memory"));
}

static void what_is_no_such_text_has_none(void **state)
{
	static const char *const texts[] = {"", "\n\n", "0", "0:", "0::", "0::\n", "x:y"};

	(void)state;
	for (size_t i = 0; i < array_len(texts); i++) {
		assert_null(find(texts[i], NULL));
		assert_null(find(texts[i], "memory"));
	}
}

/* The tests' own groups are root's or nobody's in particular, and no directory is a group. */
static void a_directory_that_is_no_group_is_not_ours(void **state)
{
	int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(cgroup_delegation_open(fd, "no-such-controller"), -1);
	assert_int_equal(cgroup_delegation_open(fd, NULL), -1);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_hierarchy_has_a_path_of_its_own),
		cmocka_unit_test(a_controller_that_is_not_there_has_none),
		cmocka_unit_test(paths_may_hold_colons_and_the_last_line_needs_no_end),
		cmocka_unit_test(what_is_no_such_text_has_none),
		cmocka_unit_test(a_directory_that_is_no_group_is_not_ours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
