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
#include "http/principal.h"
#include "http/server/request/request_answer.h"
#include "http/server/route/route.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct request;

const char *request_id(const struct request *req);

/* Its traceparent with its own span; empty if it is in no trace. And the span of its sender there; empty: none. */
const char *request_trace(const struct request *req);
const char *request_trace_parent(const struct request *req);

/* The pattern of its route: "/v1/sandboxes/{id}". */
const char *request_route(const struct request *req);
/* What every handler of this server is given. */
void *request_context(const struct request *req);

const struct principal *request_principal(const struct request *req);

/* The path as it was sent, without the query. */
const char *request_path(const struct request *req);

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

/* The body of a route with ROUTE_ANY_BODY; and as any JSON value, which the caller owns. */
const void *request_body_bytes(const struct request *req, size_t *ret_len);
int request_body_value(const struct request *req, json_t **ret_value, struct err *err) must_check;

/* The method; all headers and all query parameters: by name, a list of what was sent under it. */
const char *request_method(const struct request *req);
json_t *request_headers_to_json(const struct request *req);
json_t *request_query_to_json(const struct request *req);

/* The size that Content-Length promises for a raw body, or UINT64_MAX. */
uint64_t request_body_size(const struct request *req);

/* Calls release(object) when the request is over, however it ends, and nothing of the server uses it any
 * more: what gone() and finish() are given is safe here. In reverse order. */
void request_keep(struct request *req, void *object, void (*release)(void *object));

/*
 * For whoever keeps account of requests (server_config): which object this one is about, where the
 * path does not say, and what else should be known of it. The last call counts.
 */
void request_set_object(struct request *req, const char *object);
void request_set_detail(struct request *req, const char *detail);

/* What it did, where the route alone does not say; it must outlive the request. */
void request_set_action(struct request *req, const char *action);

/* What they are told; "" for what there is not. The status and code are those of a complete answer. */
const char *request_action(const struct request *req);
const char *request_object(const struct request *req);
const char *request_detail(const struct request *req);
const char *request_peer(const struct request *req); /* "192.0.2.1", "2001:db8::1", "unix" */
const char *request_error_code(const struct request *req);
int request_status(const struct request *req);

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
 * upload occupies a thread, so the server admits a bounded number of them at once (half of its
 * workers, an eighth for one owner): past that it is -EAGAIN, and whatever error the handler then
 * returns is told as 429. A handler may answer without having read all. Only on routes with ROUTE_RAW_BODY.
 */
ssize_t request_read(struct request *req, void *data, size_t size);

/*
 * Keeps the request open with no thread: the handler returns 0 after request_hold() and no answer.
 * Later, from any thread, exactly once: request_answer_* and then request_release(), or
 * request_release_error(), or request_continue(); that may be before the handler has returned. `gone`, if given, is called
 * (once, from any thread, with no lock held) when the client has disconnected before that, or the
 * server closes; the request must then still be released. A call of gone that has begun may overlap the
 * release, so `arg` is best kept by the request (request_keep).
 */
void request_hold(struct request *req, void (*gone)(void *arg), void *arg);

/* The same for a request that can be answered at any time: a server that closes calls `gone` at once, not
 * after its grace. */
void request_hold_until_close(struct request *req, void (*gone)(void *arg), void *arg);
void request_release(struct request *req);

/*
 * In the place of a release: runs `again` on a worker thread, as if that were the handler. It answers, fails,
 * or holds the request once more.
 */
typedef int (*request_again_fn)(struct request *req, void *arg, struct err *err);
void request_continue(struct request *req, request_again_fn again, void *arg);
void request_release_error(struct request *req, const struct err *err);

/*
 * Cuts every other request and every WebSocket that is served to a token or login, which was revoked before. Of
 * those that are being admitted meanwhile, none slips through.
 */
void request_evict(struct request *req, const char *id);

/* What the server of this request has counted, and how many connections it has; not of one moment. */
struct answer_stats;
const struct answer_stats *request_server_stats(
	const struct request *req, unsigned *ret_connections);

/*
 * On an open route: asks the gate (server_config) who shows this credential, as it is done before other routes. A wrong
 * one is counted against the client's address. After that the request is theirs, also in the accounts.
 */
int request_identify(struct request *req, const struct credential *credential, struct err *err)
	must_check;
