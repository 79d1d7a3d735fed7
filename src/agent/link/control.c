/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/link/control.h"

#include "agent/link/watch.h"
#include "base/fd.h"
#include "wire/agent.h"
#include "wire/fdpass.h"
#include "wire/pack.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define BATCH 16 /* messages in one turn, so that a flood of them leaves time for the rest */

void control_init(struct control *control, int epoll_fd, control_handler *serve, void *context)
{
	*control = (struct control){
		.epoll_fd = epoll_fd, .fd = -1, .serve = serve, .context = context};
}

static void control_close(struct control *control)
{
	fd_close(take_fd(&control->fd));
	while (control->waiting_count > 0)
		fd_close(control->waiting[--control->waiting_count].fd);
}

void control_open(struct control *control, int fd)
{
	control_close(control);
	control->fd = fd;
	if (watch_add(control->epoll_fd, fd, EPOLLIN, WATCH_CONTROL, 0) < 0)
		control_close(control);
}

/*
 * The daemon wrote the first frame before it sent us the channel, so all of it is there. What
 * follows it is for the helper, so no byte beyond it is read.
 */
static void serve_channel(struct control *control, int channel)
{
	uint8_t data[AGENT_CHANNEL_FIRST_MAX] not_cleared;
	struct unpack header = UNPACK_INIT(data, FRAME_HEADER_LEN);
	struct frame frame;
	uint32_t len;

	if (recv(channel, data, FRAME_HEADER_LEN, MSG_DONTWAIT) != FRAME_HEADER_LEN)
		return;
	len = unpack_u32(&header);
	if (len > sizeof(data) - FRAME_HEADER_LEN ||
		(len > 0 &&
			recv(channel, data + FRAME_HEADER_LEN, len, MSG_DONTWAIT) != (ssize_t)len))
		return;
	if (frame_next(data, FRAME_HEADER_LEN + len, AGENT_CHANNEL_FIRST_MAX, &frame) > 0)
		control->serve(control->context, channel, &frame);
}

/* If too many wait, the oldest was forgotten by the daemon. */
static void keep(struct control *control, uint32_t number, int fd)
{
	if (control->waiting_count == CONTROL_WAITING_MAX) {
		fd_close(control->waiting[0].fd);
		control->waiting_count--;
		memmove(&control->waiting[0], &control->waiting[1],
			control->waiting_count * sizeof(control->waiting[0]));
	}
	control->waiting[control->waiting_count].number = number;
	control->waiting[control->waiting_count].fd = fd;
	control->waiting_count++;
}

/* 1, or 0 if there is nothing more to be received now. */
static int receive_one(struct control *control)
{
	struct agent_control message;
	int fds[FDPASS_MAX];
	ssize_t n = fdpass_recv(control->fd, &message, sizeof(message), fds, MSG_DONTWAIT);

	if (n == -EAGAIN)
		return 0;
	if (n == -EPROTO || n == -EINTR)
		return 1;
	if (n <= 0) {
		control_close(control);
		return 0;
	}
	if (n == (ssize_t)sizeof(message) && message.kind == AGENT_CONTROL_CHANNEL && fds[0] >= 0)
		serve_channel(control, fds[0]);
	else if (n == (ssize_t)sizeof(message) && message.kind == AGENT_CONTROL_ISOLATED &&
		 fds[0] >= 0)
		keep(control, message.number, take_fd(&fds[0]));
	for (size_t i = 0; i < FDPASS_MAX; i++)
		fd_close(fds[i]);
	return 1;
}

void control_receive(struct control *control)
{
	for (int i = 0; i < BATCH && control->fd >= 0; i++) {
		if (receive_one(control) == 0)
			break;
	}
}

static int find(struct control *control, uint32_t number)
{
	for (size_t i = 0; i < control->waiting_count; i++) {
		if (control->waiting[i].number == number) {
			int fd = control->waiting[i].fd;

			control->waiting_count--;
			memmove(&control->waiting[i], &control->waiting[i + 1],
				(control->waiting_count - i) * sizeof(control->waiting[0]));
			return fd;
		}
	}
	return -1;
}

/* It was sent before the frame that asks for it, but the loop may have come to the link first. */
int control_take(struct control *control, uint32_t number)
{
	int fd = find(control, number);

	while (fd < 0 && control->fd >= 0 && receive_one(control) > 0)
		fd = find(control, number);
	return fd;
}
