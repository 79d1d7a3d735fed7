/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/secret/secret_proxy.h"

#include "egress/connection/proxy_head.h"
#include "egress/secret/tls_client.h"
#include "http/buffered_socket.h"
#include "http/head_rules.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define HINTS_MAX 16 /* interim answers (1xx) to one request */

#define BAD_GATEWAY "502 Bad Gateway"
#define BAD_REQUEST "400 Bad Request"
#define MISDIRECTED "421 Misdirected Request"

#define READ_BYTES  (32u * 1024)
#define WAITING_MAX (64u * 1024)

static const struct buffered_socket_limits limits = {
	.read_bytes = READ_BYTES,
	.waiting_max = WAITING_MAX,
	.out_max = WAITING_MAX + 2 * (MESSAGE_HEAD_MAX + READ_BYTES) + SECRET_VALUE_MAX,
};

struct secret_proxy {
	struct sandbox_egress *sandbox;
	struct authority inside;
	const struct secret_cache_secret *secret;
	struct buffered_socket client, server; /* whose descriptors belong to the egress_conn */
	struct tls_client *tls;		       /* of the server; NULL: plain */
	struct message request, response;
	bool in_handshake;
	bool is_old;	  /* the client speaks HTTP/1.0 */
	bool wants_close; /* after this answer */
	bool has_answer_begun;
	unsigned hints;
	enum secret_proxy_result outcome;
	const char *status;
	char text[256];
};

/* --- ends --- */

/* An answer that has begun cannot become an error. */
static void refuse(struct secret_proxy *proxy, const char *status, const char *text)
{
	proxy->outcome = proxy->has_answer_begun ? SECRET_PROXY_BROKEN : SECRET_PROXY_REFUSED;
	proxy->status = status;
	snprintf(proxy->text, sizeof(proxy->text), "%s", text);
}

static void begin_exchange(struct secret_proxy *proxy)
{
	message_begin(&proxy->request, MESSAGE_REQUEST);
	message_begin(&proxy->response, MESSAGE_RESPONSE);
	proxy->has_answer_begun = proxy->wants_close = false;
	proxy->hints = 0;
}

static void end_exchange(struct secret_proxy *proxy)
{
	/* After a request whose body the server did not read, no other can follow. */
	if (proxy->wants_close || !proxy->request.is_complete || proxy->server.in.len > 0 ||
		proxy->server.has_ended)
		proxy->outcome = SECRET_PROXY_OVER;
	else
		begin_exchange(proxy);
}

/* --- requests --- */

/* Whether the authority is the client's name for the server; the scheme is http. */
static bool is_inside(const struct secret_proxy *proxy, struct slice text)
{
	struct authority named;

	return authority_read(text.at, text.len, SECRET_PORT, &named) == 0 &&
	       authority_equals(&named, &proxy->inside);
}

/* Exactly one Host, unless the client speaks HTTP/1.0. */
static bool is_host_right(const struct secret_proxy *proxy)
{
	const struct message *request = &proxy->request;
	size_t count = message_count(request, "Host");

	if (count == 0)
		return request->version_minor == 0;
	return count == 1 && is_inside(proxy, message_get(request, "Host"));
}

/* Reads path and query; false if they are for another server. */
static bool read_path(const struct secret_proxy *proxy, struct slice *ret_path)
{
	struct proxy_head head;

	*ret_path = proxy->request.target;
	if (slice_begins(*ret_path, "/"))
		return true;
	if (proxy_head_read(&proxy->request, &head) < 0 || head.is_connect)
		return false;
	*ret_path = head.path;
	return authority_equals(&head.at, &proxy->inside);
}

/*
 * A server may answer TRACE with the request itself, secret included, and take CONNECT for a
 * tunnel.
 */
static bool is_for_the_hop(const struct message *request)
{
	return message_asks(request, "CONNECT") || message_asks(request, "TRACE");
}

/*
 * The secret may have changed since the last request; the server must be the one that we are
 * connected to.
 */
