/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server/request/response.h"

#include "base/clock.h"
#include "base/log.h"
#include "http/server/connection.h"
#include "http/server/loop.h"
#include "http/server/request/event_filter.h"
#include "http/server/request/request_private.h"
#include "http/server/server_private.h"
#include "http/stream.h"
#include "http/stream_private.h"
#include "http/websocket/websocket_private.h"

#include <errno.h>
#include <microhttpd.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* Pages of others neither guess what an answer is, nor frame it, embed it, or keep hold of a window that shows it. */
static const struct answer_header common_headers[] = {
	{NULL, "X-Content-Type-Options", "nosniff"},
	{NULL, "Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"},
	{NULL, "Cross-Origin-Opener-Policy", "same-origin"},
	{NULL, "Cross-Origin-Resource-Policy", "same-origin"},
	{NULL, "Cache-Control", "no-store"},
};

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

	timer_set(req->heartbeat, 0);
}

static const struct stream_consumer consumer = {stream_sleep, stream_wake, stream_retime};

/* The events of a redirected request, in the words of its door. */
static ssize_t pull_retold(struct request *req, char *data, size_t size)
{
	char piece[16384];
	ssize_t n;

	while ((n = event_filter_take(req->event_filter, data, size)) == 0) {
		n = stream_pull(req->answer.stream, piece, sizeof(piece));
		if (n == 0)
			return request_is_cut(req) ? MHD_CONTENT_READER_END_WITH_ERROR : 0;
		if (n == -ENODATA)
			event_filter_end(req->event_filter);
		else if (n < 0 || event_filter_feed(req->event_filter, piece, (size_t)n) < 0)
			return MHD_CONTENT_READER_END_WITH_ERROR;
	}
	return n == -ENODATA ? MHD_CONTENT_READER_END_OF_STREAM : n;
}

static ssize_t pull_stream(void *arg, uint64_t position, char *data, size_t size)
{
	struct request *req = arg;
	ssize_t n;

	(void)position;
	if (request_is_cut(req))
		return MHD_CONTENT_READER_END_WITH_ERROR;
	if (req->event_filter)
		return pull_retold(req, data, size);
	n = stream_pull(req->answer.stream, data, size);
	if (n == -ENODATA)
		return MHD_CONTENT_READER_END_OF_STREAM;
	if (n == 0 && request_is_cut(req))
		return MHD_CONTENT_READER_END_WITH_ERROR;
	return n;
}

static void bind_stream(struct request *req)
{
	request_open_heartbeat(req);
	stream_bind(req->answer.stream, &consumer, req);
	pthread_mutex_lock(&req->lock);
	req->sending = req->answer.stream;
	pthread_mutex_unlock(&req->lock);
	/* Either server_close() sees the stream, or we see that it is closing. */
	if (atomic_load(&req->server->closing))
		stream_finish(req->answer.stream);
}

/* Its place among the connections: the library gives up the one it had. */
static void open_websocket(struct request *req, int sock, const char *early, size_t len)
{
	struct server *server = req->server;
	struct share *share = connection_take_share(server, req->client);

	atomic_fetch_add(&server->connections, 1);
	websocket_open(take_ptr(&req->answer.websocket), &server->websockets, &req->principal,
		share, sock, early, len);
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
	open_websocket(req, sock, early, len);
	MHD_upgrade_action(handle, MHD_UPGRADE_ACTION_CLOSE);
	loop_wake(req->loop);
	req->client->is_upgraded = true;
	request_end(req);
}

/*
 * A download: the library's own buffer is filled right from the descriptor, one copy in, one out. When the
 * descriptor is empty the connection sleeps until the poller sees more.
 */
static ssize_t pull_fd(void *arg, uint64_t position, char *data, size_t size)
{
	struct request *req = arg;
	ssize_t n;

	(void)position;
	if (request_is_cut(req))
		return MHD_CONTENT_READER_END_WITH_ERROR;
	do
		n = read(req->answer.fd, data, size);
	while (n < 0 && errno == EINTR);
	if (n > 0)
		return n;
	/* An end before the promised size must not look like the whole. */
	if (n == 0)
		return req->answer.size == UINT64_MAX ? MHD_CONTENT_READER_END_OF_STREAM
						      : MHD_CONTENT_READER_END_WITH_ERROR;
	if (errno != EAGAIN || !request_suspend(req))
		return MHD_CONTENT_READER_END_WITH_ERROR;
	request_wake_when(req, req->answer.fd, EPOLLIN);
	return 0;
}

static void drop_request(void *arg)
{
	request_unref(arg);
}

