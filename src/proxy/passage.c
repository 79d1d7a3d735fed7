/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both connections are watched edge by edge: what may be read or written is remembered until the kernel says
 * otherwise. `move` does all that can be done with that, and is called after everything that happened.
 *
 * A side is read only while what waits for the other one is below a bound, so a slow reader slows the writer.
 */
#include "proxy/passage.h"

#include "base/clock.h"
#include "base/fd.h"
#include "proxy/proxy_loop.h"
#include "proxy/rewrite.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_BYTES   (64u * 1024)
#define WAITING_MAX  (128u * 1024) /* then the other side is not read */
#define OUT_MAX	     (WAITING_MAX + 2 * READ_BYTES + MESSAGE_HEAD_MAX * 2)
#define IN_MAX	     (MESSAGE_HEAD_MAX + READ_BYTES)
#define HINTS_MAX    16
#define HEAD_MS	     10000  /* for a request's head, once it has begun */
#define IDLE_MS	     75000  /* between two requests */
#define ANSWER_MS    300000 /* for the head of an answer */
#define STALL_MS     60000  /* for a body that does not move although it could */
#define TUNNEL_MS    3600000
#define USED_EACH_MS 5000
#define LATER_MS     50

/* --- bytes --- */

static struct side *other(struct side *side)
{
	struct passage *passage = side->passage;

	return side == &passage->client ? &passage->app : &passage->client;
}

static void note_move(struct passage *passage)
{
	passage->moved_ms = clock_steady_ms();
	if (passage->moved_ms - passage->used_ms < USED_EACH_MS || !passage->way.key[0])
		return;
	passage->used_ms = passage->moved_ms;
	passage->config->used(passage->config->context, passage->way.key);
}

/* Reads once into `in`; whether something came. */
static bool receive(struct side *side)
{
	ssize_t n;

	if (!side->is_readable || side->fd < 0 || side->in.len >= MESSAGE_HEAD_MAX ||
		buf_reserve(&side->in, READ_BYTES) < 0)
		return false;
	n = recv(side->fd, side->in.data + side->in.len, READ_BYTES, 0);
	if (n > 0) {
		side->in.len += (size_t)n;
		/* A short read has emptied it: more brings another event, and so does the end, unless it did. */
		side->is_readable = n == READ_BYTES || side->hangs_up;
		note_move(side->passage);
		return true;
	}
	side->is_readable = false;
	if (n == 0 || (errno != EAGAIN && errno != EINTR))
		side->has_ended = true;
	if (side->in.len == 0)
		buf_fini(&side->in); /* an idle one keeps no memory */
	return n == 0;
}

/* Sends what waits; whether something went. A side that takes nothing any more has ended. */
static bool flush(struct side *side)
{
	ssize_t n;

	if (side->out.len == 0 || !side->is_writable || side->fd < 0)
		return false;
	n = send(side->fd, side->out.data, side->out.len, MSG_NOSIGNAL);
	if (n < 0) {
		side->is_writable = false;
		if (errno != EAGAIN && errno != EINTR) {
			side->has_ended = true;
			side->out.len = 0;
		}
		return false;
	}
	buf_consume(&side->out, (size_t)n);
	if (side->out.len == 0)
		buf_fini(&side->out);
	note_move(side->passage);
	return true;
}

static void close_side(struct side *side)
{
	fd_close(take_fd(&side->fd));
	buf_fini(&side->in);
	buf_fini(&side->out);
	side->is_readable = side->is_writable = side->hangs_up = side->has_ended = false;
}

static void end(struct passage *passage)
{
	close_side(&passage->client);
	close_side(&passage->app);
	passage->state = PASSAGE_OVER;
}

/* --- answers of our own --- */

static void answer(
	struct passage *passage, unsigned status, const char *type, const void *body, size_t len)
{
	struct buf *out = &passage->client.out;
	bool is_head = passage->request.has_head && passage->request.parser.method == HTTP_HEAD;
	const struct proxy_way *way = &passage->way;

