/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/link/daemon_link.h"

#include "agent/link/watch.h"
#include "base/clock.h"
#include "base/fd.h"
#include "wire/agent.h"
#include "wire/pack.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define RECEIVE_MIN 2048u

/*
 * Small frames wait here while the socket is full. Above the first mark no request is read, so the
 * answers to them cannot grow without end; what was read may still bring it up to the second.
 */
#define OUT_KEPT  512u
#define OUT_PAUSE (256u * 1024)
#define OUT_MAX	  (4u * 1024 * 1024)

void daemon_link_init(struct daemon_link *link, int epoll_fd)
{
	*link = (struct daemon_link){
		.epoll_fd = epoll_fd,
		.fd = -1,
		.in = BUF_INIT(FRAME_HEADER_LEN + AGENT_DOWN_MAX + RECEIVE_MIN),
		.out = BUF_INIT(OUT_MAX),
	};
}

static void daemon_link_close(struct daemon_link *link)
{
	int epoll_fd = link->epoll_fd;

	fd_close(link->fd);
	buf_fini(&link->in);
	buf_fini(&link->out);
	daemon_link_init(link, epoll_fd);
}

void daemon_link_prepare(struct daemon_link *link)
{
	if (buf_reserve(&link->in, RECEIVE_MIN) < 0 || buf_reserve(&link->out, 1) < 0)
		daemon_link_close(link);
}

void daemon_link_open(struct daemon_link *link, int fd)
{
	if (link->fd >= 0)
		daemon_link_close(link);
	link->fd = fd;
	link->watched = EPOLLIN;
	if (watch_add(link->epoll_fd, fd, link->watched, WATCH_LINK, 0) < 0)
		daemon_link_close(link);
}

/* How many more bytes the frame that has begun to arrive needs. */
static size_t bytes_wanted(const struct daemon_link *link)
{
	struct unpack header = UNPACK_INIT(link->in.data, link->in.len);
	size_t whole;

	if (link->in.len < FRAME_HEADER_LEN)
		return RECEIVE_MIN;
	whole = FRAME_HEADER_LEN + (size_t)unpack_u32(&header);
	return whole - link->in.len > RECEIVE_MIN ? whole - link->in.len : RECEIVE_MIN;
}

/* The bytes received; 0 for none now; negative when the link is at its end. */
static ssize_t receive_bytes(struct daemon_link *link)
{
	ssize_t n;

	if (buf_reserve(&link->in, bytes_wanted(link)) < 0)
		return -ENOMEM;
	/* Plain recv: descriptors that came along would be dropped by the kernel. */
	n = recv(link->fd, link->in.data + link->in.len, link->in.cap - link->in.len, MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0)
		return -ENODATA;
	link->in.len += (size_t)n;
	return n;
}

void daemon_link_receive(struct daemon_link *link, daemon_link_handler *handler, void *context)
{
	size_t used = 0;
	ssize_t n;

	if (link->fd < 0 || link->broken)
		return;
	n = receive_bytes(link);
	link->broken = n < 0;
	while (!link->broken) {
		struct frame frame;
		int r = frame_next(
			link->in.data + used, link->in.len - used, AGENT_DOWN_MAX, &frame);

		if (r == 0)
			break;
		if (r < 0 || handler(context, &frame) < 0) {
			link->broken = true;
			break;
		}
		used += (size_t)r;
	}
	buf_consume(&link->in, used);
	if (link->in.len > 0)
		return;
	/* The smallest buffer stays: making it anew for each frame costs more than the frame. */
	if (link->in.cap > RECEIVE_MIN)
		buf_fini(&link->in);
}

static bool is_usable(const struct daemon_link *link)
{
	return link->fd >= 0 && link->attached && !link->broken;
}

struct buf *daemon_link_begin(struct daemon_link *link, uint16_t kind, uint32_t id, uint32_t len)
{
	if (!is_usable(link))
		return NULL;
	frame_put_header(&link->out, kind, id, len);
	return &link->out;
}

/* Sends count parts; returns how many bytes the socket took, 0 when it is full. */
static size_t send_parts(struct daemon_link *link, struct iovec *parts, size_t count)
{
	struct msghdr msg = {.msg_iov = parts, .msg_iovlen = count};
	ssize_t n;

	do {
		n = sendmsg(link->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	if (n >= 0)
		return (size_t)n;
	if (errno == EAGAIN)
		link->full = true;
	else
		link->broken = true;
	return 0;
}

static void send_waiting(struct daemon_link *link)
{
	struct iovec all = {.iov_base = link->out.data, .iov_len = link->out.len};
	size_t n;

	if (link->out.len == 0)
		return;
	if (link->out.failed) {
		link->broken = true;
		return;
	}
	n = send_parts(link, &all, 1);
	buf_consume(&link->out, n);
	if (link->out.len > 0)
		link->full = true;
	else if (link->out.cap > OUT_KEPT)
		buf_fini(&link->out);
}

/*
 * Sends the queued frames, the frame's head and the bytes of the backlog in one system call and
 * without a copy; only what a full socket does not take is copied.
 */
bool daemon_link_put_output(
	struct daemon_link *link, uint32_t id, const struct output_backlog_piece *piece)
{
	struct iovec parts[3];
	size_t before = link->out.len;
	size_t n;

	if (!is_usable(link) || link->full)
		return false;
	frame_put_header(&link->out, AGENT_OUTPUT, id, (uint32_t)(8 + 1 + 4 + piece->len));
	pack_u64(&link->out, piece->offset);
	pack_u8(&link->out, (uint8_t)piece->stream);
	pack_u32(&link->out, (uint32_t)clock_steady_ms() - piece->at_ms);
	if (link->out.failed) {
		link->broken = true;
		return false;
	}
	parts[0] = (struct iovec){.iov_base = link->out.data, .iov_len = link->out.len};
	parts[1] = piece->parts[0];
	parts[2] = piece->parts[1];
	n = send_parts(link, parts, 3);
	if (n <= before) {
		link->full = true;
		link->out.len = before;
		buf_consume(&link->out, n);
		return false;
	}
	for (size_t i = 0; i < 3; i++) {
		size_t part = n < parts[i].iov_len ? n : parts[i].iov_len;

		n -= part;
		if (i == 0)
			buf_consume(&link->out, part);
		else if (part < parts[i].iov_len)
			buf_append(&link->out, (uint8_t *)parts[i].iov_base + part,
				parts[i].iov_len - part);
	}
	if (link->out.len > 0)
		link->full = true;
	return true;
}

void daemon_link_resume(struct daemon_link *link)
{
	link->full = false;
	send_waiting(link);
}

bool daemon_link_has_more(const struct daemon_link *link)
{
	return link->out.len > 0 && is_usable(link) && !link->full;
}

void daemon_link_settle(struct daemon_link *link)
{
	uint32_t wanted;

	if (link->fd < 0)
		return;
	if (!link->broken && !link->full)
		send_waiting(link);
	if (link->broken) {
		daemon_link_close(link);
		return;
	}
	wanted = (link->out.len < OUT_PAUSE ? EPOLLIN : 0) | (link->full ? EPOLLOUT : 0);
	if (wanted == link->watched)
		return;
	link->watched = wanted;
	if (watch_change(link->epoll_fd, link->fd, wanted, WATCH_LINK, 0) < 0)
		daemon_link_close(link);
}