static struct MHD_Response *make_response(struct request *req)
{
	struct answer *answer = &req->answer;
	struct MHD_Response *response = NULL;

	switch (answer->kind) {
	case ANSWER_NONE:
		break;
	case ANSWER_BYTES:
		response = MHD_create_response_from_buffer(answer->len,
			answer->lasting ? (void *)answer->lasting : answer->bytes,
			answer->bytes ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT);
		if (response)
			answer->bytes = NULL;
		break;
	case ANSWER_FD:
		response = MHD_create_response_from_callback(
			answer->size == UINT64_MAX ? MHD_SIZE_UNKNOWN : answer->size,
			answer_buffer(answer), pull_fd, request_ref(req), drop_request);
		break;
	case ANSWER_STREAM:
		response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN,
			answer_buffer(answer), pull_stream, request_ref(req), drop_request);
		break;
	case ANSWER_WEBSOCKET:
		response = MHD_create_response_for_upgrade(upgrade, req);
		break;
	}
	return response;
}

/* Whether the answer says it otherwise. */
static bool has_header(const struct answer *answer, const char *name)
{
	const struct answer_header *header = answer->headers;

	while (header && strcasecmp(header->name, name) != 0)
		header = header->next;
	return header;
}

static void add_headers(struct request *req, struct MHD_Response *response)
{
	MHD_add_response_header(response, "X-Request-ID", req->id);
	for (size_t i = 0; i < array_len(common_headers); i++)
		if (!has_header(&req->answer, common_headers[i].name))
			MHD_add_response_header(
				response, common_headers[i].name, common_headers[i].value);
	if (req->trace[0])
		MHD_add_response_header(response, "traceparent", req->trace);
	if (req->answer.type)
		MHD_add_response_header(response, "Content-Type", req->answer.type);
	for (struct answer_header *h = req->answer.headers; h; h = h->next)
		MHD_add_response_header(response, h->name, h->value);
	if (atomic_load(&req->server->closing))
		MHD_add_response_header(response, "Connection", "close");
}

/* An answer begins to go out. */
static void count(struct request *req)
{
	uint64_t took_us = clock_steady_us() - req->begun_us;

	answer_stats_count(&req->server->stats, req->answer.status, took_us);
	if (req->server->config.traced && req->match.route)
		req->server->config.traced(req->server->config.context, req, took_us);
	log_set_request(req->id, req->trace);
	log_debug("%s %s: %d after %llu.%03llu ms",
		req->match.route ? req->match.route->method : "a request",
		req->match.route ? req->match.route->path : "without a route", req->answer.status,
		(unsigned long long)took_us / 1000, (unsigned long long)took_us % 1000);
	log_set_request(NULL, NULL);
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

bool response_queue(struct request *req, struct MHD_Connection *connection)
{
	struct MHD_Response *response = make_response(req);
	enum MHD_Result queued;

	if (!response) {
		if (req->answer.kind == ANSWER_FD || req->answer.kind == ANSWER_STREAM)
			request_unref(req);
		return false;
	}
	add_headers(req, response);
	count(req);
	/* To HEAD the library would send the last chunk of a body that there is not. */
	if (has_no_size(&req->answer) && (req->method == METHOD_HEAD || is_bulk(&req->answer)))
		MHD_set_response_options(response, MHD_RF_HTTP_1_0_COMPATIBLE_STRICT, MHD_RO_END);
	if (req->answer.kind == ANSWER_STREAM)
		bind_stream(req);
	queued = MHD_queue_response(connection, (unsigned)req->answer.status, response);
	MHD_destroy_response(response);
	return queued == MHD_YES;
}

bool response_write(struct request *req, int sock)
{
	const struct answer *answer = &req->answer;
	struct buf text = BUF_INIT(64u * 1024 * 1024);
	bool written = false;

	count(req);
	if (answer->kind == ANSWER_BYTES) {
		buf_printf(&text, "HTTP/1.1 %d %s\r\nConnection: close\r\nX-Request-ID: %s\r\n",
			answer->status, MHD_get_reason_phrase_for((unsigned)answer->status),
			req->id);
		for (size_t i = 0; i < array_len(common_headers); i++)
			if (!has_header(answer, common_headers[i].name))
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
			buf_append(&text, answer->lasting ? answer->lasting : answer->bytes,
				answer->len);
		/* Nothing was sent on this connection before, so what fits its buffer goes at once. */
		written = !text.failed && send(sock, text.data, text.len,
						  MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)text.len;
	}
	shutdown(sock, SHUT_WR);
	buf_fini(&text);
	return written;
}