	if (passage->has_answer_begun) {
		end(passage); /* it cannot be taken back: the client sees a cut connection */
		return;
	}
	buf_printf(out,
		"HTTP/1.1 %u %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nCache-Control: "
		"no-store\r\n"
		"X-Content-Type-Options: nosniff\r\nConnection: close\r\n",
		status, http_status_str((enum http_status)status), type, len);
	if (way->kind == PROXY_ANSWER && way->location[0])
		buf_printf(out, "Location: %s\r\n", way->location);
	if (way->kind == PROXY_ANSWER && way->set_cookie[0])
		buf_printf(out, "Set-Cookie: %s\r\n", way->set_cookie);
	if (way->kind == PROXY_ANSWER && way->retry_after_s)
		buf_printf(out, "Retry-After: %u\r\n", way->retry_after_s);
	buf_append_str(out, "\r\n");
	if (!is_head)
		buf_append(out, body, len);
	close_side(&passage->app);
	passage->state = PASSAGE_LAST;
	passage->moved_ms = clock_steady_ms();
}

static void refuse(struct passage *passage, unsigned status, const char *code, const char *message)
{
	char body[512];
	int len = snprintf(body, sizeof(body),
		"{\"error\":{\"code\":\"%s\",\"message\":\"%s\",\"retryable\":%s}}\n", code,
		message, status >= 500 ? "true" : "false");

	answer(passage, status, "application/json", body, (size_t)len);
}

/* --- a request --- */

static void begin_request(struct passage *passage)
{
	message_begin(&passage->request, HTTP_REQUEST);
	message_begin(&passage->response, HTTP_RESPONSE);
	passage->state = PASSAGE_HEAD;
	passage->has_answer_begun = passage->is_upgrade = passage->wants_close = false;
	passage->hints = 0;
	passage->moved_ms = clock_steady_ms();
}

static bool is_host(struct slice host)
{
	if (host.len == 0 || host.len >= sizeof(((struct passage *)NULL)->host))
		return false;
	for (size_t i = 0; i < host.len; i++) {
		unsigned char byte = (unsigned char)host.at[i];

		if (byte <= ' ' || byte >= 0x7f || strchr("/\\@?#,\"<>", byte))
			return false;
	}
	return true;
}

static size_t count_fields(const struct message *message, const char *name)
{
	size_t count = 0;

	for (size_t i = 0; i < message->field_count; i++)
		count += slice_is_like(message->fields[i].name, name);
	return count;
}

/* Whether a head asks for something that can be passed on; else it has been refused. */
static bool check_request(struct passage *passage)
{
	const struct message *request = &passage->request;
	struct slice upgrade = message_get(request, "Upgrade");

	passage->is_upgrade = slice_is_like(upgrade, "websocket") &&
			      slice_has_word(message_get(request, "Connection"), "upgrade") &&
			      request->parser.method == HTTP_GET;
	passage->wants_close = !http_should_keep_alive(&request->parser);
	if (request->parser.http_major != 1 || request->parser.http_minor > 1)
		refuse(passage, 505, "version_not_supported", "previews speak HTTP/1.1");
	else if (count_fields(request, "Host") != 1 || !is_host(message_get(request, "Host")))
		refuse(passage, 400, "bad_host", "the request needs one header Host");
	else if (request->parser.method == HTTP_CONNECT || request->parser.method == HTTP_TRACE)
		refuse(passage, 405, "method_not_allowed", "previews pass no CONNECT and no TRACE");
	else if (upgrade.at && !passage->is_upgrade)
		refuse(passage, 501, "upgrade_not_supported",
			"previews pass no upgrade but that to a WebSocket");
	else if (request->target.len == 0 || request->target.at[0] != '/')
		refuse(passage, 400, "bad_target", "the target must be a path");
	return passage->state == PASSAGE_HEAD;
}

