/* SPDX-License-Identifier: Apache-2.0 */
#include "http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define REQUEST_MAX 16384

void http_init(struct http_client *client, const struct http_target *target)
{
	*client = (struct http_client){.target = target, .fd = -1};
	client->answer = malloc(HTTP_ANSWER_MAX + 1);
	if (!client->answer)
		abort();
}

static void disconnect(struct http_client *client)
{
	if (client->fd >= 0)
		close(client->fd);
	client->fd = -1;
}

void http_fini(struct http_client *client)
{
	disconnect(client);
	free(client->answer);
}

static int connect_unix(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	return fd;
}

static int connect_tcp(const char *host_port)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	const char *colon = strrchr(host_port, ':');
	char host[64];
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (!colon || (size_t)(colon - host_port) >= sizeof(host))
		return -EINVAL;
	memcpy(host, host_port, (size_t)(colon - host_port));
	host[colon - host_port] = '\0';
	address.sin_port = htons((unsigned short)atoi(colon + 1));
	if (inet_pton(AF_INET, host, &address.sin_addr) != 1)
		return -EINVAL;
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
	return fd;
}

/* Whether the server has closed the kept connection meanwhile, as servers do after a minute or so. */
static bool is_stale(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

int http_connect(struct http_client *client)
{
	const char *address = client->target->address;
	int fd;

	if (client->fd >= 0 && is_stale(client->fd))
		disconnect(client);
	if (client->fd >= 0)
		return 0;
	fd = strncmp(address, "unix:", 5) == 0 ? connect_unix(address + 5) : connect_tcp(address);
	if (fd < 0)
		return fd;
	client->fd = fd;
	return 0;
}

static int send_all(int fd, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

/* Reads once more into the answer. Bytes, 0 at the end, or -errno. */
static ssize_t read_more(struct http_client *client)
{
	ssize_t n;

	if (client->answer_len == HTTP_ANSWER_MAX)
		return -EMSGSIZE;
	do {
		n = recv(client->fd, client->answer + client->answer_len,
			HTTP_ANSWER_MAX - client->answer_len, 0);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	client->answer_len += (size_t)n;
	client->answer[client->answer_len] = '\0';
	return n;
}

/* The value of a header in [head, end), or NULL. */
static const char *find_header(const char *head, const char *end, const char *name)
{
	size_t len = strlen(name);

	for (const char *line = head; line && line < end; line = strstr(line, "\r\n")) {
		if (line[0] == '\r')
			line += 2;
		if (line < end && strncasecmp(line, name, len) == 0 && line[len] == ':') {
			line += len + 1;
			return line + strspn(line, " ");
		}
	}
	return NULL;
}

static int read_until(struct http_client *client, size_t len)
{
	while (client->answer_len < len) {
		ssize_t n = read_more(client);

		if (n <= 0)
			return n < 0 ? (int)n : -EPIPE;
	}
	return 0;
}

/* Takes chunks apart in place: the body moves together at body_start. */
static int read_chunks(struct http_client *client)
{
	size_t from = client->body_start, to = client->body_start;

	for (;;) {
		char *end;
		size_t size;
		int r;

		while (!(end = strstr(client->answer + from, "\r\n"))) {
			r = read_until(client, client->answer_len + 1);
			if (r < 0)
				return r;
		}
		size = strtoul(client->answer + from, NULL, 16);
		from = (size_t)(end - client->answer) + 2;
		r = read_until(client, from + size + 2);
		if (r < 0)
			return r;
		memmove(client->answer + to, client->answer + from, size);
		to += size;
		from += size + 2;
		if (size == 0) {
			client->body_len = to - client->body_start;
			return 0;
		}
	}
}

static int read_body(struct http_client *client, const char *head, const char *end)
{
	const char *length = find_header(head, end, "Content-Length");
	const char *coding = find_header(head, end, "Transfer-Encoding");
	const char *connection = find_header(head, end, "Connection");
	bool closes = connection && strncasecmp(connection, "close", 5) == 0;
	ssize_t n;
	int r = 0;

	client->body_len = 0;
	if (client->status == 204 || client->status == 304) {
		/* no body */
	} else if (coding && strncasecmp(coding, "chunked", 7) == 0) {
		r = read_chunks(client);
	} else if (length) {
		client->body_len = strtoul(length, NULL, 10);
		r = read_until(client, client->body_start + client->body_len);
	} else {
		/* Docker's raw streams: until the end of the connection. */
		closes = true;
		while ((n = read_more(client)) > 0)
			;
		r = (int)n;
		client->body_len = client->answer_len - client->body_start;
	}
	if (closes)
		disconnect(client);
	return r;
}

/* Reads the head of an answer: its end, or NULL and *ret_r. Some of the body may be there as well. */
static char *read_head(struct http_client *client, int *ret_r)
{
	client->answer_len = 0;
	client->answer[0] = '\0';
	for (;;) {
		char *end = strstr(client->answer, "\r\n\r\n");
		ssize_t n;

		if (end) {
			client->status = atoi(client->answer + strcspn(client->answer, " "));
			client->body_start = (size_t)(end - client->answer) + 4;
			client->body_len = client->answer_len - client->body_start;
			return end + 2;
		}
		n = read_more(client);
		if (n <= 0) {
			*ret_r = n < 0 ? (int)n : -EPIPE;
			return NULL;
		}
	}
}

static int read_answer(struct http_client *client)
{
	int r = 0;
	char *end = read_head(client, &r);

	return end ? read_body(client, client->answer, end) : r;
}

/* `extra` is header lines, each with its CRLF. */
static int send_request(struct http_client *client, const char *method, const char *path,
	const char *body, const char *extra)
{
	char request[REQUEST_MAX];
	int len, r = http_connect(client);

	if (r < 0)
		return r;
	len = snprintf(request, sizeof(request),
		"%s %s HTTP/1.1\r\nHost: %s\r\n%s%s%sContent-Length: %zu\r\n\r\n%s", method, path,
		strncmp(client->target->address, "unix:", 5) == 0 ? "localhost"
								  : client->target->address,
		client->target->header, extra, body[0] ? "Content-Type: application/json\r\n" : "",
		strlen(body), body);
	if (len >= (int)sizeof(request))
		return -EMSGSIZE;
	return send_all(client->fd, request, (size_t)len);
}

int http_call(struct http_client *client, const char *method, const char *path, const char *body)
{
	int r = send_request(client, method, path, body, "");

	if (r == 0)
		r = read_answer(client);
	if (r < 0)
		disconnect(client);
	return r;
}

int http_drain(struct http_client *client, const char *method, const char *path, const char *body,
	uint64_t *ret_bytes)
{
	static char space[256 * 1024];
	int r = send_request(client, method, path, body, "Connection: close\r\n");
	uint64_t bytes;
	ssize_t n;

	if (r == 0 && read_head(client, &r)) {
		bytes = client->body_len;
		while ((n = recv(client->fd, space, sizeof(space), 0)) > 0 ||
			(n < 0 && errno == EINTR))
			bytes += n > 0 ? (uint64_t)n : 0;
		r = n < 0 ? -errno : 0;
		if (r == 0)
			*ret_bytes = bytes;
	}
	disconnect(client);
	return r;
}

int http_upgrade(struct http_client *client, const char *method, const char *path, const char *body,
	const char *protocol)
{
	char extra[256];
	int r;

	snprintf(extra, sizeof(extra), "Connection: Upgrade\r\nUpgrade: %s\r\n%s", protocol,
		strcmp(protocol, "websocket") == 0
			? "Sec-WebSocket-Version: 13\r\n"
			  "Sec-WebSocket-Protocol: pty.v1\r\n"
			  "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
			: "");
	r = send_request(client, method, path, body, extra);
	if (r == 0 && read_head(client, &r) && client->status != 101)
		r = -EPROTO;
	if (r < 0)
		disconnect(client);
	return r;
}

void http_find_id(const struct http_client *client, char *ret_id, size_t len)
{
	const char *body = client->answer + client->body_start;
	const char *at = memmem(body, client->body_len, "\"id\":\"", 6);
	size_t n;

	ret_id[0] = '\0';
	if (!at)
		at = memmem(body, client->body_len, "\"Id\":\"", 6);
	if (!at)
		return;
	at += 6;
	n = strcspn(at, "\"");
	if (n < len) {
		memcpy(ret_id, at, n);
		ret_id[n] = '\0';
	}
}
