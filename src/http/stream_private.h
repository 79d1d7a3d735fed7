/* SPDX-License-Identifier: Apache-2.0 */
/* The consumer's side of a stream: the connection that sends it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct stream;

struct stream_consumer {
	/* Nothing to send: go to sleep. Called from stream_pull() with the stream's lock held. */
	void (*sleep)(void *arg);
	/* There is something again. Called with the stream's lock held, from any thread. */
	void (*wake)(void *arg);
	/* The heartbeat was changed: call stream_beat() soon. Called with the stream's lock held. */
	void (*retime)(void *arg);
};

/* A stream has one consumer in its life. */
void stream_bind(struct stream *stream, const struct stream_consumer *consumer, void *arg);

/* The consumer leaves; tells the producer (gone). */
void stream_unbind(struct stream *stream);

bool stream_is_pulled(const struct stream *stream);

/* How many bytes may wait in it. */
size_t stream_capacity(const struct stream *stream);

/* Takes up to size bytes; 0 after having called sleep(); -ENODATA at the end. */
ssize_t stream_pull(struct stream *stream, char *data, size_t size);

/* Puts a heartbeat in if one is due; when the next is, on clock_steady_ms(), or 0 for never. */
uint64_t stream_beat(struct stream *stream);