/* What the client shows to be let in, in few bytes. */
static void digest_credentials(const struct message *request, char digest[32])
{
	static const char *const names[] = {"Cookie", "Authorization", "X-API-Key", "Origin"};
	struct buf all = BUF_INIT(MESSAGE_HEAD_MAX + sizeof(size_t) * array_len(names));

	for (size_t i = 0; i < array_len(names); i++) {
		struct slice value = message_get(request, names[i]);

		buf_append(&all, &value.len, sizeof(value.len));
		buf_append(&all, value.at, value.len);
	}
	SHA256(all.data, all.len, (unsigned char *)digest);
	buf_fini(&all);
}

/* Whether the way of the request before is good for this one. */
static bool is_same_way(struct passage *passage, const char digest[32])
{
	return passage->app.fd >= 0 && !passage->app.has_ended && passage->way.is_lasting &&
	       passage->way.generation == atomic_load(passage->config->generation) &&
	       slice_is(message_get(&passage->request, "Host"), passage->host) &&
	       memcmp(digest, passage->credentials, 32) == 0;
}

static void start_relay(struct passage *passage)
{
	struct rewrite rewrite = {.scheme = passage->config->scheme,
		.host = passage->host,
		.client = passage->address,
		.port = passage->way.port,
		.prefix_len = passage->way.prefix_len,
		.is_confined = passage->way.is_confined};
	struct message *request = &passage->request;

	request->out = &passage->app.out;
	request->in_chunks = message_is_chunked(request);
	rewrite_request(request, &rewrite, passage->is_upgrade, &passage->app.out);
	passage->state = PASSAGE_RELAY;
	passage->moved_ms = clock_steady_ms();
}

static void ask(struct passage *passage)
{
	passage->state = PASSAGE_FINDING;
	proxy_loop_find(passage->loop, passage);
}

/* The head is there. */
static void consider(struct passage *passage)
{
	char digest[32];

	if (!check_request(passage))
		return;
	digest_credentials(&passage->request, digest);
	passage->is_reused = is_same_way(passage, digest);
	if (passage->is_reused) {
		start_relay(passage);
		return;
	}
	close_side(&passage->app);
	snprintf(passage->host, sizeof(passage->host), "%s",
		message_get(&passage->request, "Host").at);
	memcpy(passage->credentials, digest, sizeof(passage->credentials));
	passage->asked_ms = clock_steady_ms();
	ask(passage);
}

static bool move_head(struct passage *passage)
{
	struct side *client = &passage->client;
	ssize_t n = 0;

	if (client->in.len > 0) {
		n = message_feed(&passage->request, client->in.data, client->in.len);
		if (n < 0) {
			if (n == -EMSGSIZE)
				refuse(passage, 431, "head_too_long",
					"the head of the request is too long");
			else
				refuse(passage, 400, "bad_request",
					"the request is not proper HTTP");
			return true;
		}
		buf_consume(&client->in, (size_t)n);
	}
	if (n > 0) {
		consider(passage);
		return true;
	}
	if (client->has_ended) {
		end(passage);
		return false;
	}
	return receive(client);
}

/* --- finding the way --- */

void passage_find(struct passage *passage)
{
	const struct message *request = &passage->request;
	struct slice accept = message_get(request, "Accept");
	struct proxy_visit visit = {
		.method = http_method_str((enum http_method)request->parser.method),
		.host = passage->host,
		.target = request->target.at,
		.client = passage->address,
		.cookie = message_get(request, "Cookie").at,
		.authorization = message_get(request, "Authorization").at,
		.api_key = message_get(request, "X-API-Key").at,
		.origin = message_get(request, "Origin").at,
		.referer = message_get(request, "Referer").at,
		.is_websocket = passage->is_upgrade,
		.waited_ms = clock_steady_ms() - passage->asked_ms,
	};

	visit.is_page =
		request->parser.method == HTTP_GET && accept.at && strstr(accept.at, "text/html");
	buf_fini(&passage->way.body);
	passage->way = (struct proxy_way){.fd = -1};
	passage->config->find(passage->config->context, &visit, &passage->way);
}

