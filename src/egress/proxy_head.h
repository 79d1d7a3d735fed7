/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head of a request to a proxy: CONNECT for a tunnel, or a plain request with the whole URL in its
 * first line. Read strictly, because what comes after is judged by what this says.
 */
#pragma once

#include "base/buf.h"
#include "model/egress_rule.h"

#define PROXY_HEAD_MAX 16384

struct proxy_head {
	bool is_connect;
	bool is_address; /* it names an address, not a name */
	struct in_addr address;
	char name[EGRESS_NAME_MAX];
	uint16_t port;
	size_t len; /* of the head, with its empty line */

	size_t method_len; /* for proxy_head_write: parts of the bytes it was read from */
	size_t host_at, host_len;
	size_t path_at, path_len;
	size_t version_at; /* with the space before it */
	size_t fields_at;
};

/* 1: a whole head. 0: more bytes are needed. -EBADMSG: not a request that a proxy serves. */
int proxy_head_read(const char *data, size_t len, struct proxy_head *ret_head) must_check;

/*
 * Writes the head of a plain request as its server wants it: the path alone, the Host that was judged,
 * nothing that is meant for proxies. The connection is for this one request.
 */
void proxy_head_write(const char *data, const struct proxy_head *head, struct buf *out);
