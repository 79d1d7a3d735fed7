/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS as a client: the server's certificate must be good for the name that was asked for. It works
 * on a non-blocking socket that the caller owns.
 */
#pragma once

#include "base/err.h"
#include "model/access/authority.h"

#include <sys/types.h>

struct tls_trust;
struct tls_client;

/* The certificate authorities that this machine trusts; reading them takes some 20 ms. */
int tls_trust_open(struct tls_trust **ret_trust, struct err *err) must_check;
void tls_trust_close(struct tls_trust *trust);

/* A client keeps what it needs of `trust`, which may be closed before it. */
int tls_client_open(struct tls_trust *trust, int fd, const struct authority *server,
	struct tls_client **ret_client) must_check;
void tls_client_close(struct tls_client *client);

/*
 * 0: the handshake is done and the server is the right one. -EAGAIN: call again when the socket is
 * ready. -EPROTO: it failed.
 */
int tls_client_handshake(struct tls_client *client) must_check;

/* Why the handshake failed, for people. */
const char *tls_client_problem(const struct tls_client *client);

/* As recv and send, with -errno; the end of a connection that was cut is -ECONNRESET. */
ssize_t tls_client_read(struct tls_client *client, void *data, size_t len) must_check;
ssize_t tls_client_write(struct tls_client *client, const void *data, size_t len) must_check;
