/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request, as the functions in src/api see it, and how they answer it.
 *
 * A handler is one function, read from top to bottom: parse, do, answer. It runs on a worker thread
 * while its connection is suspended, so it may block for as long as a sandbox takes to build; it
 * must not wait for a client or for a command. What lasts is handed back to the connection's own
 * thread: a download is pumped from a descriptor, an event stream is pulled from a struct stream, and
 * a result that comes later is given by whoever has it (request_hold, request_release).
 *
 * A handler returns 0 after one request_answer_* call, or -errno with *err set; the server turns
 * that into the error document. Memory that lives as long as the request: request_keep().
 *
 * A client that closes its sending side early, even if it would still read, counts as gone. A handler
 * that already runs is not interrupted by that, and its answer reaches nobody.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct request;
struct stream;

/* Who asks; known before the handler runs. */
struct principal {
	char token_id[32]; /* empty: of a token that is not ours to revoke */
	char organization[64];
	char user[64];
	unsigned scopes;       /* what it may do; src/api gives them their meaning */
	int64_t expires_at_ms; /* on the wall clock, after which it is cut off; 0: never */
};

static inline bool principal_is_over(const struct principal *principal, int64_t wall_ms)
{
	return principal->expires_at_ms > 0 && principal->expires_at_ms <= wall_ms;
}

#define REQUEST_BODY_MAX (1024u * 1024) /* of a JSON body */
#define REQUEST_PARAMS	 4		/* variable parts of a path */

const char *request_id(const struct request *req);
const struct principal *request_principal(const struct request *req);

/* A variable part of the path by its name in the route ("id"); never NULL for a name in the route. */
const char *request_param(const struct request *req, const char *name);

/* A query parameter (percent-decoded) or header; NULL when absent. A parameter with a NUL byte inside, and
 * either of them given twice, is refused by the server before the handler runs; headers that are lists
 * (Accept, If-None-Match, ...) are joined instead. */
const char *request_query(const struct request *req, const char *name);
const char *request_header(const struct request *req, const char *name);

/* The body as a JSON object, or an empty object when there is none; borrowed. The server has
 * checked type, size, depth, encoding and duplicate keys. */
const json_t *request_body(const struct request *req);

/* The size that Content-Length promises for a raw body, or UINT64_MAX. */
uint64_t request_body_size(const struct request *req);

/* Calls release(object) when the request is over, however it ends, and nothing of the server uses it any
 * more: what gone() and finish() are given is safe here. In reverse order. */
void request_keep(struct request *req, void *object, void (*release)(void *object));

/* Adds a header to the answer (or replaces it), also to an error. The value must not have control
 * characters. */
void request_answer_header(struct request *req, const char *name, const char *value);

/* The answers. request_answer_json takes over the reference. */
void request_answer_json(struct request *req, int status, json_t *body);
void request_answer_text(struct request *req, int status, const char *type, const char *text);
void request_answer_empty(struct request *req, int status);

/*
 * Sends exactly size bytes (UINT64_MAX: until the end, chunked) read from fd, a non-blocking stream
 * socket that the request owns from now on. Bytes go from fd straight into the connection's
 * buffer; nothing is read while the client does not take it. If fd ends early the connection is cut,
 * so that a short answer never looks like a whole one.
 */
void request_answer_fd(struct request *req, int status, const char *type, int fd, uint64_t size);

/*
 * Takes the raw body: every chunk is written to fd, a non-blocking stream socket owned by the caller,
 * as u32 little-endian length and bytes, while the client sends it; the end of the body is a length of
 * zero. Then finish(req, arg) runs on a worker thread and answers. If the client goes away first, or fd
 * fails, finish is still called, with a complete of false; the answer it gives may reach nobody. If
 * fd fails (the helper gave up early) the rest of the body is read and dropped, up to 64 KiB, else
 * the connection is closed after the answer.
 * Only on routes with ROUTE_RAW_BODY; returns to the server with 0 after it.
 */
typedef int (*request_finish_fn)(struct request *req, void *arg, bool complete, struct err *err);
void request_receive_to_fd(struct request *req, int fd, request_finish_fn finish, void *arg);

/*
 * Takes the raw body on the handler's own worker thread (archives, which libarchive pulls): blocks
 * until bytes are there. The number of bytes, 0 at the end, -EPIPE when the client is gone. Each such
 * upload occupies a thread, so the server admits a bounded number of them at once (a quarter of its
 * workers): past that it is -EAGAIN, and whatever error the handler then returns is told as 429. A
 * handler may answer without having read all. Only on routes with ROUTE_RAW_BODY.
 */
ssize_t request_read(struct request *req, void *data, size_t size);

/*
 * Answers with an event stream (or any stream of bytes) pulled from `stream`, which the request
 * takes a reference of. A stream answers one request.
 */
void request_answer_stream(
	struct request *req, int status, const char *type, struct stream *stream);

/*
 * Keeps the request open with no thread: the handler returns 0 after request_hold() and no answer.
 * Later, from any thread, exactly once: request_answer_* and then request_release(), or
 * request_release_error(); that may be before the handler has returned. `gone`, if given, is called
 * (once, from any thread, with no lock held) when the client has disconnected before that, or the
 * server closes; the request must then still be released. A call of gone that has begun may overlap the
 * release, so `arg` is best kept by the request (request_keep).
 */
void request_hold(struct request *req, void (*gone)(void *arg), void *arg);
void request_release(struct request *req);
void request_release_error(struct request *req, const struct err *err);

/*
 * Cuts every other request and every WebSocket that is served to a token, which was revoked before. Of
 * those that are being admitted meanwhile, none slips through.
 */
void request_evict(struct request *req, const char *token_id);
