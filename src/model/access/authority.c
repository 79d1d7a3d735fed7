/* SPDX-License-Identifier: Apache-2.0 */
#include "model/access/authority.h"

#include "base/number.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ":port", or nothing. */
static int read_port(const char *text, size_t len, uint16_t default_port, uint16_t *ret_port)
{
	uint64_t number = default_port;
	char port[6];

	if (len > 0) {
		if (text[0] != ':' || len > sizeof(port))
			return -EINVAL;
		memcpy(port, text + 1, len - 1);
		port[len - 1] = '\0';
		if (number_parse(port, 1, 65535, &number) < 0)
			return -EINVAL;
	}
	*ret_port = (uint16_t)number;
	return number == 0 ? -EINVAL : 0;
}

/* In brackets IPv6 alone, without them IPv4 or a name. */
static int read_host(const char *text, size_t len, struct authority *authority)
{
	bool has_brackets = len >= 2 && text[0] == '[' && text[len - 1] == ']';
	char host[EGRESS_NAME_MAX];

	if (has_brackets) {
		text++;
		len -= 2;
	}
	if (len == 0 || len >= sizeof(host) || memchr(text, '\0', len))
		return -EINVAL;
	memcpy(host, text, len);
	host[len] = '\0';
	if (has_brackets)
		return strchr(host, ':') ? address_parse(host, &authority->address) : -EINVAL;
	if (!strchr(host, ':') && address_parse(host, &authority->address) == 0)
		return 0;
	return egress_name_read(host, len, authority->name);
}

int authority_read(
	const char *text, size_t len, uint16_t default_port, struct authority *ret_authority)
{
	const char *end = len > 0 && text[0] == '[' ? memchr(text, ']', len) : NULL;
	const char *colon = memchr(text, ':', len);
	size_t host_len = end ? (size_t)(end - text) + 1 : colon ? (size_t)(colon - text) : len;
	struct authority authority = {0};

	if (read_host(text, host_len, &authority) < 0 ||
		read_port(text + host_len, len - host_len, default_port, &authority.port) < 0)
		return -EINVAL;
	*ret_authority = authority;
	return 0;
}

void authority_format(
	const struct authority *authority, uint16_t usual_port, char text[AUTHORITY_TEXT_MAX])
{
	bool has_brackets = !authority->name[0] && !address_is_v4(authority->address);
	char address[ADDRESS_TEXT_MAX], host[EGRESS_NAME_MAX];

	address_format(authority->address, address);
	snprintf(host, sizeof(host), "%s%s%s", has_brackets ? "[" : "",
		authority->name[0] ? authority->name : address, has_brackets ? "]" : "");
	if (authority->port == usual_port)
		snprintf(text, AUTHORITY_TEXT_MAX, "%s", host);
	else
		snprintf(text, AUTHORITY_TEXT_MAX, "%s:%u", host, authority->port);
}

bool authority_equals(const struct authority *one, const struct authority *other)
{
	return one->port == other->port && strcmp(one->name, other->name) == 0 &&
	       (one->name[0] || address_equals(one->address, other->address));
}
