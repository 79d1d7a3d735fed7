/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/errand_side.h"

#include "egress/tls_client.h"

#include <errno.h>
#include <sys/socket.h>

bool errand_side_receive(
	struct errand_side *side, const struct errand_side *other, size_t *budget, size_t *counter)
{
	ssize_t n;

	if (side->has_ended || side->in.len >= MESSAGE_HEAD_MAX ||
		other->out.len >= ERRAND_SIDE_WAITING_MAX || *budget == 0 ||
		buf_reserve(&side->in, ERRAND_SIDE_READ_BYTES) < 0)
		return false;
	if (side->tls) {
		n = tls_client_read(
			side->tls, side->in.data + side->in.len, ERRAND_SIDE_READ_BYTES);
	} else {
		n = recv(side->fd, side->in.data + side->in.len, ERRAND_SIDE_READ_BYTES, 0);
		n = n < 0 ? -errno : n;
	}
	if (n == -EAGAIN)
		return false;
	if (n <= 0) {
		side->has_ended = true;
		side->is_broken = n < 0;
		return true;
	}
	side->in.len += (size_t)n;
	*counter += (size_t)n;
	*budget -= (size_t)n < *budget ? (size_t)n : *budget;
	return true;
}

bool errand_side_flush(struct errand_side *side)
{
	ssize_t n;

	if (side->out.len == 0)
		return false;
	if (side->is_deaf) {
		side->out.len = 0;
		return true;
	}
	if (side->tls) {
		n = tls_client_write(side->tls, side->out.data, side->out.len);
	} else {
		n = send(side->fd, side->out.data, side->out.len, MSG_NOSIGNAL);
		n = n < 0 ? -errno : n;
	}
	if (n == -EAGAIN)
		return false;
	if (n < 0) {
		side->is_deaf = true;
		return true;
	}
	buf_consume(&side->out, (size_t)n);
	return true;
}

void errand_side_release(struct errand_side *side)
{
	if (side->in.len == 0)
		buf_fini(&side->in);
	if (side->out.len == 0)
		buf_fini(&side->out);
}

void errand_side_fini(struct errand_side *side)
{
	tls_client_close(side->tls);
	buf_fini(&side->in);
	buf_fini(&side->out);
}
