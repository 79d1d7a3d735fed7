/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The opening of a WebSocket (RFC 6455, 4.1 and 4.2): the request as text, and the strict reading of
 * the answer. No I/O.
 */
#pragma once

#include "base/buf.h"
#include "cli/remote/client.h"

#define UPGRADE_KEY_LEN	    24
#define UPGRADE_REQUEST_MAX (16u * 1024)
#define UPGRADE_HEAD_MAX    (16u * 1024)

enum upgrade_state {
	UPGRADE_MORE,	 /* the head is not whole yet */
	UPGRADE_DONE,	 /* what follows the head are frames */
	UPGRADE_REFUSED, /* what follows the head is an error document */
};

struct upgrade_answer {
	long status;
	size_t head_len;
	size_t body_len; /* as promised; 0 if nothing was */
};

/* Appends the request with a fresh key, which it returns too. */
int upgrade_request(const struct client *client, const char *path, const char *protocol,
	char ret_key[UPGRADE_KEY_LEN + 1], struct buf *request, struct err *err) must_check;

/* An upgrade_state, or -EPROTO for an answer that is neither an upgrade nor a refusal. */
int upgrade_parse(const char *bytes, size_t len, const char *key, const char *protocol,
	struct upgrade_answer *ret) must_check;
