/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes that one side produces while another sends them to a client: bounded, with back-pressure.
 *
 * The producer offers bytes from any thread and learns at once how much of them was taken; when the
 * buffer has room again, `room` is called. The consumer is the connection's thread: when there is
 * nothing to send, the connection sleeps, and an offer wakes it. A stream is counted: the request and
 * the producer hold a reference each, and either may let go first.
 *
 * Or the other way round: a pulled stream has no bytes of its own. When the connection can send, `pull` is
 * asked for some, on the connection's thread; stream_poke() says that there may be some again.
 */
#pragma once

#include "base/mem.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct stream;

struct stream_events {
	/* There is room again after an offer was refused; any thread, no lock of the stream held. */
	void (*room)(void *arg);
	/* The client went away, or the request ended (also after a clean end); nothing more will be
	 * taken. Called exactly once for a stream that was given to a request, last of all: `arg` must
	 * live until then. Any thread, no lock held. */
	void (*gone)(void *arg);
	/* Of a pulled stream: fills in up to size bytes; 0 if there are none now, -ENODATA at the end. */
	ssize_t (*pull)(void *arg, char *data, size_t size);
};

struct stream *stream_new(size_t capacity, const struct stream_events *events, void *arg);

/* One whose bytes come from events->pull. */
struct stream *stream_new_pulled(const struct stream_events *events, void *arg);
struct stream *stream_ref(struct stream *stream);
void stream_unref(struct stream *stream);

/* All or nothing: 0 if len bytes were taken, -EAGAIN if they did not fit now, -EPIPE if the client
 * is gone or the stream finished. An empty buffer takes any len (-ENOMEM if there is no memory). */
int stream_offer(struct stream *stream, const void *data, size_t len) must_check;

/* A pulled stream may have bytes again, or be at its end. */
void stream_poke(struct stream *stream);

/* The end: the client gets what is left, and then a clean end of the answer. */
void stream_finish(struct stream *stream);

/* Sends `: ping` comments on an otherwise quiet event stream, this often; 0 for never. They come only
 * between two offers, or when a pull gave nothing: so offer whole events, and do not give nothing in the
 * middle of one. */
void stream_set_heartbeat(struct stream *stream, unsigned interval_ms);
