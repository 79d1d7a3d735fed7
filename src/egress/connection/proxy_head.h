/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads what a request asks a proxy for: a tunnel (CONNECT), or a plain request with the whole URL
 * in its first line. It reads strictly, because the policy is applied to what it finds.
 */
#pragma once

#include "http/message.h"
#include "model/access/authority.h"

struct proxy_head {
	bool is_connect;
	struct authority at;
	struct slice authority; /* as it was written; a part of the request, as is path */
	struct slice path;	/* with its query; may be empty, or begin with one */
};

/* -EBADMSG: not a request that a proxy serves. */
int proxy_head_read(const struct message *request, struct proxy_head *ret_head) must_check;

/*
 * Appends the head of the plain request as the server gets it; the server is told to close after
 * its answer.
 */
void proxy_head_write(
	const struct message *request, const struct proxy_head *head, struct buf *out);

/*
 * Appends the first line for a server, and the end-to-end fields of a request, without Host and
 * without `replaced` (NULL: none). The caller adds the empty line.
 */
void proxy_head_forward(const struct message *request, const char *base, struct slice path,
	const char *host, const char *replaced, struct buf *out);
