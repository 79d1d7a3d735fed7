/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS towards a server whose certificate must be good for the name that we asked for. Over a socket that
 * does not block, and that somebody else owns.
 */
#pragma once

#include "base/err.h"
#include "model/authority.h"

#include <sys/types.h>

struct tls_trust;
struct tls_client;

/* Those whom this machine trusts to sign certificates; some 20 ms of work. */
int tls_trust_open(struct tls_trust **ret_trust, struct err *err) must_check;
void tls_trust_close(struct tls_trust *trust);

/* What it was opened with it keeps, also when that trust is closed. */
int tls_client_open(struct tls_trust *trust, int fd, const struct authority *server,
	struct tls_client **ret_client) must_check;
void tls_client_close(struct tls_client *client);

/* 0: it is the server. -EAGAIN: to be called again when the socket is ready. -EPROTO: it is not. */
int tls_client_shake(struct tls_client *client) must_check;

/* Why not, for people. */
const char *tls_client_problem(const struct tls_client *client);

/* As recv and send, with -errno; the end of a connection that was cut is -ECONNRESET. */
ssize_t tls_client_read(struct tls_client *client, void *data, size_t len) must_check;
ssize_t tls_client_write(struct tls_client *client, const void *data, size_t len) must_check;