/* Whether nobody waits for the answer any more: who closes after a request has left. */
static bool is_deserted(struct passage *passage)
{
	struct side *client = &passage->client;

	if (!passage->request.is_complete || !client->hangs_up)
		return false;
	while (receive(client))
		;
	return client->has_ended && client->in.len == 0;
}

static void connect_app(struct passage *passage)
{
	struct side *app = &passage->app;

	app->fd = take_fd(&passage->way.fd);
	app->is_writable = true;
	if (proxy_loop_watch(passage->loop, app) < 0) {
		refuse(passage, 503, "overloaded", "too many connections");
		return;
	}
	start_relay(passage);
}

/* Does all that can be done now. */
static void move(struct passage *passage);

void passage_found(struct passage *passage)
{
	struct proxy_way *way = &passage->way;

	passage->state = PASSAGE_HEAD;
	if (is_deserted(passage)) {
		fd_close(take_fd(&way->fd));
		end(passage);
		proxy_loop_drop(passage->loop, passage);
		return;
	}
	switch (way->kind) {
	case PROXY_GO:
		connect_app(passage);
		break;
	case PROXY_ANSWER:
		answer(passage, way->status, way->type, way->body.data, way->body.len);
		buf_fini(&way->body);
		break;
	case PROXY_WAKE:
	case PROXY_LATER:
		passage->state = PASSAGE_LATER;
		passage->due_ms = clock_steady_ms() + LATER_MS;
		proxy_loop_hurry(passage->loop);
		break;
	}
	move(passage);
}

/* --- there and back --- */

/* Feeds what came from a side to its message; whether something moved. */
static bool feed(struct side *side, struct message *message)
{
	ssize_t n;

	if (message->is_complete || side->in.len == 0 || other(side)->out.len >= WAITING_MAX)
		return false;
	n = message_feed(message, side->in.data, side->in.len);
	if (n < 0) {
		if (side == &side->passage->client)
			refuse(side->passage, 400, "bad_request", "the body is not proper HTTP");
		else
			refuse(side->passage, 502, "bad_answer",
				"what listens on this port does not answer with proper HTTP");
		return true;
	}
	buf_consume(&side->in, (size_t)n);
	return n > 0;
}

/* The app closed a connection that was kept, before it saw the request: once more, on a new one. */
static bool try_again(struct passage *passage)
{
	const struct message *request = &passage->request;
	bool has_body = message_is_chunked(request) || request->parser.content_length + 1 > 1;

	if (!passage->is_reused || passage->response.has_head || passage->app.in.len > 0 ||
		(has_body && message_has_length(request)) || message_is_chunked(request))
		return false;
	close_side(&passage->app);
	passage->is_reused = false;
	ask(passage);
	return true;
}

static void start_tunnel(struct passage *passage)
{
	struct side *client = &passage->client, *app = &passage->app;

	passage->state = PASSAGE_TUNNEL;
	/* What came early is already part of the conversation. */
	buf_append(&app->out, client->in.data, client->in.len);
	buf_append(&client->out, app->in.data, app->in.len);
	buf_fini(&client->in);
	buf_fini(&app->in);
	message_fini(&passage->request);
	message_fini(&passage->response);
}

/* The head of an answer is there: passed on, unless it is only a hint. */
static void pass_answer(struct passage *passage)
{
	struct rewrite rewrite = {.scheme = passage->config->scheme,
		.host = passage->host,
		.port = passage->way.port,
		.is_confined = passage->way.is_confined};
	struct message *response = &passage->response;
	unsigned status = response->parser.status_code;
	bool is_old = passage->request.parser.http_minor == 0;

	if (status >= 100 && status < 200 && status != 101) {
		if (++passage->hints > HINTS_MAX) {
			refuse(passage, 502, "bad_answer", "the app answers with hints only");
			return;
		}
		if (status == 100 && !is_old)
			buf_append_str(&passage->client.out, "HTTP/1.1 100 Continue\r\n\r\n");
		message_begin(response, HTTP_RESPONSE);
		response->has_no_body = passage->request.parser.method == HTTP_HEAD;
		return;
	}
	if (status == 101 && !passage->is_upgrade) {
		refuse(passage, 502, "bad_answer",
			"the app changed the protocol without being asked");
		return;
	}
	if (!response->is_complete && !message_has_length(response)) {
		response->in_chunks = !is_old;
		passage->wants_close |= is_old;
	}
	response->out = &passage->client.out;
	passage->has_answer_begun = true;
	rewrite_response(response, &rewrite, response->in_chunks, passage->wants_close,
		&passage->client.out);
	if (status == 101)
		start_tunnel(passage);
}

