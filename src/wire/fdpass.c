/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/fdpass.h"

#include "base/fd.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

static_assert(CMSG_SPACE(sizeof(int) * FDPASS_MAX) == CMSG_LEN(sizeof(int) * FDPASS_MAX),
	"else one descriptor more would fit, behind the end of an array");

union control {
	struct cmsghdr header;
	char space[CMSG_SPACE(sizeof(int) * FDPASS_MAX)];
};

ssize_t fdpass_send(int sock, const void *data, size_t len, const int *fds, size_t count, int flags)
{
	union control control = {0};
	struct iovec iov = {.iov_base = (void *)data, .iov_len = len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n;

	assert(count <= FDPASS_MAX);
	if (count > 0) {
		struct cmsghdr *cmsg = &control.header;

		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * count);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int) * count);
		memcpy(CMSG_DATA(cmsg), fds, sizeof(int) * count);
	}
	do {
		n = sendmsg(sock, &msg, flags | MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

ssize_t fdpass_recv(int sock, void *data, size_t size, int fds[FDPASS_MAX], int flags)
{
	union control control;
	struct iovec iov = {.iov_base = data, .iov_len = size};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n;

	msg.msg_control = &control;
	msg.msg_controllen = sizeof(control);
	for (size_t i = 0; i < FDPASS_MAX; i++)
		fds[i] = -1;
	do {
		n = recvmsg(sock, &msg, flags | MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
			memcpy(fds, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
	}
	if (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
		for (size_t i = 0; i < FDPASS_MAX; i++)
			fd_close(fds[i]);
		return -EPROTO;
	}
	return n;
}

int fdpass_recv_packet(int sock, void *data, size_t size, int flags)
{
	ssize_t n;

	do {
		n = recv(
			sock, data, size, flags | MSG_TRUNC); /* the length that it was sent with */
	} while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 ? -errno : 0;
	return n == (ssize_t)size ? 1 : -EPROTO;
}
