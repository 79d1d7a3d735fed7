/* SPDX-License-Identifier: Apache-2.0 */
#include "http_client.h"

#include "base/fd.h"
#include "base/mem.h"
#include "deadline.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

int client_connect(uint16_t port)
{
	return client_connect_from("127.0.0.1", port);
}

int client_connect_from(const char *from, uint16_t port)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(inet_pton(AF_INET, from, &address.sin_addr), 1);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	address.sin_port = htons(port);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(fd_set_timeout(fd, DEADLINE_MS), 0);
	return fd;
}

void client_send(int fd, const void *data, size_t len)
{
	assert_int_equal(fd_write_full(fd, data, len), 0);
}

void client_print(int fd, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vasprintf(&text, fmt, ap);
	va_end(ap);
	assert_true(len >= 0);
	client_send(fd, text, (size_t)len);
	free(text);
}

void client_request(int fd, uint16_t port, const char *line, const char *extra, const char *body)
{
	char length[64] = "";

	if (body)
		snprintf(length, sizeof(length), "Content-Length: %zu\r\n", strlen(body));
	client_print(fd, "%s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n%s%s\r\n%s", line, port,
		extra ? extra : "", length, body ? body : "");
}

/* Reads up to the empty line, one byte after the other: what follows belongs to the body. */
static bool read_head(int fd, struct reply *reply)
{
	size_t len = 0;

	while (len < sizeof(reply->head) - 1) {
		if (recv(fd, reply->head + len, 1, 0) != 1)
			return false;
		reply->head[++len] = '\0';
		if (len >= 4 && memcmp(reply->head + len - 4, "\r\n\r\n", 4) == 0)
			return true;
	}
	return false;
}

static bool read_more(int fd, struct reply *reply, size_t want)
{
	if (reply->len + want >= reply->room) {
		reply->room = 2 * (reply->len + want) + 1;
		reply->body = realloc(reply->body, reply->room);
		assert_non_null(reply->body);
	}
	while (want > 0) {
		ssize_t n = recv(fd, reply->body + reply->len, want, 0);

		if (n <= 0)
			return false;
		reply->len += (size_t)n;
		reply->body[reply->len] = '\0';
		want -= (size_t)n;
	}
	return true;
}

static bool read_chunks(int fd, struct reply *reply)
{
	for (;;) {
		char line[32] = "";
		size_t at = 0, size;
		char end[2];

		do {
			if (recv(fd, line + at, 1, 0) != 1)
				return false;
		} while (line[at++] != '\n' && at < sizeof(line) - 1);
		size = strtoul(line, NULL, 16);
		if (size > 0 && !read_more(fd, reply, size))
			return false;
		if (recv(fd, end, 2, MSG_WAITALL) != 2)
			return false;
		if (size == 0)
			return true;
	}
}

void client_receive(int fd, struct reply *reply, bool has_body)
{
	char value[256];

	do {
		*reply = (struct reply){.body = mem_strdup("")};
		if (!read_head(fd, reply))
			return;
		assert_int_equal(sscanf(reply->head, "HTTP/1.1 %d", &reply->status), 1);
		if (reply->status == 100)
			free(reply->body);
	} while (reply->status == 100);
	if (!has_body || reply->status == 204 || reply->status == 304) {
		reply->whole = true;
	} else if (reply_header(reply, "Content-Length", value)) {
		reply->whole = read_more(fd, reply, strtoul(value, NULL, 10));
	} else if (reply_header(reply, "Transfer-Encoding", value)) {
		reply->whole = read_chunks(fd, reply);
	} else {
		while (read_more(fd, reply, 1))
			continue;
		reply->whole = true;
	}
}

void client_call(
	uint16_t port, const char *line, const char *extra, const char *body, struct reply *reply)
{
	int fd = client_connect(port);

	client_request(fd, port, line, extra, body);
	client_receive(fd, reply, strncmp(line, "HEAD ", 5) != 0);
	close(fd);
}

const char *reply_header(const struct reply *reply, const char *name, char value[256])
{
	const char *line = reply->head;
	size_t len = strlen(name);

	while ((line = strstr(line, "\r\n"))) {
		line += 2;
		if (strncasecmp(line, name, len) == 0 && line[len] == ':') {
			line += len + 1;
			line += strspn(line, " ");
			snprintf(value, 256, "%.*s", (int)strcspn(line, "\r"), line);
			return value;
		}
	}
	return NULL;
}

void reply_fini(struct reply *reply)
{
	free(reply->body);
	reply->body = NULL;
}

bool client_sees_close(int fd)
{
	char dropped[4096];
	ssize_t n;

	do
		n = recv(fd, dropped, sizeof(dropped), 0);
	while (n > 0);
	return n == 0 || errno == ECONNRESET;
}
