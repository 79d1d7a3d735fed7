/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The secret proxy adds a secret to requests on their way out. A client in a sandbox speaks plain
 * HTTP/1.1. Each request is parsed (http/message.h), written anew with the secret for the one
 * server that the secret is for, and sent there, over TLS if its URL says so. Answers come back
 * unchanged; the client follows redirects itself, without the secret.
 *
 * The connection to the server belongs to this client's connection and ends with it, so that
 * nothing which one sandbox sends can become a part of what another gets. The sockets belong to the
 * egress_conn.
 */
#pragma once

#include "egress/egress_private.h"
#include "egress/secret/secret_cache.h"

#define SECRET_PROXIES_MAX 64 /* of one sandbox: their buffers are the daemon's memory */

struct secret_proxy;

enum secret_proxy_result {
	SECRET_PROXY_WAITS,  /* for one of the sockets */
	SECRET_PROXY_MORE,   /* the budget is used up */
	SECRET_PROXY_OVER,   /* both sides are done */
	SECRET_PROXY_BROKEN, /* to be reset: the client must not take a part for the whole */
	SECRET_PROXY_REFUSED, /* the client gets secret_proxy_refusal(); nothing was sent to it yet */
};

/* For a client that calls the server `inside` and has sent these bytes; takes the secret over. */
struct secret_proxy *secret_proxy_new(struct sandbox_egress *sandbox,
	const struct authority *inside, const struct secret_cache_secret *secret, const void *sent,
	size_t len);
void secret_proxy_free(struct secret_proxy *proxy);

const struct secret_cache_secret *secret_proxy_secret(const struct secret_proxy *proxy);

/* Sets the two connected sockets. */
int secret_proxy_connect(struct secret_proxy *proxy, int client_fd, int server_fd) must_check;

/* Moves up to `budget` bytes; counts bytes sent to and received from the server. */
struct secret_proxy_turn {
	size_t budget;
	size_t sent, received;
};

enum secret_proxy_result secret_proxy_move(
	struct secret_proxy *proxy, struct secret_proxy_turn *turn);

/* Whether the TLS handshake with the server is under way. */
bool secret_proxy_in_handshake(const struct secret_proxy *proxy);

/* Whether the client has closed its sending side. It may still read. */
bool secret_proxy_is_half_open(const struct secret_proxy *proxy);

/* Status and text of the refusal. */
void secret_proxy_refusal(
	const struct secret_proxy *proxy, const char **ret_status, const char **ret_text);
