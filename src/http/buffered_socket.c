/* SPDX-License-Identifier: Apache-2.0 */
#include "http/buffered_socket.h"

#include "base/fd.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

void buffered_socket_init(struct buffered_socket *sock, void *owner, int fd,
	const struct buffered_socket_limits *limits)
{
	*sock = (struct buffered_socket){.owner = owner,
		.limits = limits,
		.fd = fd,
		.is_writable = fd >= 0,
		.in = BUF_INIT(MESSAGE_HEAD_MAX + limits->read_bytes),
		.out = BUF_INIT(limits->out_max)};
}

void buffered_socket_close(struct buffered_socket *sock)
{
	watch_close(sock->watch);
	fd_close(sock->fd);
	buf_fini(&sock->in);
	buf_fini(&sock->out);
	buffered_socket_init(sock, sock->owner, -1, sock->limits);
}

void buffered_socket_release(struct buffered_socket *sock)
{
	if (sock->in.len == 0)
		buf_fini(&sock->in);
	if (sock->out.len == 0)
		buf_fini(&sock->out);
}

void buffered_socket_note(struct buffered_socket *sock, uint32_t events)
{
	bool hangs_up = events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR);

	sock->is_readable |= hangs_up || (events & EPOLLIN);
	sock->is_writable |= (events & EPOLLOUT) != 0;
	sock->hangs_up |= hangs_up;
}

bool buffered_socket_has_room(const struct buffered_socket *sock)
{
	return sock->out.len < sock->limits->waiting_max;
}

static ssize_t read_some(struct buffered_socket *sock, void *data, size_t len)
{
	ssize_t n;

	if (sock->io)
		return sock->io->read(sock->io_arg, data, len);
	n = recv(sock->fd, data, len, 0);
	if (n < 0)
		return -errno;
	/* A short read has emptied it: more brings another event, and so does the end, unless it did. */
	sock->is_readable = (size_t)n == len || sock->hangs_up;
	return n;
}

bool buffered_socket_receive(struct buffered_socket *sock)
{
	size_t len = sock->limits->read_bytes;
	ssize_t n;

	if (!sock->is_readable || sock->has_ended || sock->fd < 0 ||
		sock->in.len >= MESSAGE_HEAD_MAX || buf_reserve(&sock->in, len) < 0)
		return false;
	n = read_some(sock, sock->in.data + sock->in.len, len);
	if (n > 0) {
		sock->in.len += (size_t)n;
		return true;
	}
	sock->is_readable = false;
	sock->has_ended = n != -EAGAIN;
	sock->is_broken = n < 0 && n != -EAGAIN;
	return sock->has_ended;
}

static ssize_t write_some(struct buffered_socket *sock)
{
	ssize_t n;

	if (sock->io)
		return sock->io->write(sock->io_arg, sock->out.data, sock->out.len);
	n = send(sock->fd, sock->out.data, sock->out.len, MSG_NOSIGNAL);
	return n < 0 ? -errno : n;
}

bool buffered_socket_flush(struct buffered_socket *sock)
{
	ssize_t n;

	if (sock->out.len == 0 || sock->fd < 0 || (!sock->is_writable && !sock->has_write_failed))
		return false;
	n = sock->has_write_failed ? -EPIPE : write_some(sock);
	if (n == -EAGAIN) {
		sock->is_writable = false;
		return false;
	}
	if (n < 0) {
		sock->has_write_failed = true;
		sock->is_readable = sock->hangs_up = true;
		n = (ssize_t)sock->out.len;
	}
	buf_consume(&sock->out, (size_t)n);
	if (sock->out.len == 0)
		buf_fini(&sock->out);
	return true;
}
