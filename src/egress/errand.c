/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/errand.h"

#include "egress/errand_side.h"
#include "egress/proxy_head.h"
#include "egress/tls_client.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define HINTS_MAX 16 /* answers of the kind 1xx to one request */

#define BAD_GATEWAY "502 Bad Gateway"
#define BAD_REQUEST "400 Bad Request"
#define MISDIRECTED "421 Misdirected Request"

struct errand {
	struct sluice *sluice;
	struct authority inside;
	const struct vault_secret *secret;
	struct errand_side client, server;
	struct message request, response;
	bool is_shaking;
	bool is_old;	  /* the client does not know chunks */
	bool wants_close; /* after this answer */
	bool has_answer_begun;
	unsigned hints;
	enum errand_result outcome;
	const char *status;
	char text[256];
};

/* --- ends --- */

/* What has begun cannot be taken back. */
static void refuse(struct errand *errand, const char *status, const char *text)
{
	errand->outcome = errand->has_answer_begun ? ERRAND_BROKEN : ERRAND_REFUSED;
	errand->status = status;
	snprintf(errand->text, sizeof(errand->text), "%s", text);
}

static void begin_exchange(struct errand *errand)
{
	message_begin(&errand->request, HTTP_REQUEST);
	message_begin(&errand->response, HTTP_RESPONSE);
	errand->has_answer_begun = errand->wants_close = false;
	errand->hints = 0;
}

static void end_exchange(struct errand *errand)
{
	/* A request whose body the server did not want to read cannot be followed by another. */
	if (errand->wants_close || !errand->request.is_complete || errand->server.in.len > 0 ||
		errand->server.has_ended)
		errand->outcome = ERRAND_OVER;
	else
		begin_exchange(errand);
}

/* --- requests --- */

/* Whether it is what the client calls the server; http is its scheme. */
static bool is_inside(const struct errand *errand, struct slice text)
{
	struct authority named;

	return authority_read(text.at, text.len, SECRET_PORT, &named) == 0 &&
	       authority_equals(&named, &errand->inside);
}

/* Exactly one, unless the client is of an age that had none. */
static bool is_host_right(const struct errand *errand)
{
	const struct message *request = &errand->request;
	size_t count = message_count(request, "Host");

	if (count == 0)
		return request->parser.http_minor == 0;
	return count == 1 && is_inside(errand, message_get(request, "Host"));
}

/* Path and query; whether they are for this server. */
static bool read_path(const struct errand *errand, struct slice *ret_path)
{
	struct proxy_head head;

	*ret_path = errand->request.target;
	if (slice_begins(*ret_path, "/"))
		return true;
	if (proxy_head_read(&errand->request, &head) < 0 || head.is_connect)
		return false;
	*ret_path = head.path;
	return authority_equals(&head.at, &errand->inside);
}

/* What a server may answer with the request itself, secret and all, or take for something else than a request. */
static bool is_for_the_hop(const struct message *request)
{
	return request->parser.method == HTTP_CONNECT || request->parser.method == HTTP_TRACE;
}

/* Whether a server may see its end elsewhere than we do: the next request, with the secret, would become a part of it. */
static bool has_doubtful_end(const struct message *request)
{
	return message_has_other_coding(request) ||
	       (message_is_chunked(request) && request->parser.http_minor == 0);
}

/* The secret may have changed since the last request; the server that we are connected to has not. */
static bool renew_secret(struct errand *errand)
{
	const struct secret_record *old = &errand->secret->record;
	const struct vault_secret *now = vault_find(
		errand->sluice->station->egress->config.vault, &errand->sluice->owner, old->name);

	if (!now || strcmp(now->record.url, old->url) != 0 ||
		now->record.is_trusted != old->is_trusted) {
		vault_secret_unref(now);
		return false;
	}
	vault_secret_unref(errand->secret);
	errand->secret = now;
	return true;
}

static void write_head(struct errand *errand, struct slice path)
{
	const struct vault_secret *secret = errand->secret;
	struct message *request = &errand->request;
	struct buf *out = &errand->server.out;

	proxy_head_forward(request, secret->server.path, path, secret->server.host,
		secret->record.header, out);
	buf_printf(
		out, "%s: %s%s\r\n", secret->record.header, secret->record.prefix, secret->value);
	buf_append_str(out, errand->wants_close ? "Connection: close\r\n\r\n" : "\r\n");
	request->out = out;
	request->in_chunks = message_is_chunked(request);
}

