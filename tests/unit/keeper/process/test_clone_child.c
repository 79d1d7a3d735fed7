/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/process/clone_child.h"

#include "base/fd.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define LOOK_AT 1024

static const struct clone_args plain = {.exit_signal = SIGCHLD};

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static int count_from(int first)
{
	int count = 0;

	for (int fd = first; fd < LOOK_AT; fd++)
		count += is_open(fd);
	return count;
}

static int wait_for(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

struct fixture {
	struct clone_child child;
	int pipe[2]; /* come and go */
};

static int setup(void **state)
{
	struct fixture *fixture = mem_new(sizeof(*fixture));
	struct err err;

	*state = fixture;
	return clone_child_open(&fixture->child, &err) < 0 || pipe(fixture->pipe) < 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	for (int i = 0; i < 2; i++)
		close(fixture->pipe[i]);
	for (int fd = fixture->child.told_fd; fd < fixture->child.first_fd; fd++)
		close(fd);
	free(fixture);
	return 0;
}

static void a_child_has_what_it_keeps_and_nothing_else_that_comes_and_goes(void **state)
{
	struct fixture *fixture = *state;
	const struct clone_child *child = &fixture->child;
	int kept = fixture->pipe[1], none = -1, *const all[] = {&none, &kept};
	char byte;
	pid_t pid;

	assert_true(fixture->pipe[0] >= child->first_fd);
	pid = clone_child_clone(child, plain, all, array_len(all));
	if (pid == 0)
		_exit(count_from(child->first_fd) != 0 || kept >= child->first_fd || none != -1 ||
			write(kept, "x", 1) != 1);
	assert_int_equal(wait_for(pid), 0);
	assert_int_equal(kept, fixture->pipe[1]);
	assert_int_equal(read(fixture->pipe[0], &byte, 1), 1);
	assert_int_equal(byte, 'x');
}

static void nothing_changes_for_the_one_who_clones(void **state)
{
	struct fixture *fixture = *state;
	const struct clone_child *child = &fixture->child;
	int kept = fixture->pipe[1], *const all[] = {&kept}, before = count_from(0);
	struct stat null, place;
	pid_t pid;
	char byte;

	for (int i = 0; i < 20; i++) {
		pid = clone_child_clone(child, plain, all, array_len(all));
		if (pid == 0) {
			close(fixture->pipe[0]);
			close(kept);
			_exit(0);
		}
		assert_int_equal(wait_for(pid), 0);
	}
	assert_int_equal(count_from(0), before);
	assert_int_equal(fstat(child->null_fd, &null), 0);
	for (int i = 1; i <= CLONE_CHILD_KEPT_MAX; i++) {
		assert_int_equal(fstat(child->null_fd + i, &place), 0);
		assert_int_equal(place.st_ino, null.st_ino);
	}
	/* Nobody else has the end that the children kept. */
	close(fixture->pipe[1]);
	assert_int_equal(read(fixture->pipe[0], &byte, 1), 0);
	fixture->pipe[1] = dup(fixture->pipe[0]);
}

static void what_the_one_who_clones_opens_and_closes_does_not_reach_the_child(void **state)
{
	struct fixture *fixture = *state;
	const struct clone_child *child = &fixture->child;
	int kept = fixture->pipe[0], *const all[] = {&kept};
	char byte;
	pid_t pid;

	pid = clone_child_clone(child, plain, all, array_len(all));
	if (pid == 0)
		_exit(read(kept, &byte, 1) != 1 || count_from(child->first_fd) != 0);
	close(fixture->pipe[0]);
	fixture->pipe[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(write(fixture->pipe[1], "x", 1), 1);
	assert_int_equal(wait_for(pid), 0);
}

/* Who looks at both signs in turn may see only the end of one that has left and ended at once. */
static void what_one_before_has_said_is_not_taken_for_the_word_of_the_next(void **state)
{
	struct fixture *fixture = *state;
	const struct clone_child *child = &fixture->child;
	int kept = fixture->pipe[1], *const all[] = {&kept};
	const uint64_t one = 1;
	char byte;

	for (int i = 0; i < 100; i++) {
		pid_t pid;

		assert_int_equal(write(child->told_fd, &one, sizeof(one)), sizeof(one));
		pid = clone_child_clone(child, plain, all, array_len(all));
		if (pid == 0)
			_exit(write(kept, "x", 1) != 1);
		assert_int_equal(wait_for(pid), 0);
		assert_int_equal(fcntl(fixture->pipe[0], F_SETFL, O_NONBLOCK), 0);
		assert_int_equal(read(fixture->pipe[0], &byte, 1), 1);
	}
}

static void one_that_cannot_be_cloned_leaves_nothing(void **state)
{
	struct fixture *fixture = *state;
	int kept = fixture->pipe[1], *const all[] = {&kept}, before = count_from(0);
	struct clone_args bad = {.flags = CLONE_THREAD, .exit_signal = SIGCHLD};

	assert_int_equal(clone_child_clone(&fixture->child, bad, all, array_len(all)), -1);
	assert_int_equal(count_from(0), before);
}

static void before_it_is_settled_a_child_has_everything(void **state)
{
	const struct clone_child unsettled = {0};
	struct fixture *fixture = *state;
	int kept = fixture->pipe[1], *const all[] = {&kept};
	pid_t pid = clone_child_clone(&unsettled, plain, all, array_len(all));

	if (pid == 0)
		_exit(kept != fixture->pipe[1] || !is_open(kept) || !is_open(fixture->pipe[0]));
	assert_int_equal(wait_for(pid), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_child_has_what_it_keeps_and_nothing_else_that_comes_and_goes, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			nothing_changes_for_the_one_who_clones, setup, teardown),
		cmocka_unit_test_setup_teardown(
			what_the_one_who_clones_opens_and_closes_does_not_reach_the_child, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			what_one_before_has_said_is_not_taken_for_the_word_of_the_next, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			one_that_cannot_be_cloned_leaves_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(
			before_it_is_settled_a_child_has_everything, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
