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

#include "http/server/request/request.h"

struct tunnel;

/*
 * Of a socket, connected and non-blocking, which it takes over, for the client that asks. `ended` is called once, on any
 * thread, when all is over.
 */
struct tunnel *tunnel_new(struct request *req, int fd, void (*ended)(void *arg), void *arg);

/* One that was not answered with; `ended` is not called. */
void tunnel_free(struct tunnel *tunnel);

/* Answers with the handshake as request_answer_websocket() does. The tunnel is its own, unless that fails. */
int request_answer_tunnel(struct request *req, const char *protocol, struct tunnel *tunnel,
	struct err *err) must_check;

/* Ends it at once, because whoever the socket led to has: resets the socket, and tells the client. On any thread, until
 * `ended` has returned. */
void tunnel_cut(void *tunnel);