static void send_head(struct errand *errand)
{
	const struct message *request = &errand->request;
	struct slice path;

	errand->is_old = request->parser.http_minor == 0;
	/* Whoever asks a proxy would send requests for other servers here too. */
	errand->wants_close =
		!http_should_keep_alive(&request->parser) || !slice_begins(request->target, "/");
	if (request->parser.http_major != 1 || request->parser.http_minor > 1)
		refuse(errand, "505 HTTP Version Not Supported", "HTTP/1.1 is spoken here");
	else if (is_for_the_hop(request))
		refuse(errand, "405 Method Not Allowed", "CONNECT and TRACE are not passed on");
	else if (has_doubtful_end(request))
		refuse(errand, BAD_REQUEST,
			"no transfer coding is passed on but chunked, of HTTP/1.1");
	else if (!read_path(errand, &path) || !is_host_right(errand))
		refuse(errand, MISDIRECTED,
			"on this connection only the server is asked that it was opened for");
	else if (secret_path_has_steps(path.at, path.len))
		refuse(errand, BAD_REQUEST, "the path has . or .. in it");
	else if (!renew_secret(errand))
		refuse(errand, MISDIRECTED,
			"the secret of this connection is gone or leads elsewhere; connect again");
	else
		write_head(errand, path);
}

static bool move_request(struct errand *errand)
{
	struct errand_side *client = &errand->client;
	bool had_head = errand->request.has_head;
	ssize_t n = 0;

	if (errand->request.is_complete || errand->server.out.len >= ERRAND_SIDE_WAITING_MAX)
		return false;
	if (client->in.len > 0)
		n = message_feed(&errand->request, client->in.data, client->in.len);
	if (n < 0) {
		refuse(errand, n == -EMSGSIZE ? "431 Request Header Fields Too Large" : BAD_REQUEST,
			n == -EMSGSIZE ? "the head of the request is too long"
				       : "the request is not proper HTTP");
		return true;
	}
	buf_consume(&client->in, (size_t)n);
	if (n > 0 && !had_head)
		send_head(errand);
	if (n == 0 && client->has_ended) {
		/* Half a request: the server must not take it for a whole one. */
		errand->outcome = had_head || client->in.len > 0 ? ERRAND_BROKEN : ERRAND_OVER;
		return true;
	}
	return n > 0;
}

/* --- answers --- */

static bool is_for_this_hop(const struct message *response, struct slice name)
{
	static const char *const names[] = {"Connection", "Keep-Alive", "Proxy-Authenticate",
		"Proxy-Connection", "TE", "Transfer-Encoding", "Upgrade"};

	for (size_t i = 0; i < array_len(names); i++) {
		if (slice_is_like(name, names[i]))
			return true;
	}
	/* Another length than the one that is kept to would make two answers of one. */
	return slice_is_like(name, "Content-Length") && !message_has_length(response);
}

static void write_answer(struct errand *errand)
{
	struct message *response = &errand->response;
	struct buf *out = &errand->client.out;

	response->in_chunks =
		!response->is_complete && !message_has_length(response) && !errand->is_old;
	response->out = out;
	errand->has_answer_begun = true;
	errand->wants_close |= !http_should_keep_alive(&response->parser);
	buf_printf(out, "HTTP/1.1 %u %.*s\r\n", response->parser.status_code,
		(int)response->reason.len, response->reason.len > 0 ? response->reason.at : "");
	for (size_t i = 0; i < response->field_count; i++) {
		const struct message_field *field = &response->fields[i];

		if (is_for_this_hop(response, field->name))
			continue;
		buf_append(out, field->name.at, field->name.len);
		buf_append_str(out, ": ");
		buf_append(out, field->value.at, field->value.len);
		buf_append_str(out, "\r\n");
	}
	if (response->in_chunks)
		buf_append_str(out, "Transfer-Encoding: chunked\r\n");
	buf_append_str(out, errand->wants_close ? "Connection: close\r\n\r\n" : "\r\n");
}

/* Only the hint that a body is waited for is of use to anybody. */
static void take_hint(struct errand *errand)
{
	if (++errand->hints > HINTS_MAX) {
		refuse(errand, BAD_GATEWAY, "the server answers with hints only");
		return;
	}
	if (errand->response.parser.status_code == 100 && !errand->is_old)
		buf_append_str(&errand->client.out, "HTTP/1.1 100 Continue\r\n\r\n");
	message_begin(&errand->response, HTTP_RESPONSE);
}

static void pass_head(struct errand *errand)
{
	unsigned status = errand->response.parser.status_code;

	if (status < 100 || status == 101)
		refuse(errand, BAD_GATEWAY, "the server answers with something else than HTTP");
	else if (status < 200)
		take_hint(errand);
	else
		write_answer(errand);
}

static bool feed_answer(struct errand *errand)
{
	struct message *response = &errand->response;
	struct errand_side *server = &errand->server;
	bool had_head = response->has_head;
	ssize_t n;

	if (response->is_complete || server->in.len == 0 ||
		errand->client.out.len >= ERRAND_SIDE_WAITING_MAX)
		return false;
	response->has_no_body = errand->request.parser.method == HTTP_HEAD;
	n = message_feed(response, server->in.data, server->in.len);
	if (n < 0) {
		refuse(errand, BAD_GATEWAY, "the server does not answer with proper HTTP");
		return true;
	}
	buf_consume(&server->in, (size_t)n);
	if (n > 0 && !had_head)
		pass_head(errand);
	return n > 0;
}

