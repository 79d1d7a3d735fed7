/* SPDX-License-Identifier: Apache-2.0 */
/* What turns an HTTP request into a WebSocket (RFC 6455, 4.2): from the headers alone. */
#pragma once

#include "base/err.h"
#include "http/server/route/headers.h"

#include <stdbool.h>

#define HANDSHAKE_ACCEPT_LEN 28
#define HANDSHAKE_VERSION    "13"

struct handshake {
	char accept[HANDSHAKE_ACCEPT_LEN + 1]; /* for Sec-WebSocket-Accept */
	bool has_protocols;		       /* the client offers some, among them ours */
};

/*
 * Reads the headers of a GET over HTTP/1.1. ERR_UPGRADE if they do not ask for a WebSocket of the one
 * version there is, ERR_INVALID if they do it wrongly or do not offer `protocol` (NULL for none).
 */
int handshake_read(const struct headers *headers, const char *protocol, struct handshake *ret,
	struct err *err) must_check;
