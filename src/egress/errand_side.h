/* SPDX-License-Identifier: Apache-2.0 */
/* One of the two connections of an errand: bytes in and out, with or without TLS, in buffers that have a limit. */
#pragma once

#include "base/buf.h"
#include "http/message.h"
#include "model/secret_record.h"

struct tls_client;

#define ERRAND_SIDE_READ_BYTES	(32u * 1024)
#define ERRAND_SIDE_WAITING_MAX (64u * 1024) /* then the other side is not read */
#define ERRAND_SIDE_IN_MAX	(MESSAGE_HEAD_MAX + ERRAND_SIDE_READ_BYTES)
#define ERRAND_SIDE_OUT_MAX	(ERRAND_SIDE_WAITING_MAX + 2 * ERRAND_SIDE_IN_MAX + SECRET_VALUE_MAX)

struct errand_side {
	int fd;
	struct tls_client *tls; /* NULL: none */
	bool has_ended, is_broken;
	bool is_deaf;	    /* it takes nothing any more, but may have something to say */
	struct buf in, out; /* what it said that was not looked at, and what it is to be told */
};

#define ERRAND_SIDE_INIT                                                                           \
	((struct errand_side){.fd = -1,                                                            \
		.in = BUF_INIT(ERRAND_SIDE_IN_MAX),                                                \
		.out = BUF_INIT(ERRAND_SIDE_OUT_MAX)})

/* Closes no socket: it is not its own. */
void errand_side_fini(struct errand_side *side);

/* Reads once, if there is room there and on the other side; whether something came, be it the end. */
bool errand_side_receive(
	struct errand_side *side, const struct errand_side *other, size_t *budget, size_t *counter);

/* Sends what waits; whether something went. */
bool errand_side_flush(struct errand_side *side);

/* Who has nothing to say or to hear keeps no memory. */
void errand_side_release(struct errand_side *side);
