/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/passage_relay.h"

#include "base/clock.h"
#include "http/listener.h"
#include "proxy/passage_answer.h"
#include "proxy/passage_request.h"
#include "proxy/passage_tunnel.h"
#include "proxy/refusal.h"
#include "proxy/rewrite.h"

#define HINTS_MAX 16

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

void passage_relay_start(struct passage *passage)
{
	struct rewrite rewrite = rewrite_of(passage);
	struct message *request = &passage->request;

	request->out = &passage->app.out;
	request->in_chunks = message_is_chunked(request);
	rewrite_request(request, &rewrite, passage->is_upgrade, &passage->app.out);
	passage->state = PASSAGE_RELAY;
	passage->moved_ms = clock_steady_ms();
}

/* Feeds what came from a side to its message; whether something moved. */
static bool feed(struct side *side, struct message *message)
{
	ssize_t n;

	if (message->is_complete || side->in.len == 0 || !side_has_room(side_other(side)))
		return false;
	n = message_feed(message, side->in.data, side->in.len);
	if (n < 0) {
		passage_answer_refuse(side->passage,
			side == &side->passage->client ? &refusal_bad_body : &refusal_bad_answer);
		return true;
	}
	buf_consume(&side->in, (size_t)n);
	return n > 0;
}

/* --- the request --- */

static bool move_request(struct passage *passage)
{
	struct side *client = &passage->client, *app = &passage->app;
	bool moved = side_flush(app);

	if (passage->request.is_complete)
		return moved;
	if (client->in.len == 0 && side_has_room(app))
		moved |= side_receive(client);
	if (feed(client, &passage->request))
		return true;
	if (client->has_ended && client->in.len == 0) {
		passage_end(passage); /* half a request: the app must not take it for a whole one */
		return true;
	}
	return moved;
}

/* --- the answer --- */

/* The head of an answer is there: passed on, unless it is only a hint. */
static void pass_answer(struct passage *passage)
{
	struct rewrite rewrite = rewrite_of(passage);
	struct message *response = &passage->response;
	unsigned status = response->parser.status_code;

	if (status < 100) {
		passage_answer_refuse(passage, &refusal_bad_status);
		return;
	}
	if (status >= 100 && status < 200 && status != 101) {
		if (++passage->hints > HINTS_MAX) {
			passage_answer_refuse(passage, &refusal_hints_only);
			return;
		}
		if (status == 100 && !demand_is_old(&passage->request))
			buf_append_str(&passage->client.out, "HTTP/1.1 100 Continue\r\n\r\n");
		message_begin(response, HTTP_RESPONSE);
		response->has_no_body = passage->request.parser.method == HTTP_HEAD;
		return;
	}
	if (status == 101 && !passage->is_upgrade) {
		passage_answer_refuse(passage, &refusal_changed_protocol);
		return;
	}
	response->in_chunks = !response->is_complete && !message_has_length(response) &&
			      !demand_is_old(&passage->request);
	response->out = &passage->client.out;
	passage->has_answer_begun = true;
	rewrite_response(response, &rewrite, response->in_chunks, passage->wants_close,
		&passage->client.out);
	if (status == 101)
		passage_tunnel_start(passage);
}

static void end_exchange(struct passage *passage)
{
	bool keeps_app = http_should_keep_alive(&passage->response.parser) &&
			 passage->request.is_complete && passage->app.in.len == 0;

	if (!keeps_app)
		side_close(&passage->app);
	/* A request whose body the app did not want to read cannot be followed by another. */
	if (passage->wants_close || !passage->request.is_complete || passage->client.has_ended) {
		side_close(&passage->app);
		passage->state = PASSAGE_LAST;
		return;
	}
	passage_request_begin(passage);
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
	side_close(&passage->app);
	passage->is_reused = false;
	passage_request_ask(passage);
	return true;
}

/* The app ended: an answer without a length ends with it, unless it was torn. */
static void end_answer(struct passage *passage)
{
	struct message *response = &passage->response;

	if (try_again(passage))
		return;
	if (response->has_head && !passage->app.is_broken && message_end(response))
		return;
	passage_answer_refuse(passage, &refusal_no_answer);
}

static bool move_answer(struct passage *passage)
{
	struct side *client = &passage->client, *app = &passage->app;
	struct message *response = &passage->response;
	bool had_head = response->has_head;
	bool moved = side_flush(client);

	if (response->is_complete) {
		if (client->out.len > 0)
			return moved;
		end_exchange(passage);
		return true;
	}
	if (side_has_room(client))
		moved |= side_receive(app);
	if (!had_head)
		response->has_no_body = passage->request.parser.method == HTTP_HEAD;
	if (feed(app, response)) {
		if (!had_head && response->has_head && passage->state == PASSAGE_RELAY)
			pass_answer(passage);
		return true;
	}
	if (app->has_ended && side_has_room(client)) {
		end_answer(passage);
		return true;
	}
	return moved;
}

bool passage_relay_move(struct passage *passage)
{
	bool moved = move_request(passage);

	if (passage->state == PASSAGE_RELAY)
		moved |= move_answer(passage);
	if (passage->state == PASSAGE_RELAY && passage_is_deserted(passage))
		passage_end(passage);
	return moved;
}
