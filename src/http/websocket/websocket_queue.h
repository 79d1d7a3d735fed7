/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frames of a WebSocket on their way to the client. They go to the socket at once while nothing waits;
 * else they wait here, always whole but for the first. Its owner has the lock.
 *
 * Our frames are not masked, so a header before the bytes is all there is to them; no library is needed.
 */
#pragma once

#include "http/ring.h"

#include <stdbool.h>
#include <stdint.h>

struct websocket_queue {
	struct ring waiting;
	size_t capacity; /* bytes that may wait; an empty queue takes any frame */
	size_t refused; /* the largest message that did not fit and was not called for yet; 0: none */
};

void websocket_queue_fini(struct websocket_queue *queue);

/* Whether a message may be put now. One that may not is remembered for websocket_queue_has_room(). */
bool websocket_queue_admit(struct websocket_queue *queue, size_t len);

/* Whether who was refused should try again. Half of the queue must be free: not for every few bytes. */
bool websocket_queue_has_room(const struct websocket_queue *queue);

/* One frame that is a whole message, or a control frame. After a failure (-EPIPE, -ENOMEM) half of it may
 * be out: nothing can follow. */
int websocket_queue_put(struct websocket_queue *queue, int sock, uint8_t opcode, const void *data,
	size_t len) must_check;

/* A close frame; the reason (NULL for none) is cut to the 123 bytes that fit, between characters. */
int websocket_queue_put_close(
	struct websocket_queue *queue, int sock, unsigned status, const char *reason) must_check;

/* Writes what waits, as far as it goes: 1 if it went anywhere, 0 if not, -EPIPE if it never will. */
int websocket_queue_flush(struct websocket_queue *queue, int sock) must_check;
