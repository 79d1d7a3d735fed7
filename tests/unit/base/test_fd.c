/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[64];

static int setup(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/sandlot-fd-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	return rmdir(dir);
}

static void closing_keeps_errno_and_takes_what_is_none(void **state)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)state;
	errno = EXDEV;
	fd_close(fd);
	assert_int_equal(errno, EXDEV);
	assert_int_equal(fcntl(fd, F_GETFD), -1); /* really closed */
	errno = EXDEV;
	fd_close(-1);
	fd_close(fd); /* no descriptor any more */
	assert_int_equal(errno, EXDEV);
}

static void a_descriptor_is_given_away_once(void **state)
{
	int fd = 5;

	(void)state;
	assert_int_equal(take_fd(&fd), 5);
	assert_int_equal(take_fd(&fd), -1);
}

static void *write_in_pieces(void *arg)
{
	int fd = *(int *)arg;

	for (int i = 0; i < 10; i++) {
		if (write(fd, "0123456789", 10) != 10)
			break;
	}
	close(fd);
	return NULL;
}

static void a_read_is_whole_or_says_that_it_is_not(void **state)
{
	int pipe_fds[2];
	char data[60];
	pthread_t thread;

	(void)state;
	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	assert_int_equal(pthread_create(&thread, NULL, write_in_pieces, &pipe_fds[1]), 0);
	assert_int_equal(fd_read_full(pipe_fds[0], data, 60), 0);
	assert_memory_equal(data + 50, "0123456789", 10);
	assert_int_equal(fd_read_full(pipe_fds[0], data, 60), -ENODATA); /* forty are left */
	assert_int_equal(fd_read_full(pipe_fds[0], data, 0), 0);
	pthread_join(thread, NULL);
	close(pipe_fds[0]);
	assert_int_equal(fd_read_full(-1, data, 1), -EBADF);
}

struct sink {
	int fd;
	size_t got;
};

static void *drain(void *arg)
{
	struct sink *sink = arg;
	char data[5000];
	ssize_t n;

	while ((n = read(sink->fd, data, sizeof(data))) > 0)
		sink->got += (size_t)n;
	return NULL;
}

static void a_write_is_whole_however_large(void **state)
{
	const size_t len = 3 << 20;
	char *data = mem_new(len);

	(void)state;
	for (int socket = 0; socket < 2; socket++) { /* a pipe, and a socket */
		struct sink sink = {0};
		pthread_t thread;
		int fds[2];

		assert_int_equal(socket ? socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds)
					: pipe2(fds, O_CLOEXEC),
			0);
		sink.fd = fds[0];
		assert_int_equal(pthread_create(&thread, NULL, drain, &sink), 0);
		assert_int_equal(fd_write_full(fds[1], data, len), 0);
		close(fds[1]);
		pthread_join(thread, NULL);
		assert_int_equal(sink.got, len);
		close(fds[0]);
	}
	free(data);
}

/* If it raised SIGPIPE this test would die. */
static void a_socket_whose_peer_is_gone_is_an_error_and_no_signal(void **state)
{
	int fds[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	close(fds[0]);
	assert_int_equal(fd_write_full(fds[1], "x", 1), -EPIPE);
	close(fds[1]);
}

static void a_limit_of_time_is_kept(void **state)
{
	int fds[2];
	char byte, *data = mem_new(8 << 20);

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	assert_int_equal(fd_set_timeout(fds[0], 5), 0);
	assert_int_equal(fd_read_full(fds[0], &byte, 1), -EAGAIN);
	assert_int_equal(fd_write_full(fds[0], data, 8 << 20), -EAGAIN); /* nobody reads */
	assert_true(fd_set_timeout(STDIN_FILENO, 5) <= 0);
	close(fds[0]);
	close(fds[1]);
	free(data);
}

static void small_files_are_read_whole_and_ended(void **state)
{
	char text[16], *path = mem_printf("%s/file", dir);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	(void)state;
	assert_int_equal(write(fd, "0123456789abcdefgh", 18), 18);
	close(fd);
	memset(text, 'x', sizeof(text));
	assert_int_equal(
		fd_read_file(AT_FDCWD, path, text, sizeof(text)), 15); /* as much as fits */
	assert_string_equal(text, "0123456789abcde");
	assert_int_equal(fd_read_file(AT_FDCWD, "/nonexistent", text, sizeof(text)), -ENOENT);
	assert_int_equal(fd_read_file(AT_FDCWD, dir, text, sizeof(text)), -EISDIR);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(fd_read_file(fd, "file", text, 1), 0);
	assert_string_equal(text, "");
	close(fd);
	unlink(path);
	free(path);
}

static void knobs_are_written_and_never_made(void **state)
{
	char text[16], *path = mem_printf("%s/knob", dir);

	(void)state;
	assert_int_equal(fd_write_file(AT_FDCWD, path, "5"), -ENOENT);
	close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	assert_int_equal(fd_write_file(AT_FDCWD, path, "5"), 0);
	assert_int_equal(fd_read_file(AT_FDCWD, path, text, sizeof(text)), 1);
	assert_string_equal(text, "5");
	assert_int_equal(fd_write_file(AT_FDCWD, "/dev/full", "5"), -ENOSPC);
	unlink(path);
	free(path);
}

static void a_descriptor_is_made_not_to_block(void **state)
{
	int fds[2];
	char byte;

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(fd_set_nonblocking(fds[0]), 0);
	assert_int_equal(read(fds[0], &byte, 1), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(fd_set_nonblocking(-1), -EBADF);
	close(fds[0]);
	close(fds[1]);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(closing_keeps_errno_and_takes_what_is_none),
		cmocka_unit_test(a_descriptor_is_given_away_once),
		cmocka_unit_test(a_read_is_whole_or_says_that_it_is_not),
		cmocka_unit_test(a_write_is_whole_however_large),
		cmocka_unit_test(a_socket_whose_peer_is_gone_is_an_error_and_no_signal),
		cmocka_unit_test(a_limit_of_time_is_kept),
		cmocka_unit_test(small_files_are_read_whole_and_ended),
		cmocka_unit_test(knobs_are_written_and_never_made),
		cmocka_unit_test(a_descriptor_is_made_not_to_block),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
