/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answers that a handler may give (http/server/request/request.h). Here an answer is only put together; it goes out when
 * the request is concluded. A later one takes the place of an earlier one, but keeps its headers.
 */
#include "http/server/request/request_answer.h"

#include "base/exact_digits.h"
#include "base/log.h"
#include "http/server/request/request_private.h"
#include "http/server/route/handshake.h"
#include "http/server/server_private.h"
#include "http/stream.h"
#include "http/stream_private.h"
#include "http/websocket/websocket_private.h"

#include <assert.h>
#include <microhttpd.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static struct answer_header *find_header(const struct request *req, const char *name)
{
	struct answer_header *header = req->answer.headers;

	while (header && strcasecmp(header->name, name) != 0)
		header = header->next;
	return header;
}

void request_answer_header(struct request *req, const char *name, const char *value)
{
	struct answer_header *header = find_header(req, name);

	if (!header) {
		header = arena_alloc(&req->arena, sizeof(*header));
		header->next = req->answer.headers;
		header->name = arena_strndup(&req->arena, name, strlen(name));
		req->answer.headers = header;
	}
	header->value = arena_strndup(&req->arena, value, strlen(value));
}

const char *request_answer_header_of(const struct request *req, const char *name)
{
	const struct answer_header *header = find_header(req, name);

	return header ? header->value : NULL;
}

void request_answer_error(struct request *req, const struct err *err)
{
	enum err_kind kind = err->kind == ERR_NONE ? ERR_INTERNAL : (enum err_kind)err->kind;
	struct err shown = *err;

	if (kind == ERR_INTERNAL) {
		/* The one place where it is logged; a client learns nothing of the host. */
		log_error("request %s (%s %s): %s", req->id,
			req->match.route ? req->match.route->method : "",
			req->match.route ? req->match.route->path : "",
			err->kind ? err->message : "no reason given");
		err_set(&shown, ERR_INTERNAL, "the server failed; see its log for request %s",
			req->id);
	}
	if ((kind == ERR_RATE || kind == ERR_UNAVAILABLE) && !find_header(req, "Retry-After")) {
		char seconds[16];

		snprintf(seconds, sizeof(seconds), "%u",
			err->retry_after_s ? err->retry_after_s : 1);
		request_answer_header(req, "Retry-After", seconds);
	}
	if (kind == ERR_UNAUTHENTICATED)
		request_answer_header(req, "WWW-Authenticate", "Bearer");
	answer_fini(&req->answer);
	memcpy(req->error_code, shown.code, sizeof(req->error_code));
	req->answer.kind = ANSWER_BYTES;
	req->answer.status = err_class(kind)->http_status;
	req->answer.type = "application/json";
	if (req->match.route && req->match.route->flags & ROUTE_E2B)
		req->answer.bytes = answer_bare_error_text(req->answer.status, &shown);
	else
		req->answer.bytes = answer_error_text(
			&shown, req->id, request_answer_header_of(req, "Sandlot-Confirm"));
	req->answer.len = strlen(req->answer.bytes);
	if (kind == ERR_UNAUTHENTICATED && !req->is_known && req->server->config.refused)
		req->server->config.refused(req->server->config.context, req);
}

static struct answer *begin_answer(
	struct request *req, enum answer_kind kind, int status, const char *type)
{
	answer_fini(&req->answer);
	req->error_code[0] = '\0';
	req->answer.kind = kind;
	req->answer.status = status;
	req->answer.type = type ? arena_strndup(&req->arena, type, strlen(type)) : NULL;
	return &req->answer;
}

/* What the answer takes of memory until it is sent. If its owner has too much of that, the answer is an error instead. */
static void hold_memory(struct request *req, uint64_t bytes)
{
	struct err err;

	if (request_hold_memory(req, bytes))
		return;
	request_refuse_memory(&err);
	request_answer_error(req, &err);
}

static void answer_json(struct request *req, int status, json_t *body, size_t digits)
{
	struct answer *answer = begin_answer(req, ANSWER_BYTES, status, "application/json");

	assert(body);
	answer->bytes =
		json_dumps(body, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(digits));
	json_decref(body);
	if (answer->bytes) {
		answer->len = strlen(answer->bytes);
		hold_memory(req, answer->len);
	} else {
		struct err err;

		err_set(&err, ERR_INTERNAL, "the answer cannot be written as JSON");
		request_answer_error(req, &err);
	}
}

