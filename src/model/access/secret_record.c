/* SPDX-License-Identifier: Apache-2.0 */
#include "model/access/secret_record.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

bool secret_name_is_valid(const char *name)
{
	size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");

	return len > 0 && len < SECRET_NAME_MAX && !name[len] && name[0] != '-' &&
	       name[len - 1] != '-';
}

bool secret_header_is_valid(const char *header)
{
	static const char *const refused[] = {"Connection", "Content-Length", "Expect", "Host",
		"Keep-Alive", "Proxy-Authorization", "Proxy-Connection", "TE", "Trailer",
		"Transfer-Encoding", "Upgrade"};
	size_t len = 0;

	while (isalnum((unsigned char)header[len]) ||
		(header[len] && strchr("!#$%&'*+-.^_`|~", header[len])))
		len++;
	for (size_t i = 0; i < array_len(refused); i++) {
		if (strcasecmp(refused[i], header) == 0)
			return false;
	}
	return len > 0 && len < SECRET_HEADER_MAX && !header[len];
}

static bool is_printable(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (text[i] < ' ' || text[i] > '~')
			return false;
	}
	return true;
}

bool secret_prefix_is_valid(const char *prefix)
{
	return strlen(prefix) < SECRET_PREFIX_MAX && is_printable(prefix, strlen(prefix)) &&
	       prefix[0] != ' ';
}

bool secret_value_is_valid(const char *value, size_t len)
{
	return len > 0 && len <= SECRET_VALUE_MAX && is_printable(value, len) && value[0] != ' ' &&
	       value[len - 1] != ' ';
}

/* A dot at text, be it encoded; its length, or 0. */
static size_t dot_at(const char *text, size_t len)
{
	if (len >= 1 && text[0] == '.')
		return 1;
	return len >= 3 && strncasecmp(text, "%2e", 3) == 0 ? 3 : 0;
}

/* What some servers take for the end of a segment. */
static size_t separator_at(const char *text, size_t len)
{
	if (len >= 1 && strchr("/\\;", text[0]))
		return 1;
	return len >= 3 && (strncasecmp(text, "%2f", 3) == 0 || strncasecmp(text, "%5c", 3) == 0)
		       ? 3
		       : 0;
}

bool secret_path_has_steps(const char *path, size_t len)
{
	size_t at = 0;

	while (at < len && path[at] != '?') {
		size_t step = separator_at(path + at, len - at), dots = 0, dot;

		if (step == 0) {
			at++;
			continue;
		}
		at += step;
		while ((dot = dot_at(path + at, len - at)) > 0) {
			at += dot;
			dots++;
		}
		if ((dots == 1 || dots == 2) && (at == len || strchr("?#", path[at]) ||
							separator_at(path + at, len - at) > 0))
			return true;
	}
	return false;
}

int secret_server_read(const char *url, struct secret_server *ret_server)
{
	struct secret_server server = {.is_tls = strncmp(url, "https://", 8) == 0};
	const uint16_t usual_port = server.is_tls ? 443 : 80;
	size_t len = strlen(url), path_len;
	const char *host = url + (server.is_tls ? 8 : 7), *path;

	if ((!server.is_tls && strncmp(url, "http://", 7) != 0) || len >= SECRET_URL_MAX ||
		strpbrk(url, "?#@\\ ") || !is_printable(url, len))
		return -EINVAL;
	path = host + strcspn(host, "/");
	path_len = strlen(path);
	if (secret_path_has_steps(path, path_len) ||
		authority_read(host, (size_t)(path - host), usual_port, &server.at) < 0)
		return -EINVAL;
	authority_format(&server.at, usual_port, server.host);
	while (path_len > 0 && path[path_len - 1] == '/')
		path_len--;
	memcpy(server.path, path, path_len);
	*ret_server = server;
	return 0;
}
