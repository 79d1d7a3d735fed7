/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <unistd.h>

void fd_close(int fd)
{
	int saved = errno;

	if (fd >= 0)
		close(fd);
	errno = saved;
}

int fd_read_full(int fd, void *data, size_t len)
{
	char *at = data;

	while (len > 0) {
		ssize_t n = read(fd, at, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -ENODATA;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

/* send() with MSG_NOSIGNAL where it is a socket, write() where it is not. */
static ssize_t write_quietly(int fd, const void *data, size_t len)
{
	ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

	if (n < 0 && errno == ENOTSOCK)
		n = write(fd, data, len);
	return n;
}

int fd_write_full(int fd, const void *data, size_t len)
{
	const char *at = data;

	while (len > 0) {
		ssize_t n = write_quietly(fd, at, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

ssize_t fd_read_file(int dirfd, const char *path, char *text, size_t size)
{
	auto_fd int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;

	if (fd < 0)
		return -errno;
	while (len < size - 1) {
		ssize_t n = read(fd, text + len, size - 1 - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	text[len] = '\0';
	return (ssize_t)len;
}

int fd_write_file(int dirfd, const char *path, const char *text)
{
	auto_fd int fd = openat(dirfd, path, O_WRONLY | O_CLOEXEC);
	size_t len = strlen(text);

	if (fd < 0)
		return -errno;
	/* A sysctl or cgroup file takes its value in one write or not at all. */
	return write(fd, text, len) == (ssize_t)len ? 0 : -errno;
}

int fd_set_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	return 0;
}

int fd_family(int sock)
{
	int family;
	socklen_t len = sizeof(family);

	return getsockopt(sock, SOL_SOCKET, SO_DOMAIN, &family, &len) < 0 ? AF_UNSPEC : family;
}

int fd_set_timeout(int sock, int64_t timeout_ms)
{
	struct timeval tv = {.tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000};

	if (setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)) < 0 ||
		setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)) < 0)
		return -errno;
	return 0;
}

uint64_t fd_free_bytes(int fd)
{
	struct statvfs disk;

	return fstatvfs(fd, &disk) < 0 ? UINT64_MAX : (uint64_t)disk.f_bavail * disk.f_frsize;
}
