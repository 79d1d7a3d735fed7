/* SPDX-License-Identifier: Apache-2.0 */
#include "api/preview/preview_target.h"

#include "base/number.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define PORT_DIGITS 5

/* What follows a prefix must not make another word of it. */
static bool is_cut(char byte)
{
	return byte == '\0' || byte == '/' || byte == '?';
}

static const char *skip(const char *path, const char *word)
{
	return path && strncmp(path, word, strlen(word)) == 0 ? path + strlen(word) : NULL;
}

/* Reads "<id or name>" and more; the rest, or NULL. */
static const char *read_id(const char *path, char id[SANDBOX_NAME_MAX])
{
	size_t len = strcspn(path, "/?");

	if (len >= SANDBOX_NAME_MAX)
		return NULL;
	memcpy(id, path, len);
	id[len] = '\0';
	return id_is_valid(id) || sandbox_name_is_valid(id) ? path + len : NULL;
}

/* Reads "<port>" and more; the rest, or NULL. */
static const char *read_port(const char *path, uint16_t *port)
{
	size_t len = strspn(path, "0123456789");
	char text[PORT_DIGITS + 1];
	uint64_t number;

	if (len == 0 || len > PORT_DIGITS || path[0] == '0')
		return NULL;
	memcpy(text, path, len);
	text[len] = '\0';
	if (number_parse(text, 1, 65535, &number) < 0)
		return NULL;
	*port = (uint16_t)number;
	return path + len;
}

int preview_target_parse_path(const char *path, struct preview_target *ret_target)
{
	struct preview_target target = {0};
	const char *rest = skip(path, "/v1/sandboxes/");
	bool has_port = rest != NULL;

	if (!rest)
		rest = skip(path, "/api/sandbox/sessions/");
	rest = rest ? skip(read_id(rest, target.id), has_port ? "/preview/" : "/preview") : NULL;
	if (!rest)
		return -ENOENT;
	if (has_port)
		rest = read_port(rest, &target.port);
	if (!rest || !is_cut(*rest))
		return -EINVAL;
	target.prefix = (struct slice){path, (size_t)(rest - path)};
	*ret_target = target;
	return 0;
}

/* Whether a host is that name with the listener's port, or without where browsers leave it out. */
static bool is_name(const char *name, const struct listener *listener, const char *host)
{
	char own[LISTENER_HOST_MAX + 8];

	snprintf(own, sizeof(own), "%s:%u", name, listener->port);
	return strcasecmp(host, own) == 0 ||
	       (listener_has_default_port(listener) && strcasecmp(host, name) == 0);
}

static bool is_own_host(const char *domain, const struct listener *listener, const char *host)
{
	return preview_name_is_domain(host, domain) || is_name(listener->host, listener, host) ||
	       is_name("localhost", listener, host);
}

int preview_target_find(const char *domain, const struct listener *listener,
	const struct proxy_visit *visit, struct preview_target *ret_target)
{
	struct preview_target target = {0};
	int r = preview_name_parse(visit->host, domain, target.id, &target.port);

	if (r == -EINVAL)
		r = preview_name_parse_frame(visit->host, domain, target.frame);
	if (r == -ENOENT && is_own_host(domain, listener, visit->host))
		r = preview_target_parse_path(visit->target, &target);
	if (r == 0)
		*ret_target = target;
	return r;
}

/* The path of an address on that host, or NULL. It may say https where a proxy in front does. */
static const char *path_on(const char *host, const char *address)
{
	const char *rest = skip(address, "http://");

	if (!rest)
		rest = skip(address, "https://");
	if (!rest || strncasecmp(rest, host, strlen(host)) != 0)
		return NULL;
	rest += strlen(host);
	return *rest == '/' ? rest : NULL;
}

int preview_target_find_stray(const char *domain, const struct listener *listener,
	const struct proxy_visit *visit, struct slice *ret_prefix)
{
	const char *path = path_on(visit->host, visit->referer);
	struct preview_target target;

	if (!path || !is_own_host(domain, listener, visit->host) ||
		preview_target_parse_path(visit->target, &target) != -ENOENT ||
		preview_target_parse_path(path, &target) < 0)
		return -ENOENT;
	*ret_prefix = target.prefix;
	return 0;
}
