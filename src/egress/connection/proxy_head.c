/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/connection/proxy_head.h"

#include "http/head_rules.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define HTTP_PORT 80

static int read_authority(uint16_t default_port, struct proxy_head *head)
{
	struct slice text = head->authority;

	return authority_read(text.at, text.len, default_port, &head->at) < 0 ? -EBADMSG : 0;
}

static int read_url(struct slice url, struct proxy_head *head)
{
	static const char scheme[] = "http://";
	size_t at = sizeof(scheme) - 1, end = at;

	if (url.len < at || strncasecmp(url.at, scheme, at) != 0)
		return -EBADMSG;
	while (end < url.len && !strchr("/?#", url.at[end]))
		end++;
	head->authority = (struct slice){url.at + at, end - at};
	head->path = (struct slice){url.at + end, url.len - end};
	return read_authority(HTTP_PORT, head);
}

int proxy_head_read(const struct message *request, struct proxy_head *ret_head)
{
	struct proxy_head head = {.is_connect = message_asks(request, "CONNECT")};
	int r;

	if (!head_rules_is_version(request->version_major, request->version_minor) ||
		message_framing_fault(request))
		return -EBADMSG;
	for (size_t i = 0; i < request->target.len; i++) {
		if ((unsigned char)request->target.at[i] <= ' ' ||
			(unsigned char)request->target.at[i] >= 0x7f)
			return -EBADMSG;
	}
	head.authority = request->target;
	r = head.is_connect ? read_authority(0, &head) : read_url(request->target, &head);
	if (r == 0)
		*ret_head = head;
	return r;
}

static bool is_for_this_hop(const struct message *request, struct slice name)
{
	static const char *const names[] = {"Host", "Connection", "Keep-Alive", "Proxy-Connection",
		"Proxy-Authorization", "TE", "Upgrade"};
	char text[64];

	for (size_t i = 0; i < array_len(names); i++) {
		if (slice_is_like(name, names[i]))
			return true;
	}
	/* A client must not remove the length of the body. */
	if (name.len >= sizeof(text) || slice_is_like(name, "Content-Length") ||
		slice_is_like(name, "Transfer-Encoding"))
		return false;
	memcpy(text, name.at, name.len);
	text[name.len] = '\0';
	return message_lists(request, "Connection", text);
}

void proxy_head_forward(const struct message *request, const char *base, struct slice path,
	const char *host, const char *replaced, struct buf *out)
{
	bool has_slash = path.len > 0 && path.at[0] == '/';

	buf_printf(out, "%s %s%s", request->method, base, has_slash ? "" : "/");
	buf_append(out, path.at, path.len);
	buf_printf(out, " HTTP/1.%u\r\nHost: %s\r\n", request->version_minor, host);
	for (size_t i = 0; i < request->field_count; i++) {
		const struct message_field *field = &request->fields[i];

		if (is_for_this_hop(request, field->name) ||
			(replaced && slice_is_like(field->name, replaced)))
			continue;
		buf_append(out, field->name.at, field->name.len);
		buf_append_str(out, ": ");
		buf_append(out, field->value.at, field->value.len);
		buf_append_str(out, "\r\n");
	}
}

void proxy_head_write(const struct message *request, const struct proxy_head *head, struct buf *out)
{
	char host[EGRESS_NAME_MAX + 8];

	snprintf(host, sizeof(host), "%.*s", (int)head->authority.len, head->authority.at);
	proxy_head_forward(request, "", head->path, host, NULL, out);
	buf_append_str(out, "Connection: close\r\n\r\n");
}
