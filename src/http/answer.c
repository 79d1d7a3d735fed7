/* SPDX-License-Identifier: Apache-2.0 */
#include "http/answer.h"

#include "base/fd.h"
#include "http/download.h"
#include "http/exchange.h"
#include "http/loop.h"
#include "http/request_private.h"
#include "http/server_private.h"
#include "http/stream_private.h"
#include "http/websocket_private.h"

#include <errno.h>
#include <jansson.h>
#include <microhttpd.h>
#include <string.h>
#include <sys/socket.h>

#define PULL_BYTES (128u * 1024)

/* Pages of others neither guess what an answer is, nor frame it, embed it, or keep hold of a window that shows it. */
static const struct answer_header common_headers[] = {
	{NULL, "X-Content-Type-Options", "nosniff"},
	{NULL, "Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"},
	{NULL, "Cross-Origin-Opener-Policy", "same-origin"},
	{NULL, "Cross-Origin-Resource-Policy", "same-origin"},
	{NULL, "Cache-Control", "no-store"},
};

void answer_fini(struct answer *answer)
{
	free(answer->bytes);
	fd_close(answer->fd);
	/* Also one that never got as far as being sent: its producer is told in any case. */
	if (answer->stream)
		stream_unbind(answer->stream);
	stream_unref(answer->stream);
	if (answer->websocket)
		websocket_abandon(answer->websocket);
	*answer = (struct answer){.fd = -1, .headers = answer->headers};
}

/* Text as JSON; bytes that are not UTF-8 become question marks. */
static json_t *text_of(const char *text)
{
	json_t *value = json_string(text);

	if (!value) {
		auto_free char *plain = mem_strdup(text);

		for (char *c = plain; *c; c++)
			if ((unsigned char)*c >= 0x80)
				*c = '?';
		value = json_string(plain);
	}
	return value;
}

char *answer_error_text(const struct err *err, const char *request_id)
{
	bool retryable = err_class((enum err_kind)err->kind)->retryable;
	json_t *error = json_object();
	json_t *document = json_object();
	char *text;

	json_object_set_new(error, "code", text_of(err->code));
	json_object_set_new(error, "message", text_of(err->message));
	json_object_set_new(error, "retryable", json_boolean(retryable));
	json_object_set_new(
		error, "remediation", err->remedy[0] ? text_of(err->remedy) : json_null());
	json_object_set_new(error, "request_id", json_string(request_id));
	json_object_set_new(document, "error", error);
	text = json_dumps(document, JSON_COMPACT);
	json_decref(document);
	return text ? text : mem_strdup("{}");
}

/* Streams: the library pulls, the producer wakes. */

static void stream_sleep(void *arg)
{
	/* Refused when the client is gone; pull_stream() looks at that afterwards. */
	if (!request_suspend(arg))
		return;
}

static void stream_wake(void *arg)
{
	request_wake(arg);
}

static void stream_retime(void *arg)
{
	struct request *req = arg;

	poller_set_alarm(req->server->poller, &req->heartbeat, 1);
}

static const struct stream_consumer consumer = {stream_sleep, stream_wake, stream_retime};

static ssize_t pull_stream(void *arg, uint64_t position, char *data, size_t size)
{
	struct request *req = arg;
	ssize_t n;

	(void)position;
	if (request_is_cut(req))
		return MHD_CONTENT_READER_END_WITH_ERROR;
	n = stream_pull(req->answer.stream, data, size);
	if (n == -ENODATA)
		return MHD_CONTENT_READER_END_OF_STREAM;
	if (n == 0 && request_is_cut(req))
		return MHD_CONTENT_READER_END_WITH_ERROR;
	return n;
}

static void bind_stream(struct request *req)
{
	stream_bind(req->answer.stream, &consumer, req);
	pthread_mutex_lock(&req->lock);
	req->sending = req->answer.stream;
	pthread_mutex_unlock(&req->lock);
	/* Either server_close() sees the stream, or we see that it is closing. */
	if (atomic_load(&req->server->closing))
		stream_finish(req->answer.stream);
}

/*
 * The handshake is sent: the library's part ends here. It would tell of the request's end later, under
 * a lock of its own that comes last in our order; so that is done now.
 */
static void upgrade(void *arg, struct MHD_Connection *connection, void *context, const char *early,
	size_t len, MHD_socket sock, struct MHD_UpgradeResponseHandle *handle)
{
	struct request *req = arg;

	(void)connection;
	(void)context;
	websocket_open(take_ptr(&req->answer.websocket), req, sock, early, len);
	MHD_upgrade_action(handle, MHD_UPGRADE_ACTION_CLOSE);
	loop_wake(req->loop);
	exchange_leave(req);
}

static void drop_request(void *arg)
{
	request_unref(arg);
}

