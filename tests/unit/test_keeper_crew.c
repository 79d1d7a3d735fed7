/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/crew.h"

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
static size_t descriptors_of_child(const struct crew *crew, int *also, int report[2], char *fds)
{
	pid_t pid = crew_fork(crew, also);
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
	struct crew crew = {0};
	char fds[LOOK_AT];
	int report[2], others[8], also;

	(void)state;
	for (size_t i = 0; i < array_len(others); i++)
		others[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	also = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(pipe(report), 0);
	/* Not in the order of their numbers. */
	crew_lend(&crew, report[1]);
	crew_lend(&crew, others[5]);
	crew_lend(&crew, others[2]);
	crew_lend(&crew, others[3]);
	assert_int_equal(descriptors_of_child(&crew, &also, report, fds), 5);
	assert_int_equal(fds[0], others[2]);
	assert_int_equal(fds[1], others[3]);
	assert_int_equal(fds[2], others[5]);
	assert_int_equal(fds[3], also);
	assert_int_equal(fds[4], report[1]);
	for (size_t i = 0; i < array_len(others); i++)
		close(others[i]);
	close(also);
}

/* Ends when it has been poked as often as its arg says. */
static void work(const void *arg, int pokes)
{
	char byte;

	for (int i = 0; i < *(const int *)arg; i++)
		if (read(pokes, &byte, 1) != 1)
			_exit(1);
}

static void close_pokes(const struct crew_member *member)
{
	close(member->pokes_fd);
	close(member->their_fd);
}

static void a_member_that_ended_is_replaced_but_not_all_the_time(void **state)
{
	struct crew crew = {0};
	int after = 2, status;
	struct crew_member member = {.name = "member", .work = work, .arg = &after};
	pid_t first;

	(void)state;
	crew_join(&crew, &member);
	first = member.pid;
	assert_true(first > 0);
	assert_int_equal(crew_tend(&crew), -1);
	crew_poke(&member);
	crew_poke(&member);
	assert_int_equal(waitpid(first, &status, 0), first);
	assert_int_equal(status, 0);

	crew_reaped(&crew, getpid(), 0); /* somebody else */
	assert_int_equal(member.pid, first);
	crew_reaped(&crew, first, status);
	assert_int_equal(member.pid, 0);
	assert_true(crew_tend(&crew) > 0);
	assert_int_equal(member.pid, 0);

	member.not_before_ms = 0;
	assert_int_equal(crew_tend(&crew), -1);
	assert_true(member.pid > 0);
	crew_dismiss(&crew);
	assert_int_equal(waitpid(member.pid, &status, 0), member.pid);
	assert_int_equal(WTERMSIG(status), SIGKILL);
	close_pokes(&member);
}

static void what_a_member_is_told_while_it_is_missing_the_next_one_hears(void **state)
{
	struct crew crew = {0};
	int after = 1, status;
	struct crew_member member = {.name = "member", .work = work, .arg = &after};

	(void)state;
	crew_join(&crew, &member);
	crew_dismiss(&crew);
	assert_int_equal(waitpid(member.pid, &status, 0), member.pid);
	crew_reaped(&crew, member.pid, status);
	crew_poke(&member);
	member.not_before_ms = 0;
	assert_int_equal(crew_tend(&crew), -1);
	assert_int_equal(waitpid(member.pid, &status, 0), member.pid);
	assert_int_equal(status, 0);
	close_pokes(&member);
}

/* The numbers below are for what stays: every child gets a copy of that. */
static void what_comes_and_goes_gets_no_low_number_when_a_member_ended(void **state)
{
	struct offspring offspring = {0};
	struct crew crew = {.offspring = &offspring};
	int after = 1, status, fd;
	struct crew_member member = {.name = "member", .work = work, .arg = &after};
	struct err err;

	(void)state;
	crew_join(&crew, &member);
	assert_int_equal(offspring_open(&offspring, &err), 0);
	crew_poke(&member);
	assert_int_equal(waitpid(member.pid, &status, 0), member.pid);
	crew_reaped(&crew, member.pid, status);
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_true(fd >= offspring.first_fd);
	close(fd);
	close_pokes(&member);
	for (fd = offspring.told_fd; fd < offspring.first_fd; fd++)
		close(fd);
}

static void a_member_sees_the_end_of_its_pokes(void **state)
{
	struct crew crew = {0};
	int after = 1, status;
	struct crew_member member = {.name = "member", .work = work, .arg = &after};

	(void)state;
	crew_join(&crew, &member);
	close(member.pokes_fd);
	assert_int_equal(waitpid(member.pid, &status, 0), member.pid);
	assert_int_equal(WEXITSTATUS(status), 1);
	close(member.their_fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_child_has_what_is_lent_and_one_more_and_nothing_else),
		cmocka_unit_test(a_member_that_ended_is_replaced_but_not_all_the_time),
		cmocka_unit_test(what_a_member_is_told_while_it_is_missing_the_next_one_hears),
		cmocka_unit_test(what_comes_and_goes_gets_no_low_number_when_a_member_ended),
		cmocka_unit_test(a_member_sees_the_end_of_its_pokes),
	};

	log_open("test", LOG_ERROR + 1);
	return cmocka_run_group_tests_name("crew", tests, NULL, NULL);
}
