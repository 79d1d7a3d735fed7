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
#include "http/listener.h"
#include "proxy/proxy_loop.h"
#include "proxy/proxy_private.h"
#include "proxy/refusal.h"
#include "proxy/rewrite.h"

#include <errno.h>
#include <inttypes.h>
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
#define HEAD_MS	     10000 /* for a request's head, once it has begun */
#define IDLE_MS	     75000 /* between two requests */
#define USED_EACH_MS 5000
#define LATER_MIN_MS 50
#define LATER_MAX_MS 1000
#define LINGER_MS    5000 /* for a client to read our end */
#define ROUNDS_MAX   16	  /* then others have their turn */

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

/* Reads once into `in`; whether something came, be it the end. */
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
	side->has_ended = n == 0 || errno != EAGAIN;
	side->is_broken = n < 0 && errno != EAGAIN;
	return side->has_ended;
}

/*
 * Sends what waits; whether something went. What a side said before it stopped to listen is still to be read, and
 * its end with it.
 */
static bool flush(struct side *side)
{
	ssize_t n;

	if (side->out.len == 0 || !side->is_writable || side->fd < 0)
		return false;
	n = send(side->fd, side->out.data, side->out.len, MSG_NOSIGNAL);
	if (n < 0) {
		side->is_writable = false;
		if (errno == EAGAIN)
			return false;
		side->out.len = 0;
		side->is_readable = side->hangs_up = true;
		return true;
	}
	buf_consume(&side->out, (size_t)n);
	if (side->out.len == 0)
		buf_fini(&side->out);
	note_move(side->passage);
	return true;
}

static void close_side(struct side *side)
{
	if (side->fd >= 0)
		proxy_loop_unwatch(side->passage->loop, side);
	fd_close(take_fd(&side->fd));
	buf_fini(&side->in);
	buf_fini(&side->out);
	side->is_readable = side->is_writable = false;
	side->hangs_up = side->has_ended = side->is_broken = false;
}

/* Who has nothing to say keeps no memory. */
static void release(struct side *side)
{
	if (side->in.len == 0)
		buf_fini(&side->in);
}

static void end(struct passage *passage)
{
	close_side(&passage->client);
	close_side(&passage->app);
	passage->state = PASSAGE_OVER;
}

/* --- answers of our own --- */

/* The way is an answer. */
static void answer_as_found(struct passage *passage)
{
	struct buf *out = &passage->client.out;
	bool is_head = passage->request.has_head && passage->request.parser.method == HTTP_HEAD;
	struct proxy_way *way = &passage->way;

	buf_printf(out,
		"HTTP/1.1 %u %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
		"Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: "
		"close\r\n",
		way->status, http_status_str((enum http_status)way->status), way->type,
		way->body.len);
	buf_append(out, way->fields.data, way->fields.len);
	buf_append_str(out, "\r\n");
	if (!is_head)
		buf_append(out, way->body.data, way->body.len);
	proxy_way_fini(way);
	close_side(&passage->app);
	passage->state = PASSAGE_LAST;
	passage->moved_ms = clock_steady_ms();
}

/* Makes the way an answer. */
static void turn_away(struct passage *passage, const struct proxy_refusal *refusal)
{
	const struct message *request = &passage->request;

	proxy_way_fini(&passage->way);
	passage->config->refuse(
		refusal, request->has_head && demand_is_page(request), &passage->way);
}

static void refuse(struct passage *passage, const struct proxy_refusal *refusal)
{
	if (passage->has_answer_begun) {
		end(passage); /* it cannot be taken back: the client sees a cut connection */
		return;
	}
	turn_away(passage, refusal);
	answer_as_found(passage);
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
	passage->due_ms = passage->moved_ms + HEAD_MS;
}

/* Whether the way of the request before is good for this one. */
static bool is_same_way(struct passage *passage, const char digest[DEMAND_DIGEST_LEN])
{
	return passage->app.fd >= 0 && !passage->app.hangs_up && !passage->app.has_ended &&
	       clock_steady_ms() < passage->way.good_until_ms &&
	       passage->way.generation == atomic_load(passage->config->generation) &&
	       !strstr(passage->request.target.at, REWRITE_LINK) &&
	       slice_is(message_get(&passage->request, "Host"), passage->host) &&
	       memcmp(digest, passage->credentials, DEMAND_DIGEST_LEN) == 0;
}

/* How the heads of this exchange are rewritten, while the request's is there. */
static struct rewrite rewrite_of(const struct passage *passage)
{
	const struct proxy_way *way = &passage->way;

	return (struct rewrite){.scheme = listener_scheme(passage->config->listener),
		.host = passage->host,
		.client = passage->address,
		.port = way->port,
		.prefix = {passage->request.target.at, way->prefix_len},
		.is_confined = way->is_confined,
		.is_for_all = way->is_for_all,
		.hides_authorization = way->hides_authorization,
		.hides_api_key = way->hides_api_key};
}

