/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A WebSocket that a request was turned into: whole messages in, whole messages out, both bounded.
 *
 * All events come on the poller's thread, one at a time, and must not block. Sending, pausing and
 * closing may be done from any thread, also from within an event. A websocket is counted; `arg` must
 * live until `gone`, after which no other event comes. What was accepted for sending is sent before a
 * close that we ask for. The other side is pinged every 15 s, and counts as gone after two pings without
 * a sign of life.
 *
 * The request itself is over when the handshake is sent, and with it what request_keep() was given.
 */
#pragma once

#include "base/mem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct websocket;

#define WEBSOCKET_MESSAGE_MAX                                                                      \
	(64u * 1024) /* of a message that is received; more closes it with 1009 */

enum websocket_status {
	WEBSOCKET_NORMAL = 1000,
	WEBSOCKET_GOING_AWAY = 1001,
	WEBSOCKET_REFUSED = 1008,
	WEBSOCKET_FAILED = 1011,
};

/* All of them must be given. */
struct websocket_events {
	/* The handshake is done: the first event. */
	void (*open)(void *arg, struct websocket *websocket);
	/* A whole message. A text is valid UTF-8, and followed by a NUL that does not count. */
	void (*message)(void *arg, bool is_text, const uint8_t *data, size_t len);
	/* There is room again after a send was refused. */
	void (*room)(void *arg);
	/* It is over, by whichever side: the last event, exactly once, also if `open` never came: then
	 * on whichever thread the request ended. */
	void (*gone)(void *arg);
};

struct websocket *websocket_ref(struct websocket *websocket);
void websocket_unref(struct websocket *websocket);

/* All or nothing: 0 if the message was taken, -EAGAIN if there is no room now, -EPIPE if it is over or
 * being closed. An empty queue takes any message. A text must be valid UTF-8. */
int websocket_send(struct websocket *websocket, bool is_text, const void *data, size_t len)
	must_check;

/* Reads and delivers nothing more until told otherwise: back-pressure for whoever sends to us. What the
 * client does meanwhile is not noticed, but for a connection that was reset. */
void websocket_pause(struct websocket *websocket, bool is_paused);

/* Sends what waits and then a close frame with the reason (NULL for none; cut to 123 bytes); `gone`
 * follows, no other event, after 2 s without progress even if nobody answers. */
void websocket_close(struct websocket *websocket, enum websocket_status status, const char *reason);
