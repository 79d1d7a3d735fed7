/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring between two threads. Lock order: the stream's lock, then the request's (taken by the consumer's
 * callbacks).
 */
#include "http/stream.h"

#include "base/clock.h"
#include "http/ring.h"
#include "http/stream_private.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

static const char ping[] = ": ping\n\n";

struct stream {
	atomic_uint refs;
	struct stream_events events;
	void *arg;
	size_t capacity;

	pthread_mutex_t lock;
	struct ring ring; /* what waits */
	size_t refused;	  /* the offer that did not fit; 0 if none since the last call of room */
	bool finished;
	bool is_gone;
	bool asleep;
	bool poked; /* since the last pull began */
	bool was_bound;
	uint64_t active_ms;
	unsigned heartbeat_ms;
	const struct stream_consumer *consumer;
	void *consumer_arg;
};

struct stream *stream_new(size_t capacity, const struct stream_events *events, void *arg)
{
	struct stream *stream = mem_new(sizeof(*stream));

	assert(capacity > 0);
	atomic_init(&stream->refs, 1);
	pthread_mutex_init(&stream->lock, NULL);
	stream->capacity = capacity;
	stream->active_ms = clock_steady_ms();
	stream->arg = arg;
	if (events)
		stream->events = *events;
	return stream;
}

struct stream *stream_new_pulled(const struct stream_events *events, void *arg)
{
	assert(events->pull);
	return stream_new(sizeof(ping), events, arg);
}

struct stream *stream_ref(struct stream *stream)
{
	atomic_fetch_add(&stream->refs, 1);
	return stream;
}

void stream_unref(struct stream *stream)
{
	if (!stream || atomic_fetch_sub(&stream->refs, 1) != 1)
		return;
	pthread_mutex_destroy(&stream->lock);
	ring_fini(&stream->ring);
	free(stream);
}

static void wake(struct stream *stream)
{
	if (!stream->asleep)
		return;
	stream->asleep = false;
	stream->consumer->wake(stream->consumer_arg);
}

static int offer(struct stream *stream, const void *data, size_t len)
{
	int r;

	if (stream->is_gone || stream->finished)
		return -EPIPE;
	if (len == 0)
		return 0;
	if (stream->ring.len > 0 &&
		(len > stream->capacity || stream->ring.len > stream->capacity - len)) {
		if (len > stream->refused)
			stream->refused = len;
		return -EAGAIN;
	}
	r = ring_put(&stream->ring, stream->capacity, data, len);
	if (r < 0)
		return r;
	stream->active_ms = clock_steady_ms();
	wake(stream);
	return 0;
}

int stream_offer(struct stream *stream, const void *data, size_t len)
{
	int r;

	pthread_mutex_lock(&stream->lock);
	r = offer(stream, data, len);
	pthread_mutex_unlock(&stream->lock);
	return r;
}

void stream_poke(struct stream *stream)
{
	pthread_mutex_lock(&stream->lock);
	stream->poked = true;
	wake(stream);
	pthread_mutex_unlock(&stream->lock);
}

void stream_finish(struct stream *stream)
{
	pthread_mutex_lock(&stream->lock);
	stream->finished = true;
	wake(stream);
	pthread_mutex_unlock(&stream->lock);
}

void stream_set_heartbeat(struct stream *stream, unsigned interval_ms)
{
	pthread_mutex_lock(&stream->lock);
	stream->heartbeat_ms = interval_ms;
	if (stream->consumer)
		stream->consumer->retime(stream->consumer_arg);
	pthread_mutex_unlock(&stream->lock);
}

void stream_bind(struct stream *stream, const struct stream_consumer *consumer, void *arg)
{
	pthread_mutex_lock(&stream->lock);
	assert(!stream->was_bound);
	stream->was_bound = true;
	stream->consumer = consumer;
	stream->consumer_arg = arg;
	if (stream->heartbeat_ms > 0)
		consumer->retime(arg);
	pthread_mutex_unlock(&stream->lock);
}

void stream_unbind(struct stream *stream)
{
	bool tell;

	pthread_mutex_lock(&stream->lock);
	stream->consumer = NULL;
	stream->asleep = false;
	tell = !stream->is_gone;
	stream->is_gone = true;
	pthread_mutex_unlock(&stream->lock);
	if (tell && stream->events.gone)
		stream->events.gone(stream->arg);
}

static size_t take(struct stream *stream, char *data, size_t size)
{
	size_t len = ring_take(&stream->ring, data, size);

	stream->active_ms = clock_steady_ms();
	/* One offer larger than the capacity must not stay allocated for ever. */
	if (stream->ring.len == 0 && stream->ring.size > stream->capacity)
		ring_fini(&stream->ring);
	return len;
}

/* Half of the ring must be free before a producer is called: not for every few bytes. */
static bool has_room(const struct stream *stream)
{
	size_t want =
		stream->refused > stream->capacity / 2 ? stream->refused : stream->capacity / 2;

	if (stream->refused == 0 || stream->finished)
		return false;
	return stream->ring.len == 0 ||
	       (want <= stream->capacity && stream->ring.len <= stream->capacity - want);
}

size_t stream_capacity(const struct stream *stream)
{
	return stream->capacity;
}

bool stream_is_pulled(const struct stream *stream)
{
	return stream->events.pull != NULL;
}

/* Asks the producer. The lock is held, but not while it is asked; so it may poke meanwhile. */
static ssize_t ask(struct stream *stream, char *data, size_t size)
{
	ssize_t n;

	do {
		stream->poked = false;
		pthread_mutex_unlock(&stream->lock);
		n = stream->events.pull(stream->arg, data, size);
		pthread_mutex_lock(&stream->lock);
	} while (n == 0 && stream->poked);
	if (n > 0)
		stream->active_ms = clock_steady_ms();
	return n;
}

ssize_t stream_pull(struct stream *stream, char *data, size_t size)
{
	bool room = false;
	ssize_t n = 0;

	pthread_mutex_lock(&stream->lock);
	if (stream->events.pull && stream->ring.len == 0 && !stream->finished) {
		n = ask(stream, data, size);
		if (n != 0) {
			pthread_mutex_unlock(&stream->lock);
			return n;
		}
	}
	if (stream->ring.len > 0) {
		n = (ssize_t)take(stream, data, size);
		room = has_room(stream);
		if (room)
			stream->refused = 0;
	} else if (stream->finished) {
		n = -ENODATA;
	} else {
		stream->asleep = true;
		stream->consumer->sleep(stream->consumer_arg);
	}
	pthread_mutex_unlock(&stream->lock);
	if (room && stream->events.room)
		stream->events.room(stream->arg);
	return n;
}

uint64_t stream_beat(struct stream *stream)
{
	uint64_t now = clock_steady_ms();
	uint64_t due = 0;

	pthread_mutex_lock(&stream->lock);
	if (stream->heartbeat_ms > 0 && stream->consumer && !stream->finished) {
		due = stream->active_ms + stream->heartbeat_ms;
		if (due <= now) {
			/* Only into an empty ring, so that it never splits what was offered in pieces. */
			if (stream->ring.len == 0 && stream->asleep &&
				ring_put(&stream->ring, stream->capacity, ping, sizeof(ping) - 1) ==
					0)
				wake(stream);
			stream->active_ms = now;
			due = now + stream->heartbeat_ms;
		}
	}
	pthread_mutex_unlock(&stream->lock);
	return due;
}