static void end_exchange(struct passage *passage)
{
	bool keeps_app = http_should_keep_alive(&passage->response.parser) &&
			 passage->request.is_complete && passage->app.in.len == 0;

	if (!keeps_app)
		close_side(&passage->app);
	/* A request whose body the app did not want to read cannot be followed by another. */
	if (passage->wants_close || !passage->request.is_complete || passage->client.has_ended) {
		close_side(&passage->app);
		passage->state = PASSAGE_LAST;
		return;
	}
	begin_request(passage);
}

/* The app ended: an answer without a length ends with it. */
static void end_answer(struct passage *passage)
{
	struct message *response = &passage->response;

	if (try_again(passage))
		return;
	if (response->has_head && message_end(response))
		return;
	refuse(passage, 502, "no_answer", "the app closed the connection without an answer");
}

static bool move_request(struct passage *passage)
{
	struct side *client = &passage->client, *app = &passage->app;
	bool moved = flush(app);

	if (passage->request.is_complete)
		return moved;
	if (client->in.len == 0 && app->out.len < WAITING_MAX)
		moved |= receive(client);
	if (feed(client, &passage->request))
		return true;
	if (client->has_ended && client->in.len == 0) {
		end(passage); /* half a request: the app must not take it for a whole one */
		return true;
	}
	return moved;
}

static bool move_answer(struct passage *passage)
{
	struct side *client = &passage->client, *app = &passage->app;
	struct message *response = &passage->response;
	bool had_head = response->has_head;
	bool moved = flush(client);

	if (response->is_complete) {
		if (client->out.len > 0)
			return moved;
		end_exchange(passage);
		return true;
	}
	if (client->out.len < WAITING_MAX)
		moved |= receive(app);
	if (!had_head)
		response->has_no_body = passage->request.parser.method == HTTP_HEAD;
	if (feed(app, response)) {
		if (!had_head && response->has_head && passage->state == PASSAGE_RELAY)
			pass_answer(passage);
		return true;
	}
	if (app->has_ended && client->out.len < WAITING_MAX) {
		end_answer(passage);
		return true;
	}
	return moved;
}

static bool move_relay(struct passage *passage)
{
	bool moved = move_request(passage);

	if (passage->state == PASSAGE_RELAY)
		moved |= move_answer(passage);
	if (passage->state == PASSAGE_RELAY && is_deserted(passage))
		end(passage);
	return moved;
}

/* From one side to the other; whether something moved. */
static bool move_bytes(struct side *from)
{
	struct side *to = other(from);
	bool moved = false;

	if (to->out.len < WAITING_MAX && receive(from)) {
		buf_append(&to->out, from->in.data, from->in.len);
		buf_fini(&from->in);
		moved = true;
	}
	moved |= flush(to);
	if (from->has_ended && to->out.len == 0) {
		end(from->passage);
		return false;
	}
	return moved;
}

static bool move_tunnel(struct passage *passage)
{
	bool moved = move_bytes(&passage->client);

	if (passage->state == PASSAGE_TUNNEL)
		moved |= move_bytes(&passage->app);
	return moved;
}

