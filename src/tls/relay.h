/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection: TLS towards the client (outer), plain bytes towards whoever serves it (inner). All of it happens on
 * one thread of the terminator.
 *
 * Each direction ends by itself: a client's end becomes an end on the plain side, and what is then still said to it
 * goes out before our own. Nothing is read that cannot be passed on, but for one buffer's worth.
 */
#pragma once

#include "base/buf.h"
#include "tls/dossier.h"

#include <openssl/types.h>
#include <stdbool.h>
#include <stdint.h>

#define RELAY_BYTES (64u * 1024) /* passed on at a time */

enum relay_state {
	RELAY_HANDSHAKE,
	RELAY_OPEN,
	RELAY_LEAVING, /* whoever served it is gone: what waits for the client is sent, then our end */
	RELAY_LINGER, /* our end is sent; the client may still be reading */
	RELAY_OVER,
};

/* What its thread counts it as; all others are counted by whoever serves them. */
enum relay_crowd {
	RELAY_UNCOUNTED,
	RELAY_ARRIVING, /* its handshake is not done */
	RELAY_PARTING,	/* nobody serves it any more */
	RELAY_CROWDS,
};

/* A side of it. What may be done with the socket is remembered until the kernel says otherwise. */
struct relay_end {
	struct relay *relay;
	int fd;
	bool is_readable, is_writable;
};

struct relay {
	struct relay *prev, *next; /* in its thread */
	struct relay *next_ready;  /* in its thread's queue of those with something to do, if: */
	bool is_ready;
	enum relay_crowd crowd;
	uint64_t since_ms; /* when it joined that */
	uint64_t source;   /* what stands for the client's address; the terminator's */
	enum relay_state state;
	SSL *ssl;
	struct relay_end outer, inner;
	struct buf in, out; /* came from the client and is for inside; the other way */
	bool has_client_ended, has_server_ended; /* and all that they said was read */
	int reads_left;	 /* of the socket, in one call of OpenSSL; below 0: it wanted more */
	uint64_t due_ms; /* when it ends, whatever it does; UINT64_MAX: never */
	struct dossier *dossier;
};

/* Takes over all of these. */
struct relay *relay_open(SSL *ssl, int outer, int inner, struct dossier *dossier);
void relay_free(struct relay *relay);

/* What epoll said of a side. */
void relay_note(struct relay_end *end, uint32_t events);

/* Does what can be done, through a buffer of RELAY_BYTES; true if there is more, and it is others' turn first. */
bool relay_move(struct relay *relay, uint8_t *scratch);
