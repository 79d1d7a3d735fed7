/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that are given a secret on their way. A client in a sandbox speaks plain HTTP/1.1; each request
 * is taken apart (http/message.h), written anew for the one server that the secret is for, with the
 * secret in it, and sent there, over TLS if its URL says so. Answers come back as they are; a redirect is
 * the client's to follow, without the secret.
 *
 * The server's connection is this client's alone and lives as long as its own, so that nothing which one
 * sandbox sends can become a part of what another gets. The sockets belong to the flow.
 */
#pragma once

#include "egress/egress_private.h"
#include "egress/vault.h"

#define ERRANDS_MAX 64 /* of one sandbox: their buffers are the daemon's memory */

struct errand;

enum errand_result {
	ERRAND_WAITS,	/* for one of the sockets */
	ERRAND_MORE,	/* the budget is used up */
	ERRAND_OVER,	/* all was said */
	ERRAND_BROKEN,	/* the client must not take what came for the whole */
	ERRAND_REFUSED, /* it is to be told errand_refusal(); nothing was sent to it meanwhile */
};

/* For a client that calls the server `inside`, with the bytes that it has sent; takes the secret over. */
struct errand *errand_new(struct sluice *sluice, const struct authority *inside,
	const struct vault_secret *secret, const void *sent, size_t len);
void errand_free(struct errand *errand);

const struct vault_secret *errand_secret(const struct errand *errand);

/* Both sockets are there. */
int errand_connect(struct errand *errand, int client_fd, int server_fd) must_check;

/* Moves what can be moved, up to *budget bytes, which are counted as sent to and received from the server. */
struct errand_turn {
	size_t budget;
	size_t sent, received;
};

enum errand_result errand_move(struct errand *errand, struct errand_turn *turn);

/* Whether it is not sure yet that the server is the one. */
bool errand_is_shaking(const struct errand *errand);

/* Whether the client says no more. It may have left, or listen still. */
bool errand_is_half_open(const struct errand *errand);

/* Status and text. */
void errand_refusal(const struct errand *errand, const char **ret_status, const char **ret_text);
