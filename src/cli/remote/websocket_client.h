/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A WebSocket to the daemon (RFC 6455): libcurl makes the connection, with TLS and proxies as for
 * any request; the upgrade is written and checked here; libwslay does the frames.
 *
 * Nothing but the opening blocks. The caller polls the descriptor together with its own and calls
 * websocket_client_step. One that the daemon does not answer on any more counts as lost, so that a
 * network that went away is noticed without anything being typed.
 */
#pragma once

#include "base/err.h"
#include "cli/remote/client.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEBSOCKET_CLIENT_MESSAGE_MAX (1024u * 1024) /* of a message that is received */

struct websocket_client;

/* A whole message. Returns 0 to go on, or -errno with err set, which ends the step. */
typedef int (*websocket_client_fn)(
	void *arg, bool is_text, const uint8_t *data, size_t len, struct err *err);

/*
 * Asks for `path` as a WebSocket of the subprotocol. An error answer becomes the error that any
 * other request would give. Watched signals of the client end it.
 */
int websocket_client_open(struct client *client, const char *path, const char *protocol,
	websocket_client_fn message, void *arg, struct websocket_client **ret, struct err *err)
	must_check;
void websocket_client_free(struct websocket_client *websocket);

/* What to poll for, and for how long at most. */
int websocket_client_fd(const struct websocket_client *websocket);
short websocket_client_events(const struct websocket_client *websocket);
int websocket_client_wait_ms(const struct websocket_client *websocket);

/* Puts a message behind those that wait to be sent. */
int websocket_client_send(struct websocket_client *websocket, bool is_text, const void *data,
	size_t len, struct err *err) must_check;

/*
 * While it is held nothing is received, so that whoever sends to us must wait; the daemon is told from time to
 * time that we are there.
 */
void websocket_client_hold(struct websocket_client *websocket, bool is_held);

/*
 * Begins a close; the step that brings the answer ends with the status 1000. Nothing may wait to be sent, which a
 * close would overtake.
 */
int websocket_client_close(struct websocket_client *websocket, struct err *err) must_check;

/* Bytes that wait to be sent. */
size_t websocket_client_queued(const struct websocket_client *websocket);

/*
 * Sends and receives what can be without waiting. 0 while it lasts; when it is over an error, with
 * the code "connection_lost" if connecting again may help.
 */
int websocket_client_step(struct websocket_client *websocket, struct err *err) must_check;

/* The status that the daemon closed it with; 0 if it did not. */
unsigned websocket_client_status(const struct websocket_client *websocket);
