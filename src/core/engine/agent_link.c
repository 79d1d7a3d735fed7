/* SPDX-License-Identifier: Apache-2.0 */
#include "core/engine/agent_link.h"

#include "base/fd.h"
#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define LINK_OUT_MAX (4u << 20)
#define READ_SIZE    (256u << 10) /* whole frames of output, as a rule */

/* What could not be sent at once, in order. */
struct chunk {
	struct chunk *next;
	size_t len, sent;
	uint8_t data[];
};

struct agent_link {
	atomic_int refs;
	int fd;
	uint64_t number; /* the driver's */
	struct watch *watch;
	const struct agent_link_events *events;
	void *arg;
	struct buf in; /* the beginning of a frame that is not all there */

	pthread_mutex_t lock; /* what follows */
	struct chunk *out_first, **out_last;
	size_t out_len;
	bool ended;
};

uint64_t agent_link_number(const struct agent_link *link)
{
	return link->number;
}

struct agent_link *agent_link_ref(struct agent_link *link)
{
	atomic_fetch_add(&link->refs, 1);
	return link;
}

void agent_link_unref(struct agent_link *link)
{
	if (!link || atomic_fetch_sub(&link->refs, 1) > 1)
		return;
	while (link->out_first) {
		struct chunk *next = link->out_first->next;

		free(link->out_first);
		link->out_first = next;
	}
	buf_fini(&link->in);
	fd_close(link->fd);
	pthread_mutex_destroy(&link->lock);
	free(link);
}

/* On the event loop's thread, when no more events can come. */
static void released(void *arg)
{
	struct agent_link *link = arg;

	link->events->lost(link->arg);
	agent_link_unref(link);
}

void agent_link_close(struct agent_link *link)
{
	bool first;

	pthread_mutex_lock(&link->lock);
	first = !link->ended;
	link->ended = true;
	pthread_mutex_unlock(&link->lock);
	if (!first)
		return;
	shutdown(link->fd, SHUT_RDWR);
	watch_close(link->watch);
}

/* Sends what waits, as far as the socket takes it. The lock is held. */
static int flush(struct agent_link *link)
{
	while (link->out_first) {
		struct chunk *chunk = link->out_first;
		ssize_t n = send(link->fd, chunk->data + chunk->sent, chunk->len - chunk->sent,
			MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -errno;
		chunk->sent += (size_t)n;
		link->out_len -= (size_t)n;
		if (chunk->sent < chunk->len)
			return 0;
		link->out_first = chunk->next;
		if (!link->out_first)
			link->out_last = &link->out_first;
		free(chunk);
	}
	return 0;
}

/* Forgets what waits, which the caller drops. The lock is held. */
static void empty(struct agent_link *link)
{
	link->out_first = NULL;
	link->out_last = &link->out_first;
	link->out_len = 0;
}

static struct chunk *make_chunk(uint16_t kind, uint32_t id, const void *payload, size_t len)
{
	struct chunk *chunk = mem_new(sizeof(*chunk) + FRAME_HEADER_LEN + len);
	struct buf header = BUF_INIT(FRAME_HEADER_LEN);

	frame_put_header(&header, kind, id, (uint32_t)len);
	memcpy(chunk->data, header.data, FRAME_HEADER_LEN);
	buf_fini(&header);
	if (len > 0)
		memcpy(chunk->data + FRAME_HEADER_LEN, payload, len);
	chunk->len = FRAME_HEADER_LEN + len;
	return chunk;
}

int agent_link_send(
	struct agent_link *link, uint16_t kind, uint32_t id, const void *payload, size_t len)
{
	struct chunk *chunk;
	int r = 0;

	if (len > AGENT_DOWN_MAX)
		return -EMSGSIZE;
	chunk = make_chunk(kind, id, payload, len);
	pthread_mutex_lock(&link->lock);
	if (link->ended)
		r = -EPIPE;
	if (r == 0 && link->out_len + chunk->len > LINK_OUT_MAX)
		r = -EAGAIN;
	if (r == 0) {
		bool idle = !link->out_first;

		*link->out_last = chunk;
		link->out_last = &chunk->next;
		link->out_len += chunk->len;
		if (idle)
			r = flush(link);
		if (r == 0 && idle && link->out_first)
			watch_set(link->watch, EPOLLIN | EPOLLOUT);
		if (r == 0)
			chunk = NULL;
		else /* refused whole, and the first: it is not to go out later */
			empty(link);
	}
	pthread_mutex_unlock(&link->lock);
	free(chunk);
	if (r == -ECONNRESET || r == -EPIPE) {
		agent_link_close(link);
		r = -EPIPE;
	}
	return r;
}

/* Hands over all whole frames of data; how many bytes that were, or -errno. */
static ssize_t take_frames(struct agent_link *link, const uint8_t *data, size_t len)
{
	size_t at = 0;

	for (;;) {
		struct frame frame;
		int n = frame_next(data + at, len - at, AGENT_UP_MAX, &frame);
		int r;

		if (n < 0)
			return n;
		if (n == 0)
			return (ssize_t)at;
		r = link->events->frame(link->arg, &frame);
		if (r < 0)
			return r;
		at += (size_t)n;
	}
}

static int take_bytes(struct agent_link *link, const uint8_t *data, size_t len)
{
	ssize_t taken;

	if (link->in.len == 0) {
		taken = take_frames(link, data, len);
		if (taken < 0)
			return (int)taken;
		return buf_append(&link->in, data + taken, len - (size_t)taken);
	}
	if (buf_append(&link->in, data, len) < 0)
		return -EPROTO;
	taken = take_frames(link, link->in.data, link->in.len);
	if (taken < 0)
		return (int)taken;
	buf_consume(&link->in, (size_t)taken);
	if (link->in.len == 0)
		buf_fini(&link->in); /* an idle link keeps no memory */
	return 0;
}

static int read_some(struct agent_link *link)
{
	uint8_t data[READ_SIZE] not_cleared;
	/* Plain recv: descriptors that a hostile agent sends along are dropped by the kernel. */
	ssize_t n = recv(link->fd, data, sizeof(data), MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	return n == 0 ? -EPIPE : take_bytes(link, data, (size_t)n);
}

static void ready(void *arg, uint32_t events)
{
	struct agent_link *link = arg;
	int r = 0;

	if (events & EPOLLOUT) {
		pthread_mutex_lock(&link->lock);
		r = flush(link);
		if (r == 0 && !link->out_first)
			watch_set(link->watch, EPOLLIN);
		pthread_mutex_unlock(&link->lock);
	}
	if (r == 0 && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		r = read_some(link);
	if (r < 0) {
		if (r == -EPROTO)
			log_warning("an agent broke the protocol; its sandbox is ended");
		agent_link_close(link);
	}
}

int agent_link_open(struct event_loop *loop, const struct driver_link *from,
	const struct agent_link_events *events, void *arg, struct agent_link **ret_link,
	struct err *err)
{
	struct agent_link *link = mem_new(sizeof(*link));
	int r;

	link->refs = 2; /* the caller's and the watch's */
	link->fd = from->fd;
	link->number = from->number;
	link->events = events;
	link->arg = arg;
	link->in = BUF_INIT(AGENT_UP_MAX + FRAME_HEADER_LEN + READ_SIZE);
	link->out_last = &link->out_first;
	pthread_mutex_init(&link->lock, NULL);
	/* The caller must have the link before the first event. */
	*ret_link = link;
	r = watch_open(loop, from->fd, EPOLLIN, ready, released, link, &link->watch, err);
	if (r < 0) {
		*ret_link = NULL;
		link->refs = 1;
		agent_link_unref(link);
	}
	return r;
}
