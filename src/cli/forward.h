/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection that somebody made to a local port, carried to a port of a sandbox: a WebSocket whose binary
 * frames are its bytes, and whose text frame {"type":"end"} is the end of one direction.
 */
#pragma once

#include "base/err.h"
#include "cli/remote/client.h"

/*
 * Carries it until both directions have ended. Takes over sock, a connected socket; whatever goes wrong, and if
 * the connection inside is reset, resets it. -ECONNRESET, with err unset, if a side just broke off.
 */
int forward_run(struct client *client, const char *sandbox, unsigned port, int sock,
	struct err *err) must_check;
