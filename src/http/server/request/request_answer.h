/* SPDX-License-Identifier: Apache-2.0 */
/* The answers that a handler may give. */
#pragma once

#include "base/err.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

struct request;
struct stream;
struct websocket_events;

/* Adds a header to the answer (or replaces it), also to an error. The value must not have control
 * characters. */
void request_answer_header(struct request *req, const char *name, const char *value);

/* The value of one that was added, or NULL. */
const char *request_answer_header_of(const struct request *req, const char *name);

/*
 * Begins or ends (NULL) a browser's session: sets its cookie, which no script can read, which no other site makes a
 * browser send, and which comes back as the credential `session`.
 */
void request_answer_session(struct request *req, const char *secret, int64_t life_s);

/* The answers. request_answer_json takes over the reference; of numbers with a fraction it tells 12 digits, the other one
 * as many as they have. */
void request_answer_json(struct request *req, int status, json_t *body);
void request_answer_exact_json(struct request *req, int status, json_t *body);
void request_answer_text(struct request *req, int status, const char *type, const char *text);
void request_answer_bytes(
	struct request *req, int status, const char *type, const void *data, size_t len);
void request_answer_empty(struct request *req, int status);
/* Bytes that outlive the server. */
void request_answer_static(
	struct request *req, int status, const char *type, const void *data, size_t len);

/*
 * Sends exactly size bytes (UINT64_MAX: until the end, chunked) read from fd, a non-blocking stream
 * socket that the request owns from now on. Bytes go from fd straight into the connection's
 * buffer; nothing is read while the client does not take it. If fd ends early the connection is cut,
 * so that a short answer never looks like a whole one.
 */
void request_answer_fd(struct request *req, int status, const char *type, int fd, uint64_t size);

/*
 * Answers with an event stream (or any stream of bytes) pulled from `stream`, which the request
 * takes a reference of. A stream answers one request.
 */
void request_answer_stream(
	struct request *req, int status, const char *type, struct stream *stream);

/*
 * Answers a request with the handshake of a WebSocket, or with an error document (426, 400) if it did
 * not ask for one. `protocol` (NULL for none) must be among the subprotocols that the client offers, if
 * it offers any. Only on routes with ROUTE_WEBSOCKET. `capacity` bounds the bytes that wait to be sent.
 * After a failure no event comes.
 */
int request_answer_websocket(struct request *req, const char *protocol, size_t capacity,
	const struct websocket_events *events, void *arg, struct err *err) must_check;

/* Whether it can be answered so: the same errors, before anything was done for it. */
int request_check_websocket(struct request *req, const char *protocol, struct err *err) must_check;

/* Makes the answer an error document. */
void request_answer_error(struct request *req, const struct err *err);
