/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/proxy_head.h"

#include "base/number.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define METHOD_MAX 32
#define HTTP_PORT  80

/* "host" or "host:port"; no user, no brackets. */
static int read_authority(
	const char *text, size_t len, uint16_t default_port, struct proxy_head *head)
{
	const char *colon = memchr(text, ':', len);
	size_t host_len = colon ? (size_t)(colon - text) : len;
	char host[EGRESS_NAME_MAX], port[6];
	uint64_t number = default_port;

	if (colon) {
		size_t port_len = len - host_len - 1;

		if (port_len >= sizeof(port))
			return -EBADMSG;
		memcpy(port, colon + 1, port_len);
		port[port_len] = '\0';
		if (number_parse(port, 1, 65535, &number) < 0)
			return -EBADMSG;
	}
	if (number == 0 || host_len == 0 || host_len >= sizeof(host))
		return -EBADMSG;
	memcpy(host, text, host_len);
	host[host_len] = '\0';
	head->port = (uint16_t)number;
	head->is_address =
		strlen(host) == host_len && inet_pton(AF_INET, host, &head->address) == 1;
	if (!head->is_address && egress_name_read(text, host_len, head->name) < 0)
		return -EBADMSG;
	return 0;
}

static int read_url(const char *data, size_t at, size_t end, struct proxy_head *head)
{
	static const char scheme[] = "http://";
	size_t len = sizeof(scheme) - 1;

	if (end - at < len || strncasecmp(data + at, scheme, len) != 0)
		return -EBADMSG;
	head->host_at = at + len;
	for (head->path_at = head->host_at; head->path_at < end; head->path_at++) {
		if (strchr("/?#", data[head->path_at]))
			break;
	}
	head->host_len = head->path_at - head->host_at;
	head->path_len = end - head->path_at;
	return read_authority(data + head->host_at, head->host_len, HTTP_PORT, head);
}

/* METHOD TARGET HTTP/1.x, one space between. */
static int read_request_line(const char *data, size_t len, struct proxy_head *head)
{
	static const char version[] = " HTTP/1.";
	size_t version_at = len - (sizeof(version) - 1) - 1, target_at;
	const char *space = memchr(data, ' ', len);

	if (!space || len < sizeof(version) || (size_t)(space - data) >= version_at ||
		memcmp(data + version_at, version, sizeof(version) - 1) != 0 ||
		!strchr("01", data[len - 1]))
		return -EBADMSG;
	head->method_len = (size_t)(space - data);
	if (head->method_len < 1 || head->method_len > METHOD_MAX)
		return -EBADMSG;
	for (size_t i = 0; i < head->method_len; i++) {
		if (!isupper((unsigned char)data[i]) && data[i] != '-')
			return -EBADMSG;
	}
	head->version_at = version_at;
	target_at = head->method_len + 1;
	for (size_t i = target_at; i < version_at; i++) {
		if ((unsigned char)data[i] <= ' ' || (unsigned char)data[i] >= 0x7f)
			return -EBADMSG;
	}
	head->is_connect = head->method_len == 7 && memcmp(data, "CONNECT", 7) == 0;
	if (head->is_connect)
		return read_authority(data + target_at, version_at - target_at, 0, head);
	return read_url(data, target_at, version_at, head);
}

/* "Name: value", no folding, no bytes that end a line for some readers and not for others. */
static bool is_field(const char *line, size_t len)
{
	const char *colon = memchr(line, ':', len);

	if (!colon || colon == line)
		return false;
	for (const char *c = line; c < colon; c++) {
		if (!isalnum((unsigned char)*c) && !strchr("!#$%&'*+-.^_`|~", *c))
			return false;
	}
	for (const char *c = colon; c < line + len; c++) {
		if (iscntrl((unsigned char)*c) && *c != '\t')
			return false;
	}
	return true;
}

/* The length of the line at data, without its end; -1 if it has none yet. */
static ssize_t line_length(const char *data, size_t len)
{
	const char *end = memmem(data, len, "\r\n", 2);

	return end ? end - data : -1;
}

int proxy_head_read(const char *data, size_t len, struct proxy_head *ret_head)
{
	struct proxy_head head = {0};
	const char *end = memmem(data, len, "\r\n\r\n", 4);
	size_t at;
	ssize_t line;

	if (!end)
		return len >= PROXY_HEAD_MAX || memchr(data, '\0', len) ? -EBADMSG : 0;
	head.len = (size_t)(end - data) + 4;
	line = line_length(data, head.len);
	if (read_request_line(data, (size_t)line, &head) < 0)
		return -EBADMSG;
	head.fields_at = at = (size_t)line + 2;
	while (at < head.len - 2) {
		line = line_length(data + at, head.len - at);
		if (!is_field(data + at, (size_t)line))
			return -EBADMSG;
		at += (size_t)line + 2;
	}
	*ret_head = head;
	return 1;
}

static bool is_dropped(const char *line, size_t len)
{
	static const char *const names[] = {"Host:", "Connection:", "Keep-Alive:",
		"Proxy-Connection:", "Proxy-Authorization:", "TE:", "Upgrade:"};

	for (size_t i = 0; i < array_len(names); i++) {
		if (len >= strlen(names[i]) && strncasecmp(line, names[i], strlen(names[i])) == 0)
			return true;
	}
	return false;
}

void proxy_head_write(const char *data, const struct proxy_head *head, struct buf *out)
{
	bool has_slash = head->path_len > 0 && data[head->path_at] == '/';

	buf_append(out, data, head->method_len);
	buf_append_str(out, has_slash ? " " : " /");
	buf_append(out, data + head->path_at, head->path_len);
	buf_append(out, data + head->version_at, head->fields_at - head->version_at);
	buf_append_str(out, "Host: ");
	buf_append(out, data + head->host_at, head->host_len);
	buf_append_str(out, "\r\nConnection: close\r\n");
	for (size_t at = head->fields_at; at < head->len - 2;) {
		size_t line = (size_t)line_length(data + at, head->len - at) + 2;

		if (!is_dropped(data + at, line))
			buf_append(out, data + at, line);
		at += line;
	}
	buf_append_str(out, "\r\n");
}