static bool renew_secret(struct secret_proxy *proxy)
{
	const struct secret_record *old = &proxy->secret->record;
	const struct secret_cache_secret *now =
		secret_cache_find(proxy->sandbox->worker->egress->config.secret_cache,
			&proxy->sandbox->owner, old->name);

	if (!now || strcmp(now->record.url, old->url) != 0 ||
		now->record.is_trusted != old->is_trusted) {
		secret_cache_secret_unref(now);
		return false;
	}
	secret_cache_secret_unref(proxy->secret);
	proxy->secret = now;
	return true;
}

static void write_head(struct secret_proxy *proxy, struct slice path)
{
	const struct secret_cache_secret *secret = proxy->secret;
	struct message *request = &proxy->request;
	struct buf *out = &proxy->server.out;

	proxy_head_forward(request, secret->server.path, path, secret->server.host,
		secret->record.header, out);
	buf_printf(
		out, "%s: %s%s\r\n", secret->record.header, secret->record.prefix, secret->value);
	buf_append_str(out, proxy->wants_close ? "Connection: close\r\n\r\n" : "\r\n");
	request->out = out;
	request->in_chunks = request->is_chunked;
}

static void send_head(struct secret_proxy *proxy)
{
	const struct message *request = &proxy->request;
	/* Where a server sees the end elsewhere than we do, the next request, with the secret, would become a
	 * part of the body. */
	const char *doubt = message_framing_fault(request);
	struct slice path;

	proxy->is_old = request->version_minor == 0;
	/* A client of a proxy would send requests for other servers here too. */
	proxy->wants_close = !request->keeps_alive || !slice_begins(request->target, "/");
	if (!head_rules_is_version(request->version_major, request->version_minor))
		refuse(proxy, "505 HTTP Version Not Supported", "HTTP/1.1 is spoken here");
	else if (is_for_the_hop(request))
		refuse(proxy, "405 Method Not Allowed", "CONNECT and TRACE are not passed on");
	else if (doubt)
		refuse(proxy, BAD_REQUEST, doubt);
	else if (!read_path(proxy, &path) || !is_host_right(proxy))
		refuse(proxy, MISDIRECTED,
			"on this connection only the server is asked that it was opened for");
	else if (memchr(path.at, '#', path.len))
		refuse(proxy, BAD_REQUEST,
			"the path has a # in it; send it as %23, or not at all if it is a "
			"fragment");
	else if (secret_path_has_steps(path.at, path.len))
		refuse(proxy, BAD_REQUEST, "the path has . or .. in it");
	else if (!renew_secret(proxy))
		refuse(proxy, MISDIRECTED,
			"the secret of this connection is gone or leads elsewhere; connect again");
	else
		write_head(proxy, path);
}

