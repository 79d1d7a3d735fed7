/* SPDX-License-Identifier: Apache-2.0 */
#include "core/change_feed.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/log.h"
#include "core/sandbox_state.h"
#include "wire/pack.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define READ_SIZE  (16u << 10)
#define CHANGE_MAX (2 + 2 * (4 + AGENT_PATH_MAX))

struct change_feed {
	atomic_int refs;
	int fd;
	struct watch *watch;
	const struct change_feed_sink *sink;
	void *arg;
	/* The reactor's thread only. */
	struct buf in;
	bool is_paused; /* the sink is full */

	pthread_mutex_t lock; /* closed, and against it every use of the watch */
	bool closed;
};

void change_feed_unref(struct change_feed *feed)
{
	if (!feed || atomic_fetch_sub(&feed->refs, 1) > 1)
		return;
	buf_fini(&feed->in);
	fd_close(feed->fd);
	pthread_mutex_destroy(&feed->lock);
	free(feed);
}

/* --- parsing --- */

/* A relative path in its plain form, or "". */
static bool is_plain(const char *path)
{
	while (*path) {
		size_t part = strcspn(path, "/");

		if (part == 0 || (part == 1 && path[0] == '.') ||
			(part == 2 && path[0] == '.' && path[1] == '.'))
			return false;
		path += part;
		if (*path && !*++path)
			return false;
	}
	return true;
}

/* A packed string at *at. 1, 0 if it is not all there, -EPROTO. */
static int take_path(const uint8_t *data, size_t len, size_t *at, char path[AGENT_PATH_MAX])
{
	struct unpack in = UNPACK_INIT(data + *at, len - *at);
	uint32_t path_len;

	if (len - *at < 4)
		return 0;
	path_len = unpack_u32(&in);
	if (path_len >= AGENT_PATH_MAX)
		return -EPROTO;
	if (len - *at - 4 < path_len)
		return 0;
	memcpy(path, data + *at + 4, path_len);
	path[path_len] = '\0';
	*at += 4 + path_len;
	return strlen(path) == path_len && is_plain(path) ? 1 : -EPROTO;
}

int change_feed_parse(const uint8_t *data, size_t len, struct change_feed_change *ret_change)
{
	size_t at = 2;
	int r;

	if (len < 2)
		return 0;
	if (data[0] < AGENT_CREATED || data[0] > AGENT_CHANGE_GONE || data[1] > AGENT_FILE_OTHER)
		return -EPROTO;
	ret_change->what = data[0];
	ret_change->kind = data[1];
	r = take_path(data, len, &at, ret_change->path);
	if (r > 0)
		r = take_path(data, len, &at, ret_change->to);
	return r > 0 ? (int)at : r;
}

/* --- reading --- */

/* Changes what is waited for, unless it was closed. */
static void wait_for(struct change_feed *feed, uint32_t events)
{
	pthread_mutex_lock(&feed->lock);
	if (!feed->closed)
		watch_set(feed->watch, events);
	pthread_mutex_unlock(&feed->lock);
}

void change_feed_close(struct change_feed *feed)
{
	pthread_mutex_lock(&feed->lock);
	if (!feed->closed) {
		feed->closed = true;
		/* Now, and not only when the last reference goes: the helper is to end. */
		shutdown(feed->fd, SHUT_RDWR);
		watch_close(feed->watch);
	}
	pthread_mutex_unlock(&feed->lock);
}

/* A socket that nothing is sent on can always be written to: so the reactor calls at once. */
void change_feed_resume(struct change_feed *feed)
{
	wait_for(feed, EPOLLIN | EPOLLOUT);
}

/* Hands over what is there. 0, -EAGAIN when the sink is full, -EPIPE at the end, -EPROTO. */
static int take_changes(struct change_feed *feed)
{
	struct change_feed_change change;
	size_t at = 0;
	int n, r = 0;

	if (feed->in.len == 0)
		return 0;
	while ((n = change_feed_parse(feed->in.data + at, feed->in.len - at, &change)) > 0) {
		r = change.what == AGENT_CHANGE_GONE ? -EPIPE
						     : feed->sink->change(feed->arg, &change);
		if (r < 0)
			break;
		at += (size_t)n;
	}
	buf_consume(&feed->in, at);
	if (feed->in.len == 0)
		buf_fini(&feed->in); /* a quiet feed keeps no memory */
	return n < 0 ? n : r;
}

/*
 * The same, and while the sink is full nothing is waited for. It may have got room, and said so, after
 * it refused and before the waiting ended: hence the second try.
 */
static int take_or_pause(struct change_feed *feed)
{
	int r = take_changes(feed);

	if (r != -EAGAIN)
		return r;
	/* One shot: else the end of the channel would be reported again and again. */
	wait_for(feed, EPOLLONESHOT);
	r = take_changes(feed);
	feed->is_paused = r == -EAGAIN;
	if (r == 0)
		wait_for(feed, EPOLLIN);
	return r;
}

static int read_some(struct change_feed *feed)
{
	uint8_t data[READ_SIZE];
	ssize_t n = recv(feed->fd, data, sizeof(data), MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -EPIPE;
	if (n == 0)
		return -EPIPE;
	return buf_append(&feed->in, data, (size_t)n) < 0 ? -EPROTO : take_or_pause(feed);
}

static void ready(void *arg, uint32_t events)
{
	struct change_feed *feed = arg;
	int r;

	if (feed->is_paused && !(events & EPOLLOUT))
		return; /* the end of the channel, behind what is not taken yet */
	if (events & EPOLLOUT)
		wait_for(feed, EPOLLIN);
	feed->is_paused = false;
	/* What waits goes first; nothing is read while the sink does not take it. */
	r = take_or_pause(feed);
	if (r == 0 && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		r = read_some(feed);
	if (r == 0 || r == -EAGAIN)
		return;
	if (r == -EPROTO)
		log_warning("a watch of files broke the protocol and was ended");
	change_feed_close(feed);
}

static void released(void *arg)
{
	struct change_feed *feed = arg;

	feed->sink->ended(feed->arg);
	change_feed_unref(feed);
}

int change_feed_open(struct engine *engine, int fd, const struct change_feed_sink *sink, void *arg,
	struct change_feed **ret_feed, struct err *err)
{
	struct change_feed *feed = mem_new(sizeof(*feed));
	int r;

	feed->refs = 2; /* the caller's and the watch's */
	feed->fd = fd;
	feed->sink = sink;
	feed->arg = arg;
	feed->in = BUF_INIT(CHANGE_MAX + READ_SIZE);
	pthread_mutex_init(&feed->lock, NULL);
	/* The caller must have the feed before the first change. */
	*ret_feed = feed;
	pthread_mutex_lock(&feed->lock);
	r = watch_open(engine->reactor, fd, EPOLLIN, ready, released, feed, &feed->watch, err);
	pthread_mutex_unlock(&feed->lock);
	if (r < 0) {
		*ret_feed = NULL;
		feed->refs = 1;
		change_feed_unref(feed);
	}
	return r;
}
