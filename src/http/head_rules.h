/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the head of a request may look like, for every listener: the API's (http/server/route/headers.h,
 * http/server/route/guard.h), that of previews (proxy/message/request_check.h), and the proxies of sandboxes
 * (egress/connection/proxy_head.h, egress/secret/secret_proxy.h). What two parsers might read in two ways is refused, so
 * that nobody smuggles a request past one of them in what the other takes for a body.
 *
 * The rules are stricter than RFC 9112: no known client sends what they refuse.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define HEAD_RULES_HOST_MAX 300

/* Three words with one space between them, and no control character. */
bool head_rules_is_request_line(const char *line, size_t len);

/* HTTP/1.0 and HTTP/1.1. */
bool head_rules_is_version(unsigned major, unsigned minor);

/* A token, and no control character but the tabulator. */
bool head_rules_is_name(const char *name, size_t len);
bool head_rules_is_value(const char *value, size_t len);

/* The length of a value without the space behind it. Fields that delimit a body may have none: it counts. */
size_t head_rules_value_len(const char *name, size_t name_len, const char *value, size_t len);

/* What a Host may be made of; a request has one. (The API knows its own by name and refuses all others.) */
bool head_rules_is_host(const char *host, size_t len);

/* How a request says where its body ends. */
struct head_framing {
	bool is_old;			     /* HTTP/1.0 */
	unsigned coding_count, length_count; /* fields Transfer-Encoding and Content-Length */
	const char *coding, *length;	     /* their values; NULL: none */
};

/* What is doubtful about it, for people; NULL if nothing is. */
const char *head_rules_framing_fault(const struct head_framing *framing);
