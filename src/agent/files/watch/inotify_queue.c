/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/files/watch/inotify_queue.h"

#include "base/fd.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define EVENT_MAX (sizeof(struct inotify_event) + NAME_MAX + 1)
#define PAIR_MS	  20 /* between the two halves of a rename */

void inotify_queue_open(struct inotify_queue *queue)
{
	queue->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (queue->inotify < 0)
		queue->inotify = -errno;
	queue->at = queue->len = 0;
}

void inotify_queue_close(struct inotify_queue *queue)
{
	fd_close(queue->inotify);
}

void inotify_queue_read(struct inotify_queue *queue, int timeout_ms)
{
	struct pollfd pollfd = {.fd = queue->inotify, .events = POLLIN};
	ssize_t n;

	if (queue->at > 0) {
		memmove(queue->events, queue->events + queue->at, queue->len - queue->at);
		queue->len -= queue->at;
		queue->at = 0;
	}
	if (INOTIFY_QUEUE_LEN - queue->len < EVENT_MAX || poll(&pollfd, 1, timeout_ms) <= 0)
		return;
	n = read(queue->inotify, queue->events + queue->len, INOTIFY_QUEUE_LEN - queue->len);
	if (n > 0)
		queue->len += (size_t)n;
}

static struct inotify_event *event_at(struct inotify_queue *queue, size_t at)
{
	return (struct inotify_event *)(void *)(queue->events + at);
}

struct inotify_event *inotify_queue_next(struct inotify_queue *queue)
{
	struct inotify_event *event = event_at(queue, queue->at);

	if (queue->at == queue->len)
		return NULL;
	queue->at += sizeof(*event) + event->len;
	return event;
}

static struct inotify_event *find_pair(struct inotify_queue *queue, uint32_t cookie)
{
	size_t at = queue->at;

	while (at < queue->len) {
		struct inotify_event *event = event_at(queue, at);

		if ((event->mask & IN_MOVED_TO) && event->cookie == cookie)
			return event;
		at += sizeof(*event) + event->len;
	}
	return NULL;
}

struct inotify_event *inotify_queue_await_pair(struct inotify_queue *queue, uint32_t cookie)
{
	struct inotify_event *event = find_pair(queue, cookie);

	if (event)
		return event;
	inotify_queue_read(queue, queue->at == queue->len ? PAIR_MS : 0);
	return find_pair(queue, cookie);
}

const char *inotify_queue_name(const struct inotify_event *event)
{
	return event->len > 0 ? event->name : "";
}