static bool move_answer(struct errand *errand)
{
	struct errand_side *server = &errand->server;

	if (!errand->request.has_head) {
		/* Between two requests it has nothing to say; if it leaves, so do we. */
		if (server->in.len > 0 || server->has_ended)
			errand->outcome = ERRAND_OVER;
		return false;
	}
	if (feed_answer(errand))
		return true;
	if (errand->response.is_complete) {
		if (errand->client.out.len > 0)
			return false;
		end_exchange(errand);
		return true;
	}
	if (!server->has_ended || errand->client.out.len >= ERRAND_SIDE_WAITING_MAX)
		return false;
	if (errand->response.has_head && !server->is_broken && message_end(&errand->response))
		return true;
	refuse(errand, BAD_GATEWAY, "the server closed the connection without a whole answer");
	return true;
}

/* --- all of it --- */

static void shake(struct errand *errand)
{
	char text[200];
	int r = tls_client_shake(errand->server.tls);

	errand->is_shaking = r == -EAGAIN;
	if (r == 0 || r == -EAGAIN)
		return;
	snprintf(text, sizeof(text), "%s is not trusted: %s", errand->secret->server.host,
		tls_client_problem(errand->server.tls));
	refuse(errand, BAD_GATEWAY, text);
}

static bool move_once(struct errand *errand, struct errand_turn *turn)
{
	struct errand_side *client = &errand->client, *server = &errand->server;
	bool moved = errand_side_flush(server);

	moved |= errand_side_flush(client);
	/* Also while it waits for an answer: else nobody would notice that it left, and nobody might ever answer. */
	moved |= errand_side_receive(client, server, &turn->budget, &turn->sent);
	if (client->is_deaf || client->is_broken) {
		errand->outcome = ERRAND_BROKEN;
		return false;
	}
	moved |= move_request(errand);
	if (errand->outcome != ERRAND_WAITS)
		return false;
	moved |= errand_side_receive(server, client, &turn->budget, &turn->received);
	moved |= move_answer(errand);
	if (client->out.failed || server->out.failed)
		errand->outcome = ERRAND_BROKEN;
	return moved;
}

enum errand_result errand_move(struct errand *errand, struct errand_turn *turn)
{
	if (errand->is_shaking)
		shake(errand);
	if (errand->is_shaking)
		return ERRAND_WAITS;
	while (errand->outcome == ERRAND_WAITS && move_once(errand, turn)) {
		if (turn->budget == 0)
			return ERRAND_MORE;
	}
	errand_side_release(&errand->client);
	errand_side_release(&errand->server);
	return errand->outcome == ERRAND_WAITS && turn->budget == 0 ? ERRAND_MORE : errand->outcome;
}

bool errand_is_shaking(const struct errand *errand)
{
	return errand->is_shaking;
}

bool errand_is_half_open(const struct errand *errand)
{
	return errand->client.has_ended;
}

const struct vault_secret *errand_secret(const struct errand *errand)
{
	return errand->secret;
}

void errand_refusal(const struct errand *errand, const char **ret_status, const char **ret_text)
{
	*ret_status = errand->status;
	*ret_text = errand->text;
}

int errand_connect(struct errand *errand, int client_fd, int server_fd)
{
	const struct secret_server *server = &errand->secret->server;
	int r;

	errand->client.fd = client_fd;
	errand->server.fd = server_fd;
	if (!server->is_tls)
		return 0;
	r = egress_open_tls(
		errand->sluice->station->egress, server_fd, &server->at, &errand->server.tls);
	errand->is_shaking = r == 0;
	return r;
}

struct errand *errand_new(struct sluice *sluice, const struct authority *inside,
	const struct vault_secret *secret, const void *sent, size_t len)
{
	struct errand *errand = mem_new(sizeof(*errand));

	*errand = (struct errand){.sluice = sluice,
		.inside = *inside,
		.secret = secret,
		.client = ERRAND_SIDE_INIT,
		.server = ERRAND_SIDE_INIT};
	buf_append(&errand->client.in, sent, len);
	begin_exchange(errand);
	sluice->errand_count++;
	return errand;
}

void errand_free(struct errand *errand)
{
	if (!errand)
		return;
	errand->sluice->errand_count--;
	errand_side_fini(&errand->client);
	errand_side_fini(&errand->server);
	message_fini(&errand->request);
	message_fini(&errand->response);
	vault_secret_unref(errand->secret);
	free(errand);
}