/* What is left is sent; then the client hears the end, and may not have read it before we close. */
static bool move_last(struct passage *passage)
{
	struct side *client = &passage->client;
	bool moved = flush(client);

	if (client->out.len > 0 && !client->has_ended)
		return moved;
	if (client->out.len == 0 && !passage->has_said_end && !client->has_ended) {
		shutdown(client->fd, SHUT_WR);
		passage->has_said_end = true;
	}
	/* Closing with unread bytes would reset the connection under the answer. */
	while (receive(client))
		client->in.len = 0;
	if (client->has_ended)
		end(passage);
	return false;
}

static void move(struct passage *passage)
{
	bool moved = true;

	while (moved) {
		switch (passage->state) {
		case PASSAGE_HEAD:
			moved = move_head(passage);
			break;
		case PASSAGE_RELAY:
			moved = move_relay(passage);
			break;
		case PASSAGE_TUNNEL:
			moved = move_tunnel(passage);
			break;
		case PASSAGE_LAST:
			moved = move_last(passage);
			break;
		case PASSAGE_FINDING:
		case PASSAGE_LATER:
		case PASSAGE_OVER:
			moved = false;
			break;
		}
	}
	if (passage->state == PASSAGE_OVER)
		proxy_loop_drop(passage->loop, passage);
}

/* --- life --- */

void passage_ready(struct side *side, uint32_t events)
{
	struct passage *passage = side->passage;

	if (passage->state == PASSAGE_OVER)
		return;
	if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		side->is_readable = true;
	side->hangs_up |= (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
	if (events & EPOLLOUT)
		side->is_writable = true;
	/* An app that hangs up between two requests leaves a connection that is of no use. */
	if (side == &passage->app && passage->state == PASSAGE_HEAD) {
		close_side(side);
		return;
	}
	if (passage->state != PASSAGE_FINDING)
		move(passage);
}

static uint64_t patience(const struct passage *passage)
{
	switch (passage->state) {
	case PASSAGE_HEAD:
		return passage->client.in.len > 0 ? HEAD_MS : IDLE_MS;
	case PASSAGE_RELAY:
		return passage->client.out.len > 0 || passage->app.out.len > 0 ? STALL_MS
		       : passage->has_answer_begun			       ? TUNNEL_MS
									       : ANSWER_MS;
	case PASSAGE_TUNNEL:
		return TUNNEL_MS;
	case PASSAGE_LAST:
		return HEAD_MS;
	default:
		return UINT64_MAX;
	}
}

void passage_tick(struct passage *passage, uint64_t now_ms)
{
	if (passage->state == PASSAGE_LATER && now_ms >= passage->due_ms) {
		ask(passage);
		return;
	}
	if (now_ms - passage->moved_ms < patience(passage))
		return;
	if (passage->state == PASSAGE_RELAY && !passage->has_answer_begun &&
		passage->client.out.len == 0 && passage->app.out.len == 0) {
		refuse(passage, 504, "no_answer", "the app did not answer in time");
		move(passage);
		return;
	}
	end(passage);
	proxy_loop_drop(passage->loop, passage);
}

struct passage *passage_open(
	struct proxy_loop *loop, const struct proxy_config *config, int fd, const char *address)
{
	struct passage *passage = mem_new(sizeof(*passage));

	passage->loop = loop;
	passage->config = config;
	passage->client = (struct side){.passage = passage,
		.fd = fd,
		.is_writable = true,
		.in = BUF_INIT(IN_MAX),
		.out = BUF_INIT(OUT_MAX)};
	passage->app = (struct side){
		.passage = passage, .fd = -1, .in = BUF_INIT(IN_MAX), .out = BUF_INIT(OUT_MAX)};
	passage->way.fd = -1;
	snprintf(passage->address, sizeof(passage->address), "%s", address);
	begin_request(passage);
	return passage;
}

void passage_free(struct passage *passage)
{
	close_side(&passage->client);
	close_side(&passage->app);
	fd_close(passage->way.fd);
	buf_fini(&passage->way.body);
	message_fini(&passage->request);
	message_fini(&passage->response);
	free(passage);
}