static void start_relay(struct passage *passage)
{
	struct rewrite rewrite = rewrite_of(passage);
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

static struct proxy_visit describe(const struct passage *passage)
{
	struct proxy_visit visit = demand_visit(&passage->request);

	visit.host = passage->host;
	visit.client = passage->address;
	visit.is_misdirected = !dossier_allows_host(passage->dossier, passage->host);
	visit.waited_ms = clock_steady_ms() - passage->asked_ms;
	return visit;
}

/* Whether its source has more, or wants more, than it may; then it is told so. */
static bool is_too_much(struct passage *passage)
{
	struct proxy_refusal hurries = refusal_source_hurries;

	hurries.wait_s = proxy_pace(passage->config->proxy, passage);
	if (passage->is_excess)
		refuse(passage, &refusal_source_crowds);
	else if (hurries.wait_s)
		refuse(passage, &hurries);
	return passage->is_excess || hurries.wait_s;
}

/* The head is there. */
static void consider(struct passage *passage)
{
	const struct message *request = &passage->request;
	const struct proxy_refusal *fault = demand_fault(request);
	char digest[DEMAND_DIGEST_LEN];

	if (fault) {
		refuse(passage, fault);
		return;
	}
	passage->is_upgrade = demand_is_upgrade(request);
	passage->wants_close = demand_is_old(request) || !http_should_keep_alive(&request->parser);
	passage->asked_ms = clock_steady_ms();
	if (is_too_much(passage))
		return;
	demand_digest(request, digest);
	passage->is_reused = is_same_way(passage, digest);
	if (passage->is_reused) {
		start_relay(passage);
		return;
	}
	close_side(&passage->app);
	snprintf(passage->host, sizeof(passage->host), "%s", message_get(request, "Host").at);
	memcpy(passage->credentials, digest, sizeof(passage->credentials));
	ask(passage);
}

static bool move_head(struct passage *passage)
{
	struct side *client = &passage->client;
	ssize_t n = 0;

	if (client->in.len > 0) {
		n = message_feed(&passage->request, client->in.data, client->in.len);
		if (n < 0) {
			refuse(passage,
				n == -EMSGSIZE ? &refusal_head_too_long : &refusal_bad_request);
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
	if (client->in.len == 0)
		passage->due_ms = clock_steady_ms() + HEAD_MS;
	return receive(client);
}

/* --- finding the way --- */

void passage_find(struct passage *passage)
{
	struct proxy_visit visit = describe(passage);

	proxy_way_fini(&passage->way);
	passage->config->find(passage->config->context, &visit, &passage->way);
	if ((passage->way.kind != PROXY_ANSWER || passage->way.also_wakes) &&
		!proxy_claim(passage->config->proxy, passage))
		turn_away(passage, &refusal_key_crowded);
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
		refuse(passage, &refusal_overloaded);
		return;
	}
	start_relay(passage);
}

/* When to ask again: the longer it waits, the more seldom, so that many who wait cost little. */
static uint64_t later(const struct passage *passage)
{
	uint64_t now = clock_steady_ms(), pause = (now - passage->asked_ms) / 4;

	return now + (pause < LATER_MIN_MS	    ? LATER_MIN_MS
			     : pause > LATER_MAX_MS ? LATER_MAX_MS
						    : pause);
}

/* Does what can be done now. */
static void move(struct passage *passage);

void passage_found(struct passage *passage)
{
	passage->state = PASSAGE_HEAD;
	if (is_deserted(passage)) {
		passage_cut(passage);
		return;
	}
	switch (passage->way.kind) {
	case PROXY_GO:
		connect_app(passage);
		break;
	case PROXY_ANSWER:
		answer_as_found(passage);
		break;
	case PROXY_WAKE:
	case PROXY_LATER:
		passage->state = PASSAGE_LATER;
		passage->due_ms = later(passage);
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
		refuse(side->passage,
			side == &side->passage->client ? &refusal_bad_body : &refusal_bad_answer);
		return true;
	}
	buf_consume(&side->in, (size_t)n);
	return n > 0;
}

/*
 * The app closed a connection that was kept, maybe before it saw the request: once more, on a new one, if asking
 * twice does no harm.
 */
static bool try_again(struct passage *passage)
{
	const struct message *request = &passage->request;
	enum http_method method = (enum http_method)request->parser.method;

	if (!passage->is_reused || passage->response.has_head || passage->app.in.len > 0 ||
		(method != HTTP_GET && method != HTTP_HEAD && method != HTTP_OPTIONS) ||
		message_has_length(request) || message_is_chunked(request))
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
	struct rewrite rewrite = rewrite_of(passage);
	struct message *response = &passage->response;
	unsigned status = response->parser.status_code;

	if (status < 100) {
		refuse(passage, &refusal_bad_status);
		return;
	}
	if (status >= 100 && status < 200 && status != 101) {
		if (++passage->hints > HINTS_MAX) {
			refuse(passage, &refusal_hints_only);
			return;
		}
		if (status == 100 && !demand_is_old(&passage->request))
			buf_append_str(&passage->client.out, "HTTP/1.1 100 Continue\r\n\r\n");
		message_begin(response, HTTP_RESPONSE);
		response->has_no_body = passage->request.parser.method == HTTP_HEAD;
		return;
	}
	if (status == 101 && !passage->is_upgrade) {
		refuse(passage, &refusal_changed_protocol);
		return;
	}
	response->in_chunks = !response->is_complete && !message_has_length(response) &&
			      !demand_is_old(&passage->request);
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

/* The app ended: an answer without a length ends with it, unless it was torn. */
static void end_answer(struct passage *passage)
{
	struct message *response = &passage->response;

	if (try_again(passage))
		return;
	if (response->has_head && !passage->app.is_broken && message_end(response))
		return;
	refuse(passage, &refusal_no_answer);
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

/* A client may still have to read what the app said last. */
static void end_tunnel(struct side *ended)
{
	struct passage *passage = ended->passage;

	if (ended == &passage->client) {
		end(passage);
		return;
	}
	close_side(&passage->app);
	passage->state = PASSAGE_LAST;
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
		end_tunnel(from);
		return true;
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
		passage->due_ms = clock_steady_ms() + LINGER_MS;
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

	for (int rounds = 0; moved && rounds < ROUNDS_MAX; rounds++) {
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
	if (passage->state == PASSAGE_OVER) {
		proxy_loop_drop(passage->loop, passage);
		return;
	}
	release(&passage->client);
	release(&passage->app);
	if (moved) {
		proxy_loop_again(passage->loop, &passage->client);
		proxy_loop_again(passage->loop, &passage->app);
	}
}

/* --- life --- */

bool passage_is_idle(const struct passage *passage)
{
	return passage->state == PASSAGE_HEAD;
}

void passage_cut(struct passage *passage)
{
	end(passage);
	proxy_loop_drop(passage->loop, passage);
}

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
	/* An app that hangs up or speaks between two requests leaves a connection that is of no use. */
	if (side == &passage->app && passage->state == PASSAGE_HEAD) {
		if (side->is_readable)
			close_side(side);
		return;
	}
	if (passage->state != PASSAGE_FINDING)
		move(passage);
}

/* How long nothing may move. */
static uint64_t patience(const struct passage *passage)
{
	const struct proxy_config *config = passage->config;

	switch (passage->state) {
	case PASSAGE_HEAD:
		return passage->is_excess ? HEAD_MS : IDLE_MS;
	case PASSAGE_RELAY:
		return passage->client.out.len > 0 || passage->app.out.len > 0 ? config->stall_ms
		       : passage->has_answer_begun			       ? config->quiet_ms
									       : config->answer_ms;
	case PASSAGE_TUNNEL:
		return config->quiet_ms;
	case PASSAGE_LAST:
		return HEAD_MS;
	default:
		return UINT64_MAX;
	}
}

/* Whether what opened the way does so still; asked only when that may have changed. */
static bool is_granted(struct passage *passage)
{
	const struct proxy_config *config = passage->config;
	uint64_t generation = atomic_load(config->generation);

	if (passage->way.generation != generation &&
		!config->is_granted(config->context, &passage->way))
		return false;
	passage->way.generation = generation;
	return true;
}

/* What a client cannot put off by sending a byte now and then. */
static bool is_due(struct passage *passage, uint64_t now_ms)
{
	switch (passage->state) {
	case PASSAGE_HEAD:
		return passage->client.in.len > 0 && now_ms >= passage->due_ms;
	case PASSAGE_LAST:
		return passage->has_said_end && now_ms >= passage->due_ms;
	case PASSAGE_RELAY:
	case PASSAGE_TUNNEL:
		return now_ms >= passage->way.ends_ms || !is_granted(passage);
	default:
		return false;
	}
}

/* Whom it waits for in vain, if somebody can still be told. */
static const struct proxy_refusal *find_fault(const struct passage *passage)
{
	if (passage->state != PASSAGE_RELAY || passage->has_answer_begun ||
		passage->client.out.len > 0)
		return NULL;
	return passage->request.is_complete || passage->app.out.len > 0 ? &refusal_answer_timeout
									: &refusal_request_timeout;
}

void passage_tick(struct passage *passage, uint64_t now_ms)
{
	const struct proxy_refusal *fault = find_fault(passage);
	bool is_over;

	if (passage->state == PASSAGE_LATER && now_ms >= passage->due_ms) {
		ask(passage);
		return;
	}
	is_over = is_due(passage, now_ms);
	if (now_ms - passage->moved_ms < patience(passage) && !is_over)
		return;
	if (fault && !is_over) {
		refuse(passage, fault);
		move(passage);
		return;
	}
	passage_cut(passage);
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
	proxy_way_fini(&passage->way);
	message_fini(&passage->request);
	message_fini(&passage->response);
	dossier_unref(passage->dossier);
	free(passage);
}
