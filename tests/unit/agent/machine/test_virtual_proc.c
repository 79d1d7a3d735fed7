/* SPDX-License-Identifier: Apache-2.0 */
/* With ordinary files in place of those that the keeper makes; a child is the program that reads. */
#include "agent/machine/virtual_proc.h"

#include "base/clock.h"
#include "base/fd.h"
#include "deadline.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char paths[VIRTUAL_PROC_FILES][64];
static int proc_files[VIRTUAL_PROC_FILES];
static struct virtual_proc machine;
static int epoll_fd;

static int set_up(void **state)
{
	sigset_t set;

	(void)state;
	sigfillset(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	for (size_t i = 0; i < VIRTUAL_PROC_FILES; i++) {
		snprintf(paths[i], sizeof(paths[i]), "/tmp/test_machine.XXXXXX");
		proc_files[i] = mkostemp(paths[i], O_CLOEXEC);
		assert_true(proc_files[i] >= 0);
	}
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	for (size_t i = 0; i < VIRTUAL_PROC_FILES; i++) {
		unlink(paths[i]);
		close(proc_files[i]);
	}
	fd_close(machine.signal_fd);
	fd_close(machine.inotify_fd);
	close(epoll_fd);
	return 0;
}

static void turn_loop(int timeout_ms)
{
	int reconnect = virtual_proc_patience_ms(&machine);
	struct epoll_event event;

	if (reconnect < 0 || reconnect > timeout_ms)
		reconnect = timeout_ms;
	if (epoll_wait(epoll_fd, &event, 1, reconnect) > 0)
		virtual_proc_ready(&machine);
	virtual_proc_tick(&machine);
}

static bool is_read_whole(int fd)
{
	char text[64] = "";

	return pread(fd, text, sizeof(text) - 1, 0) > 0 && strncmp(text, "MemTotal:", 9) == 0;
}

/* Runs the agent's part until the child has exited, which must be with 0. */
static void serve(pid_t child)
{
	uint64_t deadline = clock_steady_ms() + DEADLINE_MS;
	int status = -1;

	while (waitpid(child, &status, WNOHANG) == 0 && clock_steady_ms() < deadline)
		turn_loop(20);
	kill(child, SIGKILL);
	assert_int_equal(status, 0);
}

static void whoever_opens_a_file_reads_what_was_written_for_it(void **state)
{
	(void)state;
	virtual_proc_open(&machine, epoll_fd, proc_files);
	assert_true(machine.proc_files[0].is_leased && machine.proc_files[1].is_leased);
	assert_int_equal(lseek(proc_files[0], 0, SEEK_END), 0);
	for (int i = 0; i < 3; i++) {
		pid_t child = fork();

		if (child == 0)
			_exit(is_read_whole(open(paths[0], O_RDONLY)) ? 0 : 1);
		serve(child);
	}
	assert_int_equal(lseek(proc_files[1], 0, SEEK_END), 0);
}

static void when_the_file_is_closed_there_is_nothing_left_to_do(void **state)
{
	uint64_t deadline = clock_steady_ms() + DEADLINE_MS;
	pid_t child;

	(void)state;
	virtual_proc_open(&machine, epoll_fd, proc_files);
	assert_int_equal(virtual_proc_patience_ms(&machine), -1);
	child = fork();
	if (child == 0)
		_exit(is_read_whole(open(paths[0], O_RDONLY)) ? 0 : 1);
	serve(child);
	while (!machine.proc_files[0].is_leased && clock_steady_ms() < deadline)
		turn_loop(20);
	assert_true(machine.proc_files[0].is_leased);
	assert_int_equal(virtual_proc_patience_ms(&machine), -1);
}

static void a_file_that_is_held_open_is_written_again_while_it_is_read(void **state)
{
	uint64_t deadline = clock_steady_ms() + DEADLINE_MS;
	int reader = open(paths[0], O_RDONLY | O_CLOEXEC);

	(void)state;
	/* As where leases are turned off: it is written at once. */
	virtual_proc_open(&machine, epoll_fd, proc_files);
	assert_false(machine.proc_files[0].is_leased);
	assert_true(is_read_whole(reader));
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pwrite(proc_files[0], "overwritten", 11, 0), 11);
		while (!is_read_whole(reader) && clock_steady_ms() < deadline)
			turn_loop(1000);
		assert_true(is_read_whole(reader));
	}
	close(reader);
	while (!machine.proc_files[0].is_leased && clock_steady_ms() < deadline)
		turn_loop(1000);
	assert_true(machine.proc_files[0].is_leased);
}

static void without_files_there_is_nothing_to_do(void **state)
{
	(void)state;
	virtual_proc_open(&machine, epoll_fd, NULL);
	assert_int_equal(virtual_proc_patience_ms(&machine), -1);
	virtual_proc_tick(&machine);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(whoever_opens_a_file_reads_what_was_written_for_it),
		CASE(when_the_file_is_closed_there_is_nothing_left_to_do),
		CASE(a_file_that_is_held_open_is_written_again_while_it_is_read),
		CASE(without_files_there_is_nothing_to_do),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
