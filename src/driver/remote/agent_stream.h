/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's end of a connection to an agent that listens: proves that both know the secret of the
 * sandbox (wire/proof.h). The socket is non-blocking, of any kind of stream. A deadline is a time of
 * the steady clock in milliseconds, after which the answer is -ETIMEDOUT.
 */
#pragma once

#include "wire/proof.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* Connects a new TCP or unix socket, and sets what a link needs. 0 or -errno. */
int agent_stream_connect(
	int sock, const struct sockaddr *address, socklen_t len, uint64_t deadline_ms) must_check;

/*
 * Does the daemon's part of the proof; afterwards the stream is what the claim says. 0, or -errno:
 * -EACCES if what answers is not the agent of this sandbox, -EPROTO if it is no agent at all, and
 * -ECONNRESET if it ended the connection: it does not know this secret, is full, or dies.
 */
int agent_stream_prove(int sock, const struct proof_secret *secret, const struct proof_claim *claim,
	uint64_t deadline_ms) must_check;

/* Read or write exactly len bytes. 0 or -errno; an end of file is -ECONNRESET. */
int agent_stream_read(int sock, void *data, size_t len, uint64_t deadline_ms) must_check;
int agent_stream_write(int sock, const void *data, size_t len, uint64_t deadline_ms) must_check;