static bool move_request(struct secret_proxy *proxy)
{
	struct buffered_socket *client = &proxy->client;
	bool had_head = proxy->request.has_head;
	ssize_t n = 0;

	if (proxy->request.is_complete || !buffered_socket_has_room(&proxy->server))
		return false;
	if (client->in.len > 0)
		n = message_feed(&proxy->request, client->in.data, client->in.len);
	if (n < 0) {
		refuse(proxy, n == -EMSGSIZE ? "431 Request Header Fields Too Large" : BAD_REQUEST,
			n == -EMSGSIZE ? "the head of the request is too long"
				       : "the request is not proper HTTP");
		return true;
	}
	buf_consume(&client->in, (size_t)n);
	if (n > 0 && !had_head)
		send_head(proxy);
	if (n == 0 && client->has_ended) {
		/* The server must not take half a request for a whole one. */
		proxy->outcome =
			had_head || client->in.len > 0 ? SECRET_PROXY_BROKEN : SECRET_PROXY_OVER;
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
	/* A second, different length would split one answer into two. */
	return slice_is_like(name, "Content-Length") && !response->has_length;
}

static void write_answer(struct secret_proxy *proxy)
{
	struct message *response = &proxy->response;
	struct buf *out = &proxy->client.out;

	response->in_chunks = !response->is_complete && !response->has_length && !proxy->is_old;
	response->out = out;
	proxy->has_answer_begun = true;
	proxy->wants_close |= !response->keeps_alive;
	buf_printf(out, "HTTP/1.1 %u %.*s\r\n", response->status, (int)response->reason.len,
		response->reason.len > 0 ? response->reason.at : "");
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
	buf_append_str(out, proxy->wants_close ? "Connection: close\r\n\r\n" : "\r\n");
}

/* Of interim answers, only 100 Continue is passed on. */
static void take_hint(struct secret_proxy *proxy)
{
	if (++proxy->hints > HINTS_MAX) {
		refuse(proxy, BAD_GATEWAY, "the server answers with hints only");
		return;
	}
	if (proxy->response.status == 100 && !proxy->is_old)
		buf_append_str(&proxy->client.out, "HTTP/1.1 100 Continue\r\n\r\n");
	message_begin(&proxy->response, MESSAGE_RESPONSE);
}

static void pass_head(struct secret_proxy *proxy)
{
	unsigned status = proxy->response.status;

	if (status < 100 || status == 101)
		refuse(proxy, BAD_GATEWAY, "the server answers with something else than HTTP");
	else if (status < 200)
		take_hint(proxy);
	else
		write_answer(proxy);
}

static bool feed_answer(struct secret_proxy *proxy)
{
	struct message *response = &proxy->response;
	struct buffered_socket *server = &proxy->server;
	bool had_head = response->has_head;
	ssize_t n;

	if (response->is_complete || server->in.len == 0 ||
		!buffered_socket_has_room(&proxy->client))
		return false;
	response->has_no_body = message_asks(&proxy->request, "HEAD");
	n = message_feed(response, server->in.data, server->in.len);
	if (n < 0) {
		refuse(proxy, BAD_GATEWAY, "the server does not answer with proper HTTP");
		return true;
	}
	buf_consume(&server->in, (size_t)n);
	if (n > 0 && !had_head)
		pass_head(proxy);
	return n > 0;
}

static bool move_answer(struct secret_proxy *proxy)
{
	struct buffered_socket *server = &proxy->server;

	if (!proxy->request.has_head) {
		/* Between two requests the server sends nothing; if it closes, the proxy ends. */
		if (server->in.len > 0 || server->has_ended)
			proxy->outcome = SECRET_PROXY_OVER;
		return false;
	}
	if (feed_answer(proxy))
		return true;
	if (proxy->response.is_complete) {
		if (proxy->client.out.len > 0)
			return false;
		end_exchange(proxy);
		return true;
	}
	if (!server->has_ended || !buffered_socket_has_room(&proxy->client))
		return false;
	if (proxy->response.has_head && !server->is_broken && message_end(&proxy->response))
		return true;
	refuse(proxy, BAD_GATEWAY, "the server closed the connection without a whole answer");
	return true;
}

/* --- all of it --- */

static void do_handshake(struct secret_proxy *proxy)
{
	char text[200];
	int r = tls_client_handshake(proxy->tls);

	proxy->in_handshake = r == -EAGAIN;
	if (r == 0 || r == -EAGAIN)
		return;
	snprintf(text, sizeof(text), "%s is not trusted: %s", proxy->secret->server.host,
		tls_client_problem(proxy->tls));
	refuse(proxy, BAD_GATEWAY, text);
}

/* Reads once, if the other has room; whether bytes or the end came. */
static bool receive(struct buffered_socket *from, const struct buffered_socket *to, size_t *budget,
	size_t *counter)
{
	size_t had = from->in.len, n;

	if (*budget == 0 || !buffered_socket_has_room(to) || !buffered_socket_receive(from))
		return false;
	n = from->in.len - had;
	*counter += n;
	*budget -= n < *budget ? n : *budget;
	return true;
}

static bool move_once(struct secret_proxy *proxy, struct secret_proxy_turn *turn)
{
	struct buffered_socket *client = &proxy->client, *server = &proxy->server;
	bool moved = buffered_socket_flush(server);

	moved |= buffered_socket_flush(client);
	/* Read also while waiting for the answer, to notice that the client left. */
	moved |= receive(client, server, &turn->budget, &turn->sent);
	if (client->has_write_failed || client->is_broken) {
		proxy->outcome = SECRET_PROXY_BROKEN;
		return false;
	}
	moved |= move_request(proxy);
	if (proxy->outcome != SECRET_PROXY_WAITS)
		return false;
	moved |= receive(server, client, &turn->budget, &turn->received);
	moved |= move_answer(proxy);
	if (client->out.failed || server->out.failed)
		proxy->outcome = SECRET_PROXY_BROKEN;
	return moved;
}

/* Which socket is ready for what is not known here, so both are tried until they have no more. */
static void try_all(struct buffered_socket *sock)
{
	sock->is_readable = sock->is_writable = sock->hangs_up = true;
}

enum secret_proxy_result secret_proxy_move(
	struct secret_proxy *proxy, struct secret_proxy_turn *turn)
{
	if (proxy->in_handshake)
		do_handshake(proxy);
	if (proxy->in_handshake)
		return SECRET_PROXY_WAITS;
	try_all(&proxy->client);
	try_all(&proxy->server);
	while (proxy->outcome == SECRET_PROXY_WAITS && move_once(proxy, turn)) {
		if (turn->budget == 0)
			return SECRET_PROXY_MORE;
	}
	buffered_socket_release(&proxy->client);
	buffered_socket_release(&proxy->server);
	return proxy->outcome == SECRET_PROXY_WAITS && turn->budget == 0 ? SECRET_PROXY_MORE
									 : proxy->outcome;
}

bool secret_proxy_in_handshake(const struct secret_proxy *proxy)
{
	return proxy->in_handshake;
}

bool secret_proxy_is_half_open(const struct secret_proxy *proxy)
{
	return proxy->client.has_ended;
}

const struct secret_cache_secret *secret_proxy_secret(const struct secret_proxy *proxy)
{
	return proxy->secret;
}

void secret_proxy_refusal(
	const struct secret_proxy *proxy, const char **ret_status, const char **ret_text)
{
	*ret_status = proxy->status;
	*ret_text = proxy->text;
}

static ssize_t read_tls(void *arg, void *data, size_t len)
{
	return tls_client_read(arg, data, len);
}

static ssize_t write_tls(void *arg, const void *data, size_t len)
{
	return tls_client_write(arg, data, len);
}

int secret_proxy_connect(struct secret_proxy *proxy, int client_fd, int server_fd)
{
	static const struct buffered_socket_io tls_io = {read_tls, write_tls};
	const struct secret_server *server = &proxy->secret->server;
	int r;

	proxy->client.fd = client_fd;
	proxy->server.fd = server_fd;
	if (!server->is_tls)
		return 0;
	r = egress_open_tls(proxy->sandbox->worker->egress, server_fd, &server->at, &proxy->tls);
	proxy->server.io = &tls_io;
	proxy->server.io_arg = proxy->tls;
	proxy->in_handshake = r == 0;
	return r;
}

struct secret_proxy *secret_proxy_new(struct sandbox_egress *sandbox,
	const struct authority *inside, const struct secret_cache_secret *secret, const void *sent,
	size_t len)
{
	struct secret_proxy *proxy = mem_new(sizeof(*proxy));

	*proxy = (struct secret_proxy){.sandbox = sandbox, .inside = *inside, .secret = secret};
	buffered_socket_init(&proxy->client, proxy, -1, &limits);
	buffered_socket_init(&proxy->server, proxy, -1, &limits);
	buf_append(&proxy->client.in, sent, len);
	begin_exchange(proxy);
	sandbox->secret_proxy_count++;
	return proxy;
}

void secret_proxy_free(struct secret_proxy *proxy)
{
	if (!proxy)
		return;
	proxy->sandbox->secret_proxy_count--;
	proxy->client.fd = proxy->server.fd = -1;
	buffered_socket_close(&proxy->client);
	buffered_socket_close(&proxy->server);
	tls_client_close(proxy->tls);
	message_fini(&proxy->request);
	message_fini(&proxy->response);
	secret_cache_secret_unref(proxy->secret);
	free(proxy);
}
