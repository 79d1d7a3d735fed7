/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A WebSocket joined to a stream socket: whatever speaks TCP passes, both ways.
 *
 * Binary frames are bytes. Each side may end before the other does: the text frame {"type":"end"} says that no
 * bytes follow in its direction. A client closes the WebSocket when it has sent one and seen one; if it leaves
 * before that, the socket is reset. A socket that is reset closes the WebSocket with 1011.
 *
 * All of it happens on the poller's thread. A side that does not read stops the other: nothing is read from one
 * while something waits for the other, but for what fits into buffers of a fixed size.
 */
#pragma once

#include "http/request.h"

/*
 * Answers with the handshake as request_answer_websocket() does. Takes over fd, connected and non-blocking, also on
 * failure. `ended` is called once, on any thread, when all is over; not after a failure.
 */
int request_answer_tunnel(struct request *req, const char *protocol, int fd,
	void (*ended)(void *arg), void *arg, struct err *err) must_check;
