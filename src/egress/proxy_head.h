/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a request asks a proxy for: CONNECT for a tunnel, or a plain request with the whole URL in its
 * first line. Read strictly, because what comes after is judged by what this says.
 */
#pragma once

#include "http/message.h"
#include "model/authority.h"

struct proxy_head {
	bool is_connect;
	struct authority at;
	struct slice authority; /* as it was written; these are parts of the request */
	struct slice path;	/* with its query; may be empty, or begin with one */
};

/* -EBADMSG: not a request that a proxy serves. */
int proxy_head_read(const struct message *request, struct proxy_head *ret_head) must_check;

/* Appends the head of the plain request for the server itself, which is to close after its answer. */
void proxy_head_write(
	const struct message *request, const struct proxy_head *head, struct buf *out);

/*
 * Appends the first line for a server, and the fields of a request that are not only for the hop before:
 * without Host, and without `replaced` (NULL: none). The empty line is the caller's to add.
 */
void proxy_head_forward(const struct message *request, const char *base, struct slice path,
	const char *host, const char *replaced, struct buf *out);