void request_answer_json(struct request *req, int status, json_t *body)
{
	answer_json(req, status, body, 12);
}

void request_answer_exact_json(struct request *req, int status, json_t *body)
{
	answer_json(req, status, body, exact_digits(body));
}

void request_answer_bytes(
	struct request *req, int status, const char *type, const void *data, size_t len)
{
	struct answer *answer = begin_answer(req, ANSWER_BYTES, status, type);

	answer->bytes = mem_new(len + 1);
	if (len > 0)
		memcpy(answer->bytes, data, len);
	answer->len = len;
	hold_memory(req, answer->len);
}

void request_answer_text(struct request *req, int status, const char *type, const char *text)
{
	request_answer_bytes(req, status, type, text, strlen(text));
}

void request_answer_empty(struct request *req, int status)
{
	begin_answer(req, ANSWER_BYTES, status, NULL);
}

void request_answer_static(
	struct request *req, int status, const char *type, const void *data, size_t len)
{
	struct answer *answer = begin_answer(req, ANSWER_BYTES, status, type);

	answer->lasting = data;
	answer->len = len;
}

void request_answer_session(struct request *req, const char *secret, int64_t life_s)
{
	const struct guard *guard = request_guard(req);
	bool is_secure = guard_is_secure(guard, &req->headers);
	char name[GUARD_COOKIE_MAX], value[512];

	guard_format_cookie(guard, is_secure, name);
	snprintf(value, sizeof(value),
		"%s=%.300s; Path=/; Max-Age=%lld; HttpOnly; SameSite=Strict%s", name,
		secret ? secret : "", secret ? (long long)life_s : 0, is_secure ? "; Secure" : "");
	request_answer_header(req, "Set-Cookie", value);
}

void request_answer_fd(struct request *req, int status, const char *type, int fd, uint64_t size)
{
	struct answer *answer = begin_answer(req, ANSWER_FD, status, type);

	answer->fd = fd;
	answer->size = size;
	hold_memory(req, answer_buffer(answer));
}

void request_answer_stream(struct request *req, int status, const char *type, struct stream *stream)
{
	struct answer *answer = begin_answer(req, ANSWER_STREAM, status, type);

	answer->stream = stream_ref(stream);
	hold_memory(req, stream_capacity(stream) + answer_buffer(answer));
}

static int read_handshake(
	struct request *req, const char *protocol, struct handshake *ret_handshake, struct err *err)
{
	int r;

	assert(req->match.route->flags & ROUTE_WEBSOCKET);
	/* The HTTP library upgrades no other; a HEAD comes here because it is answered like a GET. */
	if (req->method != METHOD_GET || !req->is_http_1_1)
		r = err_set(err, ERR_UPGRADE, "a WebSocket begins with a GET over HTTP/1.1");
	else
		r = handshake_read(&req->headers, protocol, ret_handshake, err);
	if (r < 0 && err->kind == ERR_UPGRADE) {
		request_answer_header(req, "Connection", "Upgrade");
		request_answer_header(req, "Upgrade", "websocket");
		request_answer_header(req, "Sec-WebSocket-Version", HANDSHAKE_VERSION);
	}
	return r;
}

int request_check_websocket(struct request *req, const char *protocol, struct err *err)
{
	struct handshake ignored;

	return read_handshake(req, protocol, &ignored, err);
}

int request_answer_websocket(struct request *req, const char *protocol, size_t capacity,
	const struct websocket_events *events, void *arg, struct err *err)
{
	struct handshake handshake = {0};
	int r = read_handshake(req, protocol, &handshake, err);

	if (r < 0)
		return r;
	begin_answer(req, ANSWER_WEBSOCKET, MHD_HTTP_SWITCHING_PROTOCOLS, NULL)->websocket =
		websocket_new(capacity, events, arg);
	request_answer_header(req, "Upgrade", "websocket");
	request_answer_header(req, "Sec-WebSocket-Accept", handshake.accept);
	if (handshake.has_protocols)
		request_answer_header(req, "Sec-WebSocket-Protocol", protocol);
	return 0;
}
