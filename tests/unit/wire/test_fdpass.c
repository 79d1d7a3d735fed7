/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"
#include "fd_count.h"
#include "wire/fdpass.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static int pair[2];
static int fds_before;

static int setup(void **state)
{
	(void)state;
	fds_before = count_fds();
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair);
}

static int teardown(void **state)
{
	(void)state;
	close(pair[0]);
	fd_close(pair[1]);
	assert_int_equal(count_fds(), fds_before);
	return 0;
}

static void descriptors_travel_and_are_born_close_on_exec(void **state)
{
	int pipe_fds[2], fds[FDPASS_MAX];
	char data[8], byte = 0;

	(void)state;
	assert_int_equal(pipe(pipe_fds), 0);
	assert_int_equal(fdpass_send(pair[0], "hi", 2, (int[]){pipe_fds[1], pipe_fds[0]}, 2, 0), 2);
	assert_int_equal(fdpass_recv(pair[1], data, sizeof(data), fds, 0), 2);
	assert_memory_equal(data, "hi", 2);
	assert_true(fds[0] >= 0 && fds[1] >= 0);
	assert_int_equal(fds[2], -1);
	assert_int_equal(fds[3], -1);
	assert_true(fcntl(fds[0], F_GETFD) & FD_CLOEXEC);
	assert_int_equal(write(fds[0], "x", 1), 1);
	assert_int_equal(read(pipe_fds[0], &byte, 1), 1);
	for (int i = 0; i < 2; i++) {
		close(fds[i]);
		close(pipe_fds[i]);
	}
}

static void a_message_without_descriptors_has_none(void **state)
{
	int fds[FDPASS_MAX] = {9, 9, 9, 9, 9, 9};
	char data[8];

	(void)state;
	assert_int_equal(fdpass_send(pair[0], "hi", 2, NULL, 0, 0), 2);
	assert_int_equal(fdpass_recv(pair[1], data, sizeof(data), fds, 0), 2);
	for (int i = 0; i < FDPASS_MAX; i++)
		assert_int_equal(fds[i], -1);
}

static void a_message_that_is_cut_leaves_no_descriptor(void **state)
{
	int fds[FDPASS_MAX];
	char data[4];

	(void)state;
	assert_int_equal(fdpass_send(pair[0], "too long", 8, (int[]){0, 1, 2}, 3, 0), 8);
	assert_int_equal(fdpass_recv(pair[1], data, sizeof(data), fds, 0), -EPROTO);
}

static void more_descriptors_than_fit_leave_none(void **state)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int) * (FDPASS_MAX + 1))];
	} control = {0};
	struct iovec iov = {.iov_base = (char[]){"x"}, .iov_len = 1};
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control)};
	int fds[FDPASS_MAX], many[FDPASS_MAX + 1] = {0};
	char data[4];

	(void)state;
	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(sizeof(many));
	memcpy(CMSG_DATA(&control.header), many, sizeof(many));
	assert_int_equal(sendmsg(pair[0], &msg, 0), 1);
	/* The room for control data is rounded up, so one too many may fit: it must not be kept. */
	assert_int_equal(fdpass_recv(pair[1], data, sizeof(data), fds, 0), -EPROTO);
}

static void the_end_and_a_wait_are_told_apart(void **state)
{
	int fds[FDPASS_MAX];
	char data[4];

	(void)state;
	assert_int_equal(fdpass_recv(pair[1], data, sizeof(data), fds, MSG_DONTWAIT), -EAGAIN);
	assert_int_equal(shutdown(pair[0], SHUT_WR), 0);
	assert_int_equal(fdpass_recv(pair[1], data, sizeof(data), fds, 0), 0);
	close(take_fd(&pair[1]));
	assert_int_equal(fdpass_send(pair[0], "x", 1, NULL, 0, 0), -EPIPE); /* and no signal */
}

static void a_packet_of_another_size_is_refused(void **state)
{
	char data[4];

	(void)state;
	assert_int_equal(fdpass_recv_packet(pair[1], data, sizeof(data), MSG_DONTWAIT), -EAGAIN);
	assert_int_equal(send(pair[0], "four", 4, 0), 4);
	assert_int_equal(send(pair[0], "fours", 5, 0), 5);
	assert_int_equal(send(pair[0], "for", 3, 0), 3);
	assert_int_equal(fdpass_send(pair[0], "with", 4, (int[]){0}, 1, 0), 4);
	assert_int_equal(fdpass_recv_packet(pair[1], data, sizeof(data), 0), 1);
	assert_memory_equal(data, "four", 4);
	assert_int_equal(fdpass_recv_packet(pair[1], data, sizeof(data), 0), -EPROTO);
	assert_int_equal(fdpass_recv_packet(pair[1], data, sizeof(data), 0), -EPROTO);
	assert_int_equal(fdpass_recv_packet(pair[1], data, sizeof(data), 0), 1);
	assert_int_equal(shutdown(pair[0], SHUT_WR), 0);
	assert_int_equal(fdpass_recv_packet(pair[1], data, sizeof(data), 0), 0);
}

#define ON_A_PAIR(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		ON_A_PAIR(descriptors_travel_and_are_born_close_on_exec),
		ON_A_PAIR(a_message_without_descriptors_has_none),
		ON_A_PAIR(a_message_that_is_cut_leaves_no_descriptor),
		ON_A_PAIR(more_descriptors_than_fit_leave_none),
		ON_A_PAIR(the_end_and_a_wait_are_told_apart),
		ON_A_PAIR(a_packet_of_another_size_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