/* The buffer of a download. Of unknown size it goes out in chunks, from the connection's own buffer. */
static size_t block_for(uint64_t size)
{
	if (size == UINT64_MAX || size == 0)
		return 1;
	return size < DOWNLOAD_BLOCK ? (size_t)size : DOWNLOAD_BLOCK;
}

static struct MHD_Response *make_response(struct request *req)
{
	struct answer *answer = &req->answer;
	struct MHD_Response *response = NULL;

	switch (answer->kind) {
	case ANSWER_NONE:
		break;
	case ANSWER_BYTES:
		response = MHD_create_response_from_buffer(answer->len, answer->bytes,
			answer->bytes ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT);
		if (response)
			answer->bytes = NULL;
		break;
	case ANSWER_FD:
		response = MHD_create_response_from_callback(
			answer->size == UINT64_MAX ? MHD_SIZE_UNKNOWN : answer->size,
			block_for(answer->size), download_pull, request_ref(req), drop_request);
		break;
	case ANSWER_STREAM:
		response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN,
			stream_is_pulled(req->answer.stream) ? PULL_BYTES : 1, pull_stream,
			request_ref(req), drop_request);
		break;
	case ANSWER_WEBSOCKET:
		response = MHD_create_response_for_upgrade(upgrade, req);
		break;
	}
	return response;
}

static void add_headers(struct request *req, struct MHD_Response *response)
{
	MHD_add_response_header(response, "X-Request-ID", req->id);
	for (size_t i = 0; i < array_len(common_headers); i++)
		MHD_add_response_header(response, common_headers[i].name, common_headers[i].value);
	if (req->answer.type)
		MHD_add_response_header(response, "Content-Type", req->answer.type);
	for (struct answer_header *h = req->answer.headers; h; h = h->next)
		MHD_add_response_header(response, h->name, h->value);
	if (atomic_load(&req->server->closing))
		MHD_add_response_header(response, "Connection", "close");
}

static bool has_no_size(const struct answer *answer)
{
	return answer->kind == ANSWER_STREAM ||
	       (answer->kind == ANSWER_FD && answer->size == UINT64_MAX);
}

/*
 * A pulled stream may be large, and says by itself where it ends. So it goes out as it is, until the
 * connection closes: in chunks the library would send no more than 16 KiB at a time, of which half the
 * time of a fast stream would go into system calls.
 */
static bool is_bulk(const struct answer *answer)
{
	return answer->kind == ANSWER_STREAM && stream_is_pulled(answer->stream);
}

bool answer_queue(struct request *req, struct MHD_Connection *connection)
{
	struct MHD_Response *response = make_response(req);
	enum MHD_Result queued;

	if (!response) {
		if (req->answer.kind == ANSWER_FD || req->answer.kind == ANSWER_STREAM)
			request_unref(req);
		return false;
	}
	add_headers(req, response);
	/* To HEAD the library would send the last chunk of a body that there is not. */
	if (has_no_size(&req->answer) && (req->method == METHOD_HEAD || is_bulk(&req->answer)))
		MHD_set_response_options(response, MHD_RF_HTTP_1_0_COMPATIBLE_STRICT, MHD_RO_END);
	if (req->answer.kind == ANSWER_STREAM)
		bind_stream(req);
	queued = MHD_queue_response(connection, (unsigned)req->answer.status, response);
	MHD_destroy_response(response);
	return queued == MHD_YES;
}

bool answer_write(struct request *req, int sock)
{
	const struct answer *answer = &req->answer;
	struct buf text = BUF_INIT(64u * 1024 * 1024);
	bool written = false;

	if (answer->kind == ANSWER_BYTES) {
		buf_printf(&text, "HTTP/1.1 %d %s\r\nConnection: close\r\nX-Request-ID: %s\r\n",
			answer->status, MHD_get_reason_phrase_for((unsigned)answer->status),
			req->id);
		for (size_t i = 0; i < array_len(common_headers); i++)
			buf_printf(&text, "%s: %s\r\n", common_headers[i].name,
				common_headers[i].value);
		if (answer->type)
			buf_printf(&text, "Content-Type: %s\r\n", answer->type);
		for (struct answer_header *h = answer->headers; h; h = h->next)
			buf_printf(&text, "%s: %s\r\n", h->name, h->value);
		if (answer->status != MHD_HTTP_NO_CONTENT)
			buf_printf(&text, "Content-Length: %zu\r\n", answer->len);
		buf_append_str(&text, "\r\n");
		if (req->method != METHOD_HEAD)
			buf_append(&text, answer->bytes, answer->len);
		/* Nothing was sent on this connection before, so what fits its buffer goes at once. */
		written = !text.failed && send(sock, text.data, text.len,
						  MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)text.len;
	}
	shutdown(sock, SHUT_WR);
	buf_fini(&text);
	return written;
}
