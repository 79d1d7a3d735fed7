/* SPDX-License-Identifier: Apache-2.0 */
/* Walking over all processes (src/agent/pid_walk.c). */
#include "agent/machine/pid_walk.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void everybody_is_found_once_by_pid(void **state)
{
	pid_t child = fork(), last = 0;
	struct pid_walk walk;
	unsigned found = 0;

	(void)state;
	if (child == 0) {
		pause();
		_exit(0);
	}
	pid_walk_open(&walk);
	while (pid_walk_next(&walk)) {
		assert_true(walk.pid > last);
		last = walk.pid;
		if (walk.pid != getpid() && walk.pid != child)
			continue;
		found++;
		assert_int_equal(faccessat(walk.proc_fd, walk.name, F_OK, 0), 0);
	}
	pid_walk_close(&walk);
	assert_int_equal(found, 2);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

static void nobody_is_found_without_proc(void **state)
{
	struct pid_walk walk;

	(void)state;
	pid_walk_open(&walk);
	close(walk.proc_fd);
	walk.proc_fd = walk.dirents.dir = -1;
	assert_false(pid_walk_next(&walk));
	pid_walk_close(&walk);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(everybody_is_found_once_by_pid),
		cmocka_unit_test(nobody_is_found_without_proc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
