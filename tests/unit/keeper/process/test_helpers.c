/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/process/helpers.h"

#include "base/fd.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define LOOK_AT 256 /* descriptors from 3 up to here */

/* The descriptors that a child has, as it says itself: a byte for each. */
static size_t descriptors_of_child(
	const struct helpers *helpers, int *also, int report[2], char *fds)
{
	pid_t pid = helpers_fork(helpers, also);
	size_t len = 0;
	ssize_t n;
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		for (int fd = 3; fd < LOOK_AT; fd++) {
			char byte = (char)fd;

			if (fcntl(fd, F_GETFD) >= 0 && write(report[1], &byte, 1) != 1)
				_exit(1);
		}
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(report[1]);
	while ((n = read(report[0], fds + len, LOOK_AT - len)) > 0)
		len += (size_t)n;
	close(report[0]);
	return len;
}

static void a_child_has_what_is_lent_and_one_more_and_nothing_else(void **state)
{
	struct helpers helpers = {0};
	char fds[LOOK_AT];
	int report[2], others[8], also;

	(void)state;
	for (size_t i = 0; i < array_len(others); i++)
		others[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	also = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(pipe(report), 0);
	/* Not in the order of their numbers. */
	helpers_share_fd(&helpers, report[1]);
	helpers_share_fd(&helpers, others[5]);
	helpers_share_fd(&helpers, others[2]);
	helpers_share_fd(&helpers, others[3]);
	assert_int_equal(descriptors_of_child(&helpers, &also, report, fds), 5);
	assert_int_equal(fds[0], others[2]);
	assert_int_equal(fds[1], others[3]);
	assert_int_equal(fds[2], others[5]);
	assert_int_equal(fds[3], also);
	assert_int_equal(fds[4], report[1]);
	for (size_t i = 0; i < array_len(others); i++)
		close(others[i]);
	close(also);
}

static void only_so_many_children_answer_requests_at_a_time(void **state)
{
	struct helpers helpers = {0};
	struct err err = {0};
	int until_closed[2];
	char byte;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(until_closed), 0);
	for (int i = 0; i <= HELPERS_ASKED_MAX; i++) {
		pid = helpers_fork_asked(&helpers, &until_closed[0], &err);
		if (pid == 0)
			_exit(read(until_closed[0], &byte, 1) == 0 ? 0 : 1);
		assert_int_equal(pid > 0, i < HELPERS_ASKED_MAX);
	}
	assert_int_equal(pid, -EAGAIN);
	assert_int_equal(err.kind, ERR_UNAVAILABLE);
	assert_string_equal(err.code, "keeper_busy");
	close(until_closed[1]);
	for (int i = 0; i < HELPERS_ASKED_MAX; i++) {
		int status;

		pid = waitpid(-1, &status, 0);
		assert_int_equal(status, 0);
		helpers_reaped(&helpers, pid, status);
	}
	pid = helpers_fork_asked(&helpers, &until_closed[0], &err);
	if (pid == 0)
		_exit(0);
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(until_closed[0]);
}

/* Ends when it has been poked as often as its arg says. */
static void work(const void *arg, int pokes)
{
	char byte;

	for (int i = 0; i < *(const int *)arg; i++)
		if (read(pokes, &byte, 1) != 1)
			_exit(1);
}

static void close_pokes(const struct helper *member)
{
	close(member->wake_fd);
	close(member->their_fd);
}

static void a_member_that_ended_is_replaced_but_not_all_the_time(void **state)
{
	struct helpers helpers = {0};
	int after = 2, status;
	struct helper member = {.name = "member", .work = work, .arg = &after};
	pid_t first;

	(void)state;
	helpers_add(&helpers, &member);
	first = member.pid;
	assert_true(first > 0);
	assert_int_equal(helpers_tend(&helpers), -1);
	helpers_wake(&member);
	helpers_wake(&member);
	assert_int_equal(waitpid(first, &status, 0), first);
	assert_int_equal(status, 0);

	helpers_reaped(&helpers, getpid(), 0); /* somebody else */
	assert_int_equal(member.pid, first);
	helpers_reaped(&helpers, first, status);
	assert_int_equal(member.pid, 0);
	assert_true(helpers_tend(&helpers) > 0);
	assert_int_equal(member.pid, 0);

	member.not_before_ms = 0;
	assert_int_equal(helpers_tend(&helpers), -1);
	assert_true(member.pid > 0);
	helpers_kill(&helpers);
	assert_int_equal(waitpid(member.pid, &status, 0), member.pid);
	assert_int_equal(WTERMSIG(status), SIGKILL);
	close_pokes(&member);
}

static void what_a_member_is_told_while_it_is_missing_the_next_one_hears(void **state)
{
	struct helpers helpers = {0};
	int after = 1, status;
	struct helper member = {.name = "member", .work = work, .arg = &after};

	(void)state;
	helpers_add(&helpers, &member);
	helpers_kill(&helpers);
	assert_int_equal(waitpid(member.pid, &status, 0), member.pid);
	helpers_reaped(&helpers, member.pid, status);
	helpers_wake(&member);
	member.not_before_ms = 0;
	assert_int_equal(helpers_tend(&helpers), -1);
	assert_int_equal(waitpid(member.pid, &status, 0), member.pid);
	assert_int_equal(status, 0);
	close_pokes(&member);
}

/* The numbers below are for what stays: every child gets a copy of that. */
static void what_comes_and_goes_gets_no_low_number_when_a_member_ended(void **state)
{
	struct clone_child child = {0};
	struct helpers helpers = {.child = &child};
	int after = 1, status, fd;
	struct helper member = {.name = "member", .work = work, .arg = &after};
	struct err err;

	(void)state;
	helpers_add(&helpers, &member);
	assert_int_equal(clone_child_open(&child, &err), 0);
	helpers_wake(&member);
	assert_int_equal(waitpid(member.pid, &status, 0), member.pid);
	helpers_reaped(&helpers, member.pid, status);
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_true(fd >= child.first_fd);
	close(fd);
	close_pokes(&member);
	for (fd = child.told_fd; fd < child.first_fd; fd++)
		close(fd);
}

static void a_member_sees_the_end_of_its_pokes(void **state)
{
	struct helpers helpers = {0};
	int after = 1, status;
	struct helper member = {.name = "member", .work = work, .arg = &after};

	(void)state;
	helpers_add(&helpers, &member);
	close(member.wake_fd);
	assert_int_equal(waitpid(member.pid, &status, 0), member.pid);
	assert_int_equal(WEXITSTATUS(status), 1);
	close(member.their_fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_child_has_what_is_lent_and_one_more_and_nothing_else),
		cmocka_unit_test(only_so_many_children_answer_requests_at_a_time),
		cmocka_unit_test(a_member_that_ended_is_replaced_but_not_all_the_time),
		cmocka_unit_test(what_a_member_is_told_while_it_is_missing_the_next_one_hears),
		cmocka_unit_test(what_comes_and_goes_gets_no_low_number_when_a_member_ended),
		cmocka_unit_test(a_member_sees_the_end_of_its_pokes),
	};

	log_open("test", LOG_ERROR + 1);
	return cmocka_run_group_tests_name("helpers", tests, NULL, NULL);
}
