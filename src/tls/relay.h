/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection: TLS towards the client (outer), plain bytes towards the server (inner). One
 * thread of the terminator does all of it.
 *
 * Each direction ends by itself: the client's end becomes an end on the inner socket, and what the
 * server still sends goes out before our own end. No more is read than can be passed on, but for
 * one buffer.
 */
#pragma once

#include "base/buf.h"
#include "event/event_loop.h"
#include "tls/tls_peer.h"

#include <openssl/types.h>
#include <stdbool.h>
#include <stdint.h>

#define RELAY_BYTES (64u * 1024) /* passed on at a time */

enum relay_state {
	RELAY_HANDSHAKE,
	RELAY_OPEN,
	RELAY_LEAVING, /* the server closed: what waits for the client is sent, then our end */
	RELAY_LINGER,  /* our end is sent; the client may still be reading */
	RELAY_OVER,
};

/* What its thread counts it as; the server counts all others. */
enum relay_class {
	RELAY_UNCOUNTED,
	RELAY_ARRIVING, /* its handshake is not done */
	RELAY_PARTING,	/* the server has closed it */
	RELAY_CLASSES,
};

/* One of its two sockets. Readiness is remembered until the kernel says otherwise. */
struct relay_end {
	struct relay *relay;
	int fd;
	struct watch *watch; /* its thread's */
	bool is_readable, is_writable;
};

struct relay {
	struct terminator_thread *thread;
	struct relay *prev, *next; /* in its thread */
	struct post turn;	   /* its thread's: it has something to do */
	enum relay_class class;
	uint64_t since_ms; /* when it joined that */
	uint64_t source;   /* key of the client's address; the terminator's */
	enum relay_state state;
	SSL *ssl;
	struct relay_end outer, inner;
	struct buf in, out; /* came from the client and is for inside; the other way */
	bool has_client_ended, has_server_ended; /* and all that they said was read */
	int reads_left;	 /* of the socket, in one call of OpenSSL; below 0: it wanted more */
	uint64_t due_ms; /* when it ends, whatever it does; UINT64_MAX: never */
	struct tls_peer *peer;
};

/* Takes over all of these. */
struct relay *relay_open(SSL *ssl, int outer, int inner, struct tls_peer *peer);
void relay_free(struct relay *relay);

/* Notes what epoll reported of a socket. */
void relay_note(struct relay_end *end, uint32_t events);

/* Does what can be done, through a buffer of RELAY_BYTES; true if there is more, and it is others' turn first. */
bool relay_move(struct relay *relay, uint8_t *scratch);
