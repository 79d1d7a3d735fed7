/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/uplink.h"

#include "agent/watch.h"
#include "base/fd.h"
#include "wire/agent.h"
#include "wire/fdpass.h"
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

void uplink_init(struct uplink *uplink, int epoll_fd)
{
	*uplink = (struct uplink){
		.epoll_fd = epoll_fd,
		.fd = -1,
		.in = BUF_INIT(FRAME_HEADER_LEN + AGENT_DOWN_MAX + RECEIVE_MIN),
		.out = BUF_INIT(OUT_MAX),
	};
}

static void uplink_close(struct uplink *uplink)
{
	int epoll_fd = uplink->epoll_fd;

	fd_close(uplink->fd);
	for (size_t i = 0; i < uplink->fd_count; i++)
		fd_close(uplink->fds[i]);
	buf_fini(&uplink->in);
	buf_fini(&uplink->out);
	uplink_init(uplink, epoll_fd);
}

void uplink_open(struct uplink *uplink, int fd)
{
	uplink_close(uplink);
	uplink->fd = fd;
	uplink->watched = EPOLLIN;
	if (watch_add(uplink->epoll_fd, fd, uplink->watched, WATCH_LINK, 0) < 0)
		uplink_close(uplink);
}

/* How many more bytes the frame that has begun to arrive needs. */
static size_t bytes_wanted(const struct uplink *uplink)
{
	struct unpack header = UNPACK_INIT(uplink->in.data, uplink->in.len);
	size_t whole;

	if (uplink->in.len < FRAME_HEADER_LEN)
		return RECEIVE_MIN;
	whole = FRAME_HEADER_LEN + (size_t)unpack_u32(&header);
	return whole - uplink->in.len > RECEIVE_MIN ? whole - uplink->in.len : RECEIVE_MIN;
}

/* The bytes received; 0 for none now; negative when the link is at its end. */
static ssize_t receive_bytes(struct uplink *uplink)
{
	int fds[FDPASS_MAX];
	ssize_t n;

	if (buf_reserve(&uplink->in, bytes_wanted(uplink)) < 0)
		return -ENOMEM;
	n = fdpass_recv(uplink->fd, uplink->in.data + uplink->in.len,
		uplink->in.cap - uplink->in.len, fds, MSG_DONTWAIT);
	if (n == -EAGAIN)
		return 0;
	if (n <= 0)
		return n < 0 ? n : -ENODATA;
	uplink->in.len += (size_t)n;
	for (size_t i = 0; i < FDPASS_MAX && fds[i] >= 0; i++) {
		if (uplink->fd_count < UPLINK_FDS_MAX) {
			uplink->fds[uplink->fd_count++] = fds[i];
		} else {
			fd_close(fds[i]);
			n = -EPROTO;
		}
	}
	return n;
}

void uplink_receive(struct uplink *uplink, uplink_handler *handler, void *context)
{
	size_t used = 0;
	ssize_t n;

	if (uplink->fd < 0 || uplink->broken)
		return;
	n = receive_bytes(uplink);
	uplink->broken = n < 0;
	while (!uplink->broken) {
		struct frame frame;
		int r = frame_next(
			uplink->in.data + used, uplink->in.len - used, AGENT_DOWN_MAX, &frame);

		if (r == 0)
			break;
		if (r < 0 || handler(context, &frame) < 0) {
			uplink->broken = true;
			break;
		}
		used += (size_t)r;
	}
	buf_consume(&uplink->in, used);
	if (uplink->in.len > 0)
		return;
	/* Between two frames no descriptor is on its way: one that is left belonged to no frame. */
	if (uplink->fd_count > 0)
		uplink->broken = true;
	/* The smallest buffer stays: making it anew for each frame costs more than the frame. */
	if (uplink->in.cap > RECEIVE_MIN)
		buf_fini(&uplink->in);
}

