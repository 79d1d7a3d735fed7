/* SPDX-License-Identifier: Apache-2.0 */
#include "core/files/file_changes.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/log.h"
#include "core/engine/sandbox_state.h"
#include "core/files/relative_path.h"
#include "wire/pack.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define READ_SIZE  (16u << 10)
#define CHANGE_MAX (2 + 2 * (4 + AGENT_PATH_MAX))

struct file_changes {
	atomic_int refs;
	int fd;
	struct watch *watch;
	const struct file_changes_sink *sink;
	void *arg;
	/* The event loop's thread only. */
	struct buf in;
	bool is_paused; /* the sink is full */

	pthread_mutex_t lock; /* closed, and against it every use of the watch */
	bool closed;
};

void file_changes_unref(struct file_changes *changes)
{
	if (!changes || atomic_fetch_sub(&changes->refs, 1) > 1)
		return;
	buf_fini(&changes->in);
	fd_close(changes->fd);
	pthread_mutex_destroy(&changes->lock);
	free(changes);
}

/* --- parsing --- */

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
	return strlen(path) == path_len && relative_path_is_plain(path) ? 1 : -EPROTO;
}

int file_changes_parse(const uint8_t *data, size_t len, struct file_changes_change *ret_change)
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
static void wait_for(struct file_changes *changes, uint32_t events)
{
	pthread_mutex_lock(&changes->lock);
	if (!changes->closed)
		watch_set(changes->watch, events);
	pthread_mutex_unlock(&changes->lock);
}

void file_changes_close(struct file_changes *changes)
{
	pthread_mutex_lock(&changes->lock);
	if (!changes->closed) {
		changes->closed = true;
		/* Now, and not only when the last reference goes: the helper is to end. */
		shutdown(changes->fd, SHUT_RDWR);
		watch_close(changes->watch);
	}
	pthread_mutex_unlock(&changes->lock);
}

/* A socket that nothing is sent on can always be written to: so the event loop calls at once. */
void file_changes_resume(struct file_changes *changes)
{
	wait_for(changes, EPOLLIN | EPOLLOUT);
}

/* Hands over what is there. 0, -EAGAIN when the sink is full, -EPIPE at the end, -EPROTO. */
static int take_changes(struct file_changes *changes)
{
	struct file_changes_change change;
	size_t at = 0;
	int n, r = 0;

	if (changes->in.len == 0)
		return 0;
	while ((n = file_changes_parse(changes->in.data + at, changes->in.len - at, &change)) > 0) {
		r = change.what == AGENT_CHANGE_GONE ? -EPIPE
						     : changes->sink->change(changes->arg, &change);
		if (r < 0)
			break;
		at += (size_t)n;
	}
	buf_consume(&changes->in, at);
	if (changes->in.len == 0)
		buf_fini(&changes->in); /* an idle stream keeps no memory */
	return n < 0 ? n : r;
}

/*
 * The same, and while the sink is full nothing is waited for. It may have got room, and said so, after
 * it refused and before the waiting ended: hence the second try.
 */
static int take_or_pause(struct file_changes *changes)
{
	int r = take_changes(changes);

	if (r != -EAGAIN)
		return r;
	/* One shot: else the end of the channel would be reported again and again. */
	wait_for(changes, EPOLLONESHOT);
	r = take_changes(changes);
	changes->is_paused = r == -EAGAIN;
	if (r == 0)
		wait_for(changes, EPOLLIN);
	return r;
}

static int read_some(struct file_changes *changes)
{
	uint8_t data[READ_SIZE];
	ssize_t n = recv(changes->fd, data, sizeof(data), MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -EPIPE;
	if (n == 0)
		return -EPIPE;
	return buf_append(&changes->in, data, (size_t)n) < 0 ? -EPROTO : take_or_pause(changes);
}

static void ready(void *arg, uint32_t events)
{
	struct file_changes *changes = arg;
	int r;

	if (changes->is_paused && !(events & EPOLLOUT))
		return; /* the end of the channel, behind what is not taken yet */
	if (events & EPOLLOUT)
		wait_for(changes, EPOLLIN);
	changes->is_paused = false;
	/* What waits goes first; nothing is read while the sink does not take it. */
	r = take_or_pause(changes);
	if (r == 0 && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		r = read_some(changes);
	if (r == 0 || r == -EAGAIN)
		return;
	if (r == -EPROTO)
		log_warning("a watch of files broke the protocol and was ended");
	file_changes_close(changes);
}

static void released(void *arg)
{
	struct file_changes *changes = arg;

	changes->sink->ended(changes->arg);
	file_changes_unref(changes);
}

int file_changes_open(struct engine *engine, int fd, const struct file_changes_sink *sink,
	void *arg, struct file_changes **ret_changes, struct err *err)
{
	struct file_changes *changes = mem_new(sizeof(*changes));
	int r;

	changes->refs = 2; /* the caller's and the watch's */
	changes->fd = fd;
	changes->sink = sink;
	changes->arg = arg;
	changes->in = BUF_INIT(CHANGE_MAX + READ_SIZE);
	pthread_mutex_init(&changes->lock, NULL);
	/* The caller must have the object before the first change. */
	*ret_changes = changes;
	pthread_mutex_lock(&changes->lock);
	r = watch_open(engine->loop, fd, EPOLLIN, ready, released, changes, &changes->watch, err);
	pthread_mutex_unlock(&changes->lock);
	if (r < 0) {
		*ret_changes = NULL;
		changes->refs = 1;
		file_changes_unref(changes);
	}
	return r;
}
