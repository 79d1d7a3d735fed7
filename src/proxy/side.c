/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/side.h"

#include "base/clock.h"
#include "base/fd.h"
#include "proxy/passage.h"
#include "proxy/proxy_loop.h"

#include <errno.h>
#include <sys/socket.h>

#define USED_EACH_MS 5000

void side_init(struct side *side, struct passage *passage, int fd)
{
	*side = (struct side){.passage = passage,
		.fd = fd,
		.is_writable = fd >= 0,
		.in = BUF_INIT(SIDE_IN_MAX),
		.out = BUF_INIT(SIDE_OUT_MAX)};
}

struct side *side_other(struct side *side)
{
	struct passage *passage = side->passage;

	return side == &passage->client ? &passage->app : &passage->client;
}

bool side_has_room(const struct side *side)
{
	return side->out.len < SIDE_WAITING_MAX;
}

static void note_move(struct passage *passage)
{
	passage->moved_ms = clock_steady_ms();
	if (passage->moved_ms - passage->used_ms < USED_EACH_MS || !passage->way.key[0])
		return;
	passage->used_ms = passage->moved_ms;
	passage->config->used(passage->config->context, passage->way.key);
}

bool side_receive(struct side *side)
{
	ssize_t n;

	if (!side->is_readable || side->fd < 0 || side->in.len >= MESSAGE_HEAD_MAX ||
		buf_reserve(&side->in, SIDE_READ_BYTES) < 0)
		return false;
	n = recv(side->fd, side->in.data + side->in.len, SIDE_READ_BYTES, 0);
	if (n > 0) {
		side->in.len += (size_t)n;
		/* A short read has emptied it: more brings another event, and so does the end, unless it did. */
		side->is_readable = n == SIDE_READ_BYTES || side->hangs_up;
		note_move(side->passage);
		return true;
	}
	side->is_readable = false;
	side->has_ended = n == 0 || errno != EAGAIN;
	side->is_broken = n < 0 && errno != EAGAIN;
	return side->has_ended;
}

bool side_flush(struct side *side)
{
	ssize_t n;

	if (side->out.len == 0 || !side->is_writable || side->fd < 0)
		return false;
	n = send(side->fd, side->out.data, side->out.len, MSG_NOSIGNAL);
	if (n < 0) {
		side->is_writable = false;
		if (errno == EAGAIN)
			return false;
		side->out.len = 0;
		side->is_readable = side->hangs_up = true;
		return true;
	}
	buf_consume(&side->out, (size_t)n);
	if (side->out.len == 0)
		buf_fini(&side->out);
	note_move(side->passage);
	return true;
}

void side_close(struct side *side)
{
	if (side->fd >= 0)
		proxy_loop_unwatch(side->passage->loop, side);
	fd_close(take_fd(&side->fd));
	buf_fini(&side->in);
	buf_fini(&side->out);
	side->is_readable = side->is_writable = false;
	side->hangs_up = side->has_ended = side->is_broken = false;
}

void side_release(struct side *side)
{
	if (side->in.len == 0)
		buf_fini(&side->in);
}