int uplink_take_fd(struct uplink *uplink)
{
	int fd;

	if (uplink->fd_count == 0)
		return -1;
	fd = uplink->fds[0];
	uplink->fd_count--;
	for (size_t i = 0; i < uplink->fd_count; i++)
		uplink->fds[i] = uplink->fds[i + 1];
	return fd;
}

static bool is_usable(const struct uplink *uplink)
{
	return uplink->fd >= 0 && uplink->attached && !uplink->broken;
}

struct buf *uplink_begin(struct uplink *uplink, uint16_t kind, uint32_t id, uint32_t len)
{
	if (!is_usable(uplink))
		return NULL;
	frame_put_header(&uplink->out, kind, id, len);
	return &uplink->out;
}

/* The bytes the socket took of count parts; 0 when it is full. */
static size_t send_parts(struct uplink *uplink, struct iovec *parts, size_t count)
{
	struct msghdr msg = {.msg_iov = parts, .msg_iovlen = count};
	ssize_t n;

	do {
		n = sendmsg(uplink->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	if (n >= 0)
		return (size_t)n;
	if (errno == EAGAIN)
		uplink->full = true;
	else
		uplink->broken = true;
	return 0;
}

static void send_waiting(struct uplink *uplink)
{
	struct iovec all = {.iov_base = uplink->out.data, .iov_len = uplink->out.len};
	size_t n;

	if (uplink->out.len == 0)
		return;
	if (uplink->out.failed) {
		uplink->broken = true;
		return;
	}
	n = send_parts(uplink, &all, 1);
	buf_consume(&uplink->out, n);
	if (uplink->out.len > 0)
		uplink->full = true;
	else if (uplink->out.cap > OUT_KEPT)
		buf_fini(&uplink->out);
}

/*
 * What waits, the head of the frame and the bytes of the backlog leave in one system call and
 * without being copied; only what a full socket leaves over is kept.
 */
bool uplink_put_output(struct uplink *uplink, uint32_t id, const struct backlog_piece *piece)
{
	struct iovec parts[3];
	size_t before = uplink->out.len;
	size_t n;

	if (!is_usable(uplink) || uplink->full)
		return false;
	frame_put_header(&uplink->out, AGENT_OUTPUT, id, (uint32_t)(8 + 1 + piece->len));
	pack_u64(&uplink->out, piece->offset);
	pack_u8(&uplink->out, (uint8_t)piece->stream);
	if (uplink->out.failed) {
		uplink->broken = true;
		return false;
	}
	parts[0] = (struct iovec){.iov_base = uplink->out.data, .iov_len = uplink->out.len};
	parts[1] = piece->parts[0];
	parts[2] = piece->parts[1];
	n = send_parts(uplink, parts, 3);
	if (n <= before) {
		uplink->full = true;
		uplink->out.len = before;
		buf_consume(&uplink->out, n);
		return false;
	}
	for (size_t i = 0; i < 3; i++) {
		size_t part = n < parts[i].iov_len ? n : parts[i].iov_len;

		n -= part;
		if (i == 0)
			buf_consume(&uplink->out, part);
		else if (part < parts[i].iov_len)
			buf_append(&uplink->out, (uint8_t *)parts[i].iov_base + part,
				parts[i].iov_len - part);
	}
	if (uplink->out.len > 0)
		uplink->full = true;
	return true;
}

void uplink_resume(struct uplink *uplink)
{
	uplink->full = false;
	send_waiting(uplink);
}

void uplink_settle(struct uplink *uplink)
{
	uint32_t wanted;

	if (uplink->fd < 0)
		return;
	if (!uplink->broken && !uplink->full)
		send_waiting(uplink);
	if (uplink->broken) {
		uplink_close(uplink);
		return;
	}
	wanted = (uplink->out.len < OUT_PAUSE ? EPOLLIN : 0) | (uplink->full ? EPOLLOUT : 0);
	if (wanted == uplink->watched)
		return;
	uplink->watched = wanted;
	if (watch_change(uplink->epoll_fd, uplink->fd, wanted, WATCH_LINK, 0) < 0)
		uplink_close(uplink);
}
